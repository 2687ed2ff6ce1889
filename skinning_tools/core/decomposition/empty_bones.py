# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that have lost all weights to others, such as to those that move alike, when weights were fitted or smoothed.

They go. What the animation looks like does not change.
"""

from dataclasses import replace

import numpy as np

from ..bone_order import subtrees
from ..joint_hierarchy import JointHierarchy
from .moving_joints import places_of
from .types import Decomposition


def without_empty_bones(found: Decomposition) -> Decomposition:
    """``found`` with the bones that have weights alone."""
    return _of_bones(found, _with_weights(found))


def without_empty_branches(found: Decomposition, hierarchy: JointHierarchy) -> tuple[Decomposition, JointHierarchy]:
    """Both without the bones that have no weights, and carry none that have, each only together with its image."""
    kept, partners, below = _with_weights(found), hierarchy.partners, subtrees(hierarchy.parents)
    last = np.zeros(len(kept), bool)
    while (kept != last).any():
        last, kept = kept, (below & kept).any(axis=1)
        if partners is not None:
            kept |= (partners >= 0) & kept[partners]
    if kept.all():
        return found, hierarchy
    return _of_bones(found, kept), replace(
        hierarchy,
        parents=places_of(hierarchy.parents, kept).astype(hierarchy.parents.dtype),
        joints=hierarchy.joints[kept],
        slips=hierarchy.slips[kept],
        partners=None if partners is None else places_of(partners, kept),
    )


def _with_weights(found: Decomposition) -> np.ndarray:
    """(P,) bool: the bones that any vertex follows."""
    used: np.ndarray = np.bincount(found.bones.ravel(), found.weights.ravel(), found.bone_count) > 0
    return used


def _of_bones(found: Decomposition, kept: np.ndarray) -> Decomposition:
    """``found`` with the bones ``kept`` (P,) bool alone, which have all weights."""
    if kept.all():
        return found
    # Unused slots repeat a bone that is used.
    bones = (np.cumsum(kept) - 1).astype(found.bones.dtype)[found.bones]
    return replace(found, bones=bones, transforms=found.transforms[:, kept], bone_axes=found.bone_axes[kept])
