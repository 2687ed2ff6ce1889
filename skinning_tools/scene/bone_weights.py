# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of an armature's deforming bones on a mesh: read as arrays, written back with respect for locks."""

from dataclasses import dataclass

import numpy as np

from .bodies import deforming_bones
from .object_checks import object_label
from .skin_reader import LEAST_TOTAL_WEIGHT
from .vertex_groups import put_weights, read_weights


@dataclass(frozen=True, eq=False)
class BoneWeights:
    """bones (N, K) int32, indices into ``names``; weights (N, K) float64, rows that sum to 1, or to 0 where no bone
    moves the vertex; totals (N,): what the stored weights of a row sum to; locked (P,) bool: bones whose group is."""

    names: tuple[str, ...]
    bones: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    locked: np.ndarray

    @property
    def bound(self) -> np.ndarray:
        """(N,) bool: the vertices that some bone moves."""
        return self.weights.any(axis=1)


def read_bone_weights(object, armature, names=None) -> BoneWeights:
    """The weights of the bones ``names`` (all deforming ones, whether they have a group or not). Raises BadWeights."""
    from ..core.deform import convex_influences

    names = deforming_bones(armature) if names is None else tuple(names)
    bones, weights = read_weights(object, names)
    totals = weights.sum(axis=1)
    usable = np.where(totals[:, None] > LEAST_TOTAL_WEIGHT, weights, 0.0)
    bones, weights = convex_influences(bones, usable, len(object.data.vertices), len(names), object_label(object))
    return BoneWeights(names, bones, weights, totals, locked_bones(object, names))


def locked_bones(object, names) -> np.ndarray:
    """(P,) bool: whether the vertex group of each bone is there and locked."""
    groups = object.vertex_groups
    return np.array([name in groups and groups[name].lock_weight for name in names], dtype=bool)


def write_bone_weights(object, before: BoneWeights, bones, weights, names=None) -> None:
    """Write rows ``bones`` and ``weights`` (N, K) that sum to 1, in place of ``before``.

    names: what ``bones`` are indices into, those of ``before`` and further ones. Locked groups are not touched; where
    one holds part of a row, the others are scaled so that its share stays what it was. Groups of bones are made where
    they are missing and needed; all other groups stay as they are.
    """
    names = before.names if names is None else tuple(names)
    locked = locked_bones(object, names)
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    held = (locked[bones] & (weights > 0)).any(axis=1)
    # Blender divides by the total: a row with a locked weight has to keep the one it had.
    scaled = weights * np.where(held & (before.totals > 0), before.totals, 1.0)[:, None]
    put_weights(object, names, bones, np.where(locked[bones], 0.0, scaled), kept=locked)
