# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that mirror each other in x, on a body that is symmetric at rest."""

import numpy as np
from scipy.sparse import diags
from scipy.spatial import cKDTree

from .deform.influences import weight_matrix
from .geometry import mirrored, vertex_areas
from .rotation_centers import mirror_pairs
from .strongest import strongest_bones

# Of the body's diagonal, how far mirrored vertices may be from each other; the share of vertices that have such a
# partner on a symmetric body; and the cosine between the weights of a bone and the mirror image of its partner's, where
# others might be the partner, and where none is left.
_TOLERANCE, _SYMMETRIC, _SAME, _LIKELY = 0.01, 0.8, 0.7, 0.4
# A bone of which more than the first share is on each side of the plane is in the middle if the cosine between its
# weights and their own mirror image is at least the second one.
_ACROSS, _OWN_IMAGE = 0.15, 0.2
# A bone that leads at least this share of its own mirror image is in the middle, though it is not symmetric.
_MIDDLE = 0.5
# Of the diagonal: joints farther from each other's mirror images than this are not of the same place.
_FARTHEST = 0.15


def mirror_plane(rest: np.ndarray) -> float:
    """The x in the middle of vertices (N, 3)."""
    return float(0.5 * (rest[:, 0].min() + rest[:, 0].max()))


def mirrored_vertices(rest: np.ndarray) -> np.ndarray | None:
    """(N,) the vertex that mirrors each of ``rest`` (N, 3) in x, −1 without one; None on a body without symmetry."""
    pairs = mirror_pairs(rest - [mirror_plane(rest), 0.0, 0.0], tolerance=_TOLERANCE)
    return pairs if np.count_nonzero(pairs >= 0) >= _SYMMETRIC * len(rest) else None


def nearest_images(rest: np.ndarray, pairs: np.ndarray, plane: float) -> np.ndarray:
    """``pairs`` (N,) of ``mirrored_vertices``, with the vertex nearest to the mirror image in x = ``plane`` where a
    vertex of ``rest`` (N, 3) has no partner."""
    alone, pairs = np.flatnonzero(pairs < 0), pairs.copy()
    pairs[alone] = cKDTree(rest).query(mirrored(rest[alone], plane))[1]
    return pairs


def mirrored_bones(
    rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int, triangles: np.ndarray | None = None
) -> np.ndarray | None:
    """(P,) the bone that mirrors each bone in x, itself in the middle, −1 without one; None on a body without symmetry.

    rest (N, 3); bones, weights (N, K); triangles (T, 3): with them, vertices count by their areas, as those of fingers
    are many.
    """
    pairs = mirrored_vertices(rest)
    return None if pairs is None else paired_bones(rest, pairs, bones, weights, bone_count, triangles)


def paired_bones(
    rest: np.ndarray,
    pairs: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int,
    triangles: np.ndarray | None = None,
) -> np.ndarray:
    """(P,) ``mirrored_bones`` for given ``pairs`` (N,) of ``mirrored_vertices``."""
    paired = np.flatnonzero(pairs >= 0)
    areas = np.ones(len(rest)) if triangles is None else vertex_areas(rest, triangles)
    areas = areas if areas.any() else np.ones(len(rest))
    every = weight_matrix(bones, weights, bone_count)
    counted = diags(areas[paired]) @ every[paired]
    sizes = np.sqrt(np.asarray(counted.multiply(every[paired]).sum(axis=0))).ravel()
    alike = (counted.T @ every[pairs[paired]]).toarray() / np.maximum(sizes[:, None] * sizes, np.finfo(float).tiny)
    partners = np.full(bone_count, -1)
    _match(partners, alike, _SAME)
    # What reaches far over to the other side, such as a trunk with an arm, is in the middle if anything.
    left = rest[:, 0] < mirror_plane(rest)
    sides = np.array([every[side].T @ areas[side] for side in (left, ~left)])
    middle = (partners < 0) & (sides.min(axis=0) > _ACROSS * sides.sum(axis=0))
    partners[middle] = np.where(alike.diagonal() >= _OWN_IMAGE, np.arange(bone_count), -1)[middle]
    # One that is left on either side is that side's version of the other.
    alike[middle] = alike[:, middle] = 0.0
    _match(partners, alike, _LIKELY)
    return partners


def lone_bones(
    pairs: np.ndarray, partners: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bones (n,) of one side that have no partner, the largest first, and their carriers (n,), which lead their images.

    pairs (N,): from ``mirrored_vertices``; partners (P,): from ``mirrored_bones``; bones, weights (N, K).
    """
    leading, paired = strongest_bones(bones, weights), np.flatnonzero(pairs >= 0)
    # [bone, bone that leads the mirror images of its vertices]
    images = np.zeros((len(partners), len(partners)))
    np.add.at(images, (leading[paired], leading[pairs[paired]]), 1.0)
    sizes = images.sum(axis=1)
    lone = np.flatnonzero((partners < 0) & (images.diagonal() < _MIDDLE * sizes))
    lone = lone[np.argsort(-sizes[lone], kind="stable")]
    return lone, images[lone].argmax(axis=1)


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
    images = mirrored(joints[partners], plane)
    near = (partners >= 0) & (np.linalg.norm(images - joints, axis=1) <= _FARTHEST * size)
    return np.where(near[:, None], 0.5 * (joints + images), joints)
