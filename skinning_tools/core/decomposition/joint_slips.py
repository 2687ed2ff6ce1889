# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the joints of free bones slip, and which of them no joint can hold."""

import numpy as np

from ..bone_order import parents_first
from ..geometry import diagonal
from ..joint_hierarchy import JointHierarchy
from ..strongest import strongest_bones
from .types import Decomposition

# Of the rest pose's diagonal: a joint that slips by less holds anything.
_SLIGHT = 0.02


def held_parents(free: Decomposition, hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) the parents, −1 where a joint slips by more than the size of what hangs from it, and not only slightly."""
    low, high = np.full((free.bone_count, 3), np.inf), np.full((free.bone_count, 3), -np.inf)
    strongest = strongest_bones(free.bones, free.weights)
    np.minimum.at(low, strongest, free.rest)
    np.maximum.at(high, strongest, free.rest)
    for bone in reversed(parents_first(hierarchy.parents)):
        parent = hierarchy.parents[bone]
        if parent >= 0:
            low[parent], high[parent] = np.minimum(low[parent], low[bone]), np.maximum(high[parent], high[bone])
    size = np.linalg.norm(np.maximum(high - low, 0.0), axis=1)
    # Else a bone of one vertex, which has no size, would hang from nothing.
    size = np.maximum(size, _SLIGHT * diagonal(free.rest))
    return np.where(np.isfinite(low[:, 0]) & (hierarchy.slips > size), -1, hierarchy.parents)


def joint_slips(transforms: np.ndarray, parents: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """(P,) how far apart bones and parents carry the joints (P, 3), root mean square; 0 without a parent."""
    linked = np.flatnonzero(parents >= 0)
    apart = transforms[:, linked] - transforms[:, parents[linked]]
    offsets = np.einsum("fpij,pj->fpi", apart[..., :3], joints[linked]) + apart[..., 3]
    slips = np.zeros(len(parents))
    slips[linked] = np.sqrt(np.square(offsets).sum(axis=2).mean(axis=0))
    return slips
