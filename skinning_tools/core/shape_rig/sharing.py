# SPDX-License-Identifier: GPL-3.0-or-later
"""How many bones each of several groups of vertices gets, which are solved on their own."""

from collections.abc import Sequence

import numpy as np

from ..errors import BadSettings
from ..rotations import nearest_rotations
from .types import Shapes

# As a share of the largest need: less is rounding.
_NO_NEED = 1e-6


def share_bones(groups: Sequence[Shapes], bone_count: int) -> list[int]:
    """The number of bones of each group, ``bone_count`` in all.

    Each has one. Every further bone goes to the group with the largest need per bone that it has so far, as long as
    the group has a vertex for it. The need is the motion that a single bone leaves: the root of the sum, over shapes
    and vertices, of squared distances to the rigid motion that is nearest to the shape. So an eye that only turns has a
    single bone. Raises BadSettings where there are fewer bones than groups.
    """
    if bone_count < len(groups):
        raise BadSettings(
            f"The meshes follow {len(groups)} bones of their armature, so {bone_count} bones of the face are too few. "
            f"Ask for at least {len(groups)}"
        )
    needs = np.array([_left_by_one(shapes) for shapes in groups])
    needs = np.maximum(needs, _NO_NEED * needs.max())
    room = np.array([len(shapes.rest) for shapes in groups])
    counts = np.ones(len(groups), int)
    for _ in range(bone_count - len(groups)):
        free = counts < room if (counts < room).any() else np.ones(len(groups), bool)
        counts[np.argmax(np.where(free, needs / counts, -1.0))] += 1
    return counts.tolist()


def _left_by_one(shapes: Shapes) -> float:
    """The motion that one bone leaves, in the shapes' units."""
    if not len(shapes.rest):
        return 0.0
    middle = shapes.rest - shapes.rest.mean(axis=0)
    total = 0.0
    for delta in shapes.deltas:
        moved = middle + delta - delta.mean(axis=0, dtype=np.float64)
        total += float(np.square(moved - middle @ nearest_rotations(moved.T @ middle).T).sum())
    return float(np.sqrt(total))
