# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs that an animation moves on one side of a symmetric body only: bones for the other side, which stands still.

Whoever poses a skeleton that waved one arm wants bones in the other, too. They move as what they hang from, and their
weights are mirrored: what the animation looks like does not change.
"""

from dataclasses import replace

import numpy as np

from ..bone_order import parents_first
from ..geometry import mirrored
from ..joint_hierarchy import JointHierarchy, still_joints
from ..skeleton_symmetry import lone_bones, mirror_symmetry, nearest_images
from ..strongest import strongest_first
from .types import Decomposition


def with_still_sides(
    found: Decomposition, hierarchy: JointHierarchy, most: int
) -> tuple[Decomposition, JointHierarchy]:
    """``found`` and ``hierarchy`` with the mirror images in x of bones that turn and have none, up to ``most`` bones.

    found: rigid bones. An image moves exactly as its parent, the image of the bone's parent, and shares its vertices.
    What mirrors the bone's children hangs from it.
    Both as they are on a body without symmetry, or whose rest pose is not symmetric.
    """
    partners = hierarchy.partners
    if partners is None or hierarchy.posed or (pairs := mirror_symmetry(found.rest)[1]) is None:
        return found, hierarchy
    lone, leading = lone_bones(pairs, partners, found.bones, found.weights)
    carried = dict(zip(lone.tolist(), leading.tolist(), strict=True))
    turning = ~still_joints(found.transforms, hierarchy)
    # Each image, and the bone that it moves as.
    images, carriers = partners.tolist(), list(range(len(partners)))
    parents = hierarchy.parents.tolist()
    chosen = []
    for bone in parents_first(hierarchy.parents):
        above = hierarchy.parents[bone]
        parent = images[above] if above >= 0 else -1
        alike = bone in carried and parent >= 0 and carriers[parent] == carried[bone]
        if alike and turning[bone] and len(parents) < most:
            images[bone] = image = len(parents)
            carriers.append(carriers[parent])
            parents.append(parent)
            chosen.append(bone)
            # In the middle of a limb, what hangs from the bone's parent there hangs from the image here.
            for child in np.flatnonzero(hierarchy.parents == bone):
                if images[child] >= 0 and parents[images[child]] == parent:
                    parents[images[child]] = image
    if not chosen:
        return found, hierarchy
    partners = np.append(images, chosen)
    bones, weights = _shared(found, nearest_images(found.rest, pairs, hierarchy.plane), partners, np.array(carriers))
    axes = np.concatenate([found.bone_axes, found.bone_axes[chosen]])
    found = replace(found, transforms=found.transforms[:, carriers], bones=bones, weights=weights, bone_axes=axes)
    joints = mirrored(hierarchy.joints[chosen], hierarchy.plane)
    return found, replace(
        hierarchy,
        parents=np.array(parents, hierarchy.parents.dtype),
        joints=np.concatenate([hierarchy.joints, joints]),
        slips=np.append(hierarchy.slips, np.zeros(len(chosen))),
        partners=partners,
    )


def _shared(
    found: Decomposition, pairs: np.ndarray, partners: np.ndarray, carriers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """bones, weights (N, K) in which a carrier shares its weights with the bones that move as it, as the mirror images
    of its vertices have it.

    pairs (N,): the vertex that mirrors each; partners, carriers (Q,): the image of each bone, −1 without one, and the
    bone that it moves as.
    """
    bones, weights = found.bones.copy(), found.weights.copy()
    counts = np.bincount(carriers, minlength=len(carriers))
    for carrier in np.flatnonzero(counts > 1):
        group = np.flatnonzero(carriers == carrier)
        vertices = np.flatnonzero(((bones == carrier) & (weights > 0)).any(axis=1))
        image = found.bones[pairs[vertices]], found.weights[pairs[vertices]]
        shares = np.array([np.where(image[0] == partners[bone], image[1], 0.0).sum(axis=1) for bone in group]).T
        vertices, shares = vertices[shares.any(axis=1)], shares[shares.any(axis=1)]
        bones[vertices], weights[vertices] = _spread(bones[vertices], weights[vertices], carrier, group, shares)
    return strongest_first(bones, weights)


def _spread(
    bones: np.ndarray, weights: np.ndarray, carrier: int, group: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """bones, weights (n, K) with the weight of the ``carrier`` given to the ``group`` (m,) in proportion to ``shares``
    (n, m), as far as there are slots: the largest first. Rows keep their sums."""
    own = (bones == carrier) & (weights > 0)
    total = np.where(own, weights, 0.0).sum(axis=1)
    free = own | (weights == 0)
    order = np.argsort(-shares, axis=1, kind="stable")
    place = np.minimum(np.cumsum(free, axis=1) - 1, len(group) - 1)
    used = free & (np.cumsum(free, axis=1) <= len(group))
    named = np.take_along_axis(order, place, axis=1)
    given = np.where(used, np.take_along_axis(shares, named, axis=1), 0.0)
    given *= (total / given.sum(axis=1))[:, None]
    return np.where(used, group[named], bones).astype(bones.dtype), np.where(free, given, weights)
