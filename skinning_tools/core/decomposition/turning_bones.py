# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bones of a skeleton can do what they do by rotating about their joints."""

from dataclasses import replace

import numpy as np

from ..binding.influence_rows import padded_influences, tidy_influences
from ..bone_order import parents_first
from ..geometry import diagonal
from ..joint_hierarchy import JointHierarchy, moments, still_joints
from ..strongest import strongest_bones
from .moving_joints import places_of
from .types import Decomposition

# Of the rest pose's diagonal: a joint that slips by less holds anything.
_SLIGHT = 0.02
# Radians: a bone that turns farther against its parent, from the mean, is a part of the body, however its joint slips.
_TURNING = np.radians(10.0)


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


def turning_bones(free: Decomposition, hierarchy: JointHierarchy) -> tuple[Decomposition, JointHierarchy]:
    """Both without the bones that hardly turn against their parents, and whose joints slip by more than these turns
    move what hangs from them: parts of a body that stretches or slides.

    Such a bone would turn back and forth to imitate its slips, and fold the chain. Its parent has its weights, and
    carries what hung from it. Of partners, both go or none.
    """
    still = still_joints(free.transforms, hierarchy, _TURNING)
    gone = still & (hierarchy.slips > _swings(free, hierarchy))
    partners = hierarchy.partners
    if partners is not None:
        gone &= gone[partners] | (partners < 0)
    if not gone.any():
        return free, hierarchy
    heirs, kept = np.arange(free.bone_count), ~gone
    for bone in parents_first(hierarchy.parents):
        if gone[bone]:
            heirs[bone] = heirs[hierarchy.parents[bone]]
    place = (np.cumsum(kept) - 1)[heirs]
    skin = tidy_influences(place[free.bones], free.weights, free.bones.shape[1])
    bones, weights = padded_influences(*skin, free.bones.shape[1])
    transforms, axes = free.transforms[:, kept], free.bone_axes[kept]
    parents = np.where(hierarchy.parents >= 0, place[hierarchy.parents], -1)[kept].astype(np.int32)
    joints = hierarchy.joints[kept]
    partners = None if partners is None else places_of(partners, kept)
    slips = joint_slips(transforms, parents, joints)
    left = replace(hierarchy, parents=parents, joints=joints, slips=slips, partners=partners)
    return replace(free, transforms=transforms, bones=bones, weights=weights, bone_axes=axes), left


def _swings(free: Decomposition, hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) how far the turns of each bone against its parent move what hangs from it, root mean square; 0 without a
    parent."""
    parents, mass = hierarchy.parents, np.bincount(free.bones.ravel(), free.weights.ravel(), free.bone_count)
    sums = mass[:, None, None] * moments(free.rest, free.bones, free.weights, free.bone_count)
    for bone in reversed(parents_first(parents)):
        if parents[bone] >= 0:
            sums[parents[bone]] += sums[bone]
    linked = np.flatnonzero(parents >= 0)
    sums, joints = sums[linked], hierarchy.joints[linked]
    sums /= np.maximum(sums[:, 3:, 3:], np.finfo(float).tiny)
    # The moments of v − h.
    to_joint = np.concatenate([np.tile(np.eye(3), (len(linked), 1, 1)), -joints[:, :, None]], axis=2)
    about = to_joint @ sums @ np.swapaxes(to_joint, 1, 2)
    turns = (free.transforms[:, linked] - free.transforms[:, parents[linked]])[..., :3]
    swings = np.zeros(free.bone_count)
    swings[linked] = np.sqrt(np.maximum(np.einsum("fpij,fpik,pjk->p", turns, turns, about), 0.0) / len(turns))
    return swings


def joint_slips(transforms: np.ndarray, parents: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """(P,) how far apart bones and parents carry the joints (P, 3), root mean square; 0 without a parent."""
    linked = np.flatnonzero(parents >= 0)
    apart = transforms[:, linked] - transforms[:, parents[linked]]
    offsets = np.einsum("fpij,pj->fpi", apart[..., :3], joints[linked]) + apart[..., 3]
    slips = np.zeros(len(parents))
    slips[linked] = np.sqrt(np.square(offsets).sum(axis=2).mean(axis=0))
    return slips
