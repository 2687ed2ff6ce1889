# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the joints of an armature's deforming bones turn: by their limits, else in the armature's actions, else by
their proportions."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender.joint_motion import rotation_limits
from ...blender.skeletons import copied_bones
from ...core.imitation.skeleton import Ranges, Skeleton, relative_turns, to_vectors, usual_ranges

# A joint that stands still in the actions still turns by this, in radians: else nothing would tell its bones apart.
_LEAST = np.radians(10.0)


def joint_ranges(
    armature: bpy.types.Object,
    names: Sequence[str],
    skeleton: Skeleton,
    skin: tuple[np.ndarray, np.ndarray, np.ndarray],
    motion: np.ndarray,
) -> tuple[Ranges, tuple[str, ...]]:
    """The ranges of the joints, and notes. skin: points, bones and weights; motion (F, P, 3, 4): of the bones in the
    armature's actions, in its space, or none of it."""
    usual = usual_ranges(skeleton, *skin)
    low, high, euler = usual.low.copy(), usual.high.copy(), usual.euler.copy()
    if len(motion):
        turned = _turns(skeleton, motion)
        low, high = np.minimum(turned.min(axis=0), -_LEAST), np.maximum(turned.max(axis=0), _LEAST)
    aside = []
    for place, name in enumerate(names):
        for owner in (name, *copied_bones(armature, name)):
            limits = rotation_limits(armature.pose.bones[owner])
            if limits is not None:
                given = np.isfinite(limits)
                low[place] = np.where(given[:, 0], limits[:, 0], low[place])
                high[place] = np.where(given[:, 1], limits[:, 1], high[place])
                euler[place] = True
                if (low[place] > 1e-3).any() or (high[place] < -1e-3).any():
                    aside.append(name)
                break
    notes = [f'the limits of "{name}" exclude its rest pose, so that no pose has it at rest' for name in aside[:1]]
    return Ranges(low, np.maximum(high, low), euler), tuple(notes)


def _turns(skeleton: Skeleton, motion: np.ndarray) -> np.ndarray:
    vectors = to_vectors(relative_turns(skeleton, motion))
    # A bone without a parent moves the whole character.
    vectors[:, skeleton.parents < 0] = 0.0
    return vectors
