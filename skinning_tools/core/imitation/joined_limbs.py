# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs in one piece, where bones that follow controls hang from nothing."""

import numpy as np

from ..bone_order import parents_first
from ..deform.influences import weight_matrix
from ..geometry import diagonal
from .skeleton import Skeleton

# There is no joint where a bone's origin leaves the bone above by more than this share of the mesh's diagonal, and
# another bone by less than half of it, if that shares at least this part of the most skin that any one shares.
_SLIP, _LESS, _BESIDE = 0.02, 0.5, 0.1


def joined_by_skin(
    skeleton: Skeleton, points: np.ndarray, bones: np.ndarray, weights: np.ndarray, motion: np.ndarray
) -> Skeleton:
    """The skeleton with its limbs in one piece: feet that hang from nothing, or from the root, as they follow controls
    of inverse kinematics, hang from the bone whose skin they share and that they keep closest to in the ``motion``
    (F, P, 3, 4), which may be none.

    points (N, 3), bones and weights (N, K): the skin. The part with most of it keeps its root.
    """
    parents, count = skeleton.parents.copy(), len(skeleton)
    matrix = weight_matrix(bones, weights, count)
    shared, mass = (matrix.T @ matrix).toarray(), np.asarray(matrix.sum(axis=0)).ravel()
    sizes = np.array([mass[_branch(parents, bone)].sum() for bone in range(count)])
    far = diagonal(points) or 1.0
    main = max(np.flatnonzero(parents < 0).tolist(), key=lambda bone: sizes[bone])
    # Small parts first: they may hang from one another.
    for bone in np.argsort(sizes, kind="stable").tolist():
        branch = _branch(parents, bone)
        beside = np.where(branch, 0.0, shared[branch].sum(axis=0))
        if bone == main or not beside.any():
            continue
        slips = _slips(skeleton, motion, bone) / far
        near = np.flatnonzero(beside > _BESIDE * beside.max())
        best = near[np.lexsort([-beside[near], slips[near]])[0]]
        above = parents[bone]
        if above < 0 or (slips[above] > _SLIP and slips[best] < _LESS * slips[above]):
            parents[bone] = best
    return Skeleton(parents, skeleton.rest)


def _branch(parents: np.ndarray, bone: int) -> np.ndarray:
    """(P,) bool: the bone and all below it."""
    inside: np.ndarray = np.arange(len(parents)) == bone
    for other in parents_first(parents):
        inside[other] |= parents[other] >= 0 and inside[parents[other]]
    return inside


def _slips(skeleton: Skeleton, motion: np.ndarray, bone: int) -> np.ndarray:
    """(P,): how far, in the mean, the origin of a bone is from where each bone carries it."""
    if not len(motion):
        return np.zeros(len(skeleton))
    carried = motion @ skeleton.rest[bone, :, 3]
    return np.linalg.norm(carried - carried[:, [bone]], axis=2).mean(axis=0)
