# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that turn about each other: the tree that they form, and the rigid motion of a joint.

Needs numpy only, unlike ``joint_search``, which finds the tree.
"""

from dataclasses import dataclass

import numpy as np

from .bone_order import subtrees
from .rotations import nearest_rotations

# The share of a bone's turning, squared, that is about the axis of a hinge; and the turning, twice in radians (root
# mean square), below which there is none.
_HINGE, _LEAST_TURN = 0.7, 0.1
# Radians: bones that never turn farther from the mean against each other move as one.
STILL_TURN = np.radians(5.0)


@dataclass(frozen=True)
class JointHierarchy:
    """A forest over P bones.

    parents (P,) int32: −1 for a bone without a parent. joints (P, 3): the rest position about which a bone
    turns against its parent; the middle of its vertices where it has none. slips (P,): how far apart bone and parent
    carry the joint, root mean square over the frames, in units of the rest pose; 0 without a parent.
    partners (P,) int: where the body is symmetric in x at rest, the bone that mirrors each bone, itself in the middle,
    −1 where there is none; None where it is not symmetric. plane: the x of the mirror plane. held: whether the bones
    have been solved to only rotate about their joints. posed: the body is not symmetric at rest, so that nothing is in
    a mirror plane; the partners are then the first bones of limbs that its skeleton tells, and what is in the middle.
    """

    parents: np.ndarray
    joints: np.ndarray
    slips: np.ndarray
    partners: np.ndarray | None = None
    plane: float = 0.0
    held: bool = False
    posed: bool = False

    @property
    def middle(self) -> np.ndarray:
        """(P,) bool: the bones that are their own mirror image."""
        if self.partners is None:
            return np.zeros(len(self.parents), bool)
        return self.partners == np.arange(len(self.parents))

    @property
    def lopsided(self) -> np.ndarray:
        """(P,) bool: the bones of one side of a symmetric body that one in the middle, or their own mirror image, hangs
        from: turned, they take it along."""
        found = np.zeros(len(self.parents), bool)
        if self.partners is None or self.posed:
            return found
        children = np.flatnonzero(self.parents >= 0)
        parents = self.parents[children]
        aside = (self.partners[parents] >= 0) & ~self.middle[parents]
        found[parents[aside & (self.middle[children] | (self.partners[children] == parents))]] = True
        return found

    @property
    def unmatched(self) -> np.ndarray:
        """(P,) bool: the bones that a limb has on one side of a symmetric body alone, before others that it has on both
        sides."""
        found = np.zeros(len(self.parents), bool)
        if self.partners is None or self.posed:
            return found
        sides = np.flatnonzero((self.parents >= 0) & (self.partners >= 0) & ~self.middle)
        found[self.parents[sides]] = True
        return found & (self.partners < 0)

    @property
    def holding(self) -> np.ndarray:
        """(P,) bool: the bones that only rotate, as their joints do not slip at all."""
        return (self.parents >= 0) & self.held

    def heirs(self) -> np.ndarray:
        """(P,) the child of each bone that continues it, −1 without one: the child with the most bones below it.

        A bone in the middle is only continued by one in the middle, or, if it is a root, by one without an image. If
        several children have as many bones below them, such as the ears of a head, none continues a bone but a root.
        """
        counts, middle = self.descendant_counts(), self.middle
        counts = counts + len(counts) * (middle & middle[self.parents])
        result = np.full(len(self.parents), -1)
        # The last of several children is the heaviest.
        for bone in np.argsort(counts, kind="stable"):
            parent = self.parents[bone]
            alone = self.posed or self.partners is None or self.partners[bone] < 0
            if parent >= 0 and (middle[bone] or not middle[parent] or (alone and self.parents[parent] < 0)):
                result[parent] = bone
        for parent in np.flatnonzero((result >= 0) & (self.parents >= 0)):
            if (counts[self.parents == parent] == counts[result[parent]]).sum() > 1:
                result[parent] = -1
        return result

    def descendant_counts(self) -> np.ndarray:
        """(P,) number of descendants of each bone."""
        return np.asarray(subtrees(self.parents).sum(axis=1) - 1)


def rigid_motion(transforms: np.ndarray, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(F, P, 3, 4) [R | t]: the rigid motions nearest to ``transforms`` (F, P, 3, 4) on the vertices of each bone.

    rest (N, 3); bones, weights (N, K). The weighted Procrustes problem; the mean of the vertices keeps its motion.
    """
    means, spread = means_and_spreads(rest, bones, weights, transforms.shape[1])
    # Vertices in a plane, or at a point, turn with the matrix.
    extent = np.trace(spread, axis1=1, axis2=2)
    spread += np.where(extent > 0, 1e-3 * extent, 1.0)[:, None, None] * np.eye(3)
    linear = transforms[..., :3]
    rotation = nearest_rotations(linear @ spread)
    shift = transforms[..., 3] + np.einsum("fpij,pj->fpi", linear - rotation, means)
    return np.concatenate([rotation, shift[..., None]], axis=-1)


def inverse_motion(motion: np.ndarray) -> np.ndarray:
    """(..., 4, 4): the inverses of rigid motions (..., 4, 4)."""
    inverse = motion.copy()
    inverse[..., :3, :3] = np.swapaxes(motion[..., :3, :3], -1, -2)
    inverse[..., :3, 3] = -np.einsum("...ij,...j->...i", inverse[..., :3, :3], motion[..., :3, 3])
    return inverse


def moments(points: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int) -> np.ndarray:
    """(P, 4, 4) mean of [v; 1][v; 1]ᵀ over each bone's vertices by weight; zero but for the last 1 without any."""
    flat = bones.ravel()
    homogeneous = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    moments = np.zeros((bone_count, 4, 4))
    for i in range(4):
        for j in range(i, 4):
            values = weights * (homogeneous[:, i] * homogeneous[:, j])[:, None]
            moments[:, i, j] = moments[:, j, i] = np.bincount(flat, values.ravel(), bone_count)
    mass = moments[:, 3, 3].copy()
    moments /= np.where(mass > 0, mass, 1.0)[:, None, None]
    moments[:, 3, 3] = 1.0
    return moments


def means_and_spreads(
    points: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (P, 3) and covariance (P, 3, 3) of each bone's vertices by weight; 0 without any."""
    found = moments(points, bones, weights, bone_count)
    means = found[:, 3, :3]
    return means, found[:, :3, :3] - means[:, :, None] * means[:, None, :]


def hinge_axes(transforms: np.ndarray, hierarchy: JointHierarchy) -> np.ndarray:
    """(P, 3) unit axes, in the rest pose, about which bones turn most against their parents; 0 without a clear one.

    transforms (F, P, 3, 4) of rotations. An axis is clear if most of what the bone turns, squared, is about it. The
    turns are those from the mean, as the way from the rest pose into the motion, such as that of lowered arms, would
    hide them.
    """
    linked, turns = _turns_from_mean(transforms, hierarchy)
    # Twice the axis by the sine of the angle: enough for the direction, and no angle is singular but a half turn.
    skew = np.stack([turns[..., (i + 2) % 3, (i + 1) % 3] - turns[..., (i + 1) % 3, (i + 2) % 3] for i in range(3)], -1)
    values, vectors = np.linalg.eigh(np.einsum("fpi,fpj->pij", skew, skew))
    clear = values[:, 2] > _HINGE * np.maximum(values.sum(axis=1), len(transforms) * _LEAST_TURN**2)
    axes = np.zeros((len(hierarchy.parents), 3))
    axes[linked] = np.where(clear[:, None], vectors[:, :, 2], 0.0)
    return axes


def still_joints(transforms: np.ndarray, hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) bool: the bones that hardly ever turn against their parents, so that the motion does not tell the joint.

    transforms (F, P, 3, 4) of rotations.
    """
    linked, turns = _turns_from_mean(transforms, hierarchy)
    cosines = 0.5 * (np.trace(turns, axis1=-2, axis2=-1) - 1.0)
    still = np.zeros(len(hierarchy.parents), bool)
    still[linked] = (cosines > np.cos(STILL_TURN)).all(axis=0)
    return still


def carried_along(transforms: np.ndarray, hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) bool: the bones that move exactly as their parents do, such as those of a side that stands still.

    transforms (F, P, 3, 4).
    """
    parents = hierarchy.parents
    same = (transforms == transforms[:, parents]).all(axis=(0, 2, 3))
    return np.asarray((parents >= 0) & same)


def _turns_from_mean(transforms: np.ndarray, hierarchy: JointHierarchy) -> tuple[np.ndarray, np.ndarray]:
    """The bones (n,) with a parent, and their rotations (F, n, 3, 3) against it from their mean."""
    linked = np.flatnonzero(hierarchy.parents >= 0)
    turns = np.swapaxes(transforms[:, hierarchy.parents[linked], :, :3], -1, -2) @ transforms[:, linked, :, :3]
    return linked, np.swapaxes(nearest_rotations(turns.mean(axis=0)), -1, -2) @ turns
