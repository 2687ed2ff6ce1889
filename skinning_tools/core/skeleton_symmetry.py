# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that mirror each other in x, on a body that is symmetric at rest."""

import numpy as np

from .deform.influences import weight_matrix
from .geometry import MIRROR_X
from .rotation_centers import mirror_pairs

# Of the body's diagonal, how far mirrored vertices may be from each other; the share of vertices that have such a
# partner on a symmetric body; and the cosine between the weights of a bone and the mirror image of its partner's, where
# others might be the partner, and where none is left.
_TOLERANCE, _SYMMETRIC, _SAME, _LIKELY = 0.01, 0.8, 0.7, 0.4
# Of the diagonal: joints farther from each other's mirror images than this are not of the same place.
_FARTHEST = 0.15


def mirror_plane(rest: np.ndarray) -> float:
    """The x in the middle of vertices (N, 3)."""
    return float(0.5 * (rest[:, 0].min() + rest[:, 0].max()))


def mirrored_bones(rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int) -> np.ndarray | None:
    """(P,) the bone that mirrors each bone in x, itself in the middle, −1 without one; None on a body without symmetry.

    rest (N, 3); bones, weights (N, K).
    """
    pairs = mirror_pairs(rest - [mirror_plane(rest), 0.0, 0.0], tolerance=_TOLERANCE)
    paired = np.flatnonzero(pairs >= 0)
    if len(paired) < _SYMMETRIC * len(rest):
        return None
    used = weight_matrix(bones, weights, bone_count)[paired]
    images = weight_matrix(bones, weights, bone_count)[pairs[paired]]
    sizes = np.sqrt(np.asarray(used.multiply(used).sum(axis=0))).ravel()
    alike = (used.T @ images).toarray() / np.maximum(sizes[:, None] * sizes, np.finfo(float).tiny)
    partners = np.full(bone_count, -1)
    _match(partners, alike, _SAME)
    # One that is left on either side is that side's version of the other.
    np.fill_diagonal(alike, 0.0)
    _match(partners, alike, _LIKELY)
    return partners


def _match(partners: np.ndarray, alike: np.ndarray, least: float) -> None:
    """Set the ``partners`` (P,) of bones without one: those among them that are most ``alike`` (P, P), if by at least
    so much."""
    left = np.flatnonzero(partners < 0)
    if not len(left):
        return
    among = alike[np.ix_(left, left)]
    best, everyone = among.argmax(axis=1), np.arange(len(left))
    found = (best[best] == everyone) & (among[everyone, best] >= least)
    partners[left[found]] = left[best[found]]


def symmetric_joints(joints: np.ndarray, partners: np.ndarray, plane: float, size: float) -> np.ndarray:
    """Joints (P, 3) of ``partners`` (P,) made the mirror images of each other where they nearly are.

    plane: the x of the mirror plane; size: the body's diagonal.
    """
    images = joints[partners] * MIRROR_X + [2.0 * plane, 0.0, 0.0]
    near = (partners >= 0) & (np.linalg.norm(images - joints, axis=1) <= _FARTHEST * size)
    return np.where(near[:, None], 0.5 * (joints + images), joints)
