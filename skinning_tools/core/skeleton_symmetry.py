# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that mirror each other in x, on a body that is symmetric at rest."""

import numpy as np
from scipy.sparse import diags
from scipy.spatial import cKDTree

from .deform.influences import weight_matrix
from .geometry import diagonal, mirrored, vertex_areas
from .strongest import strongest_bones

# Of the body's diagonal: the farthest that a vertex may be from the mirror image of its partner.
_TOLERANCE = 0.01
# Vertices that vote for a plane, each with so many that are nearest to it as seen from the side; how far votes may be
# from each other to count as one, in tolerances.
_SAMPLE, _BESIDE, _WINDOW = 2000, 64, 0.1
# Planes tried after that in the middle of the body: theirs, and then the one in the middle of what it pairs.
_TRIES = 2
# The share of vertices with a partner from which a body counts as symmetric.
_SYMMETRIC = 0.8
# The least cosine between the weights of a bone and the mirror image of those of its partner.
_SAME = 0.7
# The same for bones that have no such partner: each other's versions on the two sides.
_LIKELY = 0.4
# A part in the middle with a limb on one side leads at least this share of its own mirror image.
_OWN_IMAGE = 0.15
# At least this share of the rest of that image belongs to the bones of the limb.
_OF_LIMB = 0.5
# A bone belongs to the limb if at least this share of its own image is in that part.
_IN_IMAGE = 0.8
# A bone that leads at least this share of its own mirror image is in the middle, though it is not symmetric.
_MIDDLE = 0.5
# Of the diagonal: joints farther from each other's mirror images than this are not of the same place.
_FARTHEST = 0.15


def mirror_symmetry(rest: np.ndarray) -> tuple[float, np.ndarray | None]:
    """The x of the plane in which vertices (N, 3) mirror each other, and (N,) the vertex nearest to the mirror image of
    each, −1 where none is near; None on a body without symmetry. A vertex may be nearest to several.

    The plane is in the middle of the body, or, of one that holds a sword, where most vertices have an image.
    """
    tree, tolerance = cKDTree(rest), _TOLERANCE * diagonal(rest)
    plane = float(0.5 * (rest[:, 0].min() + rest[:, 0].max()))
    gaps, pairs = tree.query(mirrored(rest, plane))
    if (gaps > tolerance).any():
        other = _plane_of_most(rest, tolerance)
        for _ in range(_TRIES):
            others, images = tree.query(mirrored(rest, other))
            near = others <= tolerance
            # How far off vertices without an image are says nothing.
            if np.minimum(others, tolerance).sum() < np.minimum(gaps, tolerance).sum():
                plane, gaps, pairs = other, others, images
            if not near.any():
                break
            other = float(np.median(0.5 * (rest[near, 0] + rest[images[near], 0])))
    near = gaps <= tolerance
    return plane, np.where(near, pairs, -1) if np.count_nonzero(near) >= _SYMMETRIC * len(rest) else None


def _plane_of_most(rest: np.ndarray, tolerance: float) -> float:
    """The x in the middle between most vertices (N, 3) that are side by side."""
    sample = np.arange(0, len(rest), max(1, len(rest) // _SAMPLE))
    distances, beside = cKDTree(rest[:, 1:]).query(rest[sample, 1:], min(_BESIDE, len(rest)))
    distances, beside = distances.reshape(len(sample), -1), beside.reshape(len(sample), -1)
    # A vertex is its own image if it is in the plane.
    middles = np.sort(0.5 * (rest[sample, :1] + rest[beside, 0])[distances <= tolerance])
    # The narrow window that holds most of them: those of vertices that mirror each other are at one place.
    counts = np.searchsorted(middles, middles + _WINDOW * tolerance, "right") - np.arange(len(middles))
    first = int(counts.argmax())
    return float(np.median(middles[first : first + counts[first]]))


def nearest_images(rest: np.ndarray, pairs: np.ndarray, plane: float) -> np.ndarray:
    """``pairs`` (N,) of ``mirror_symmetry``, with the vertex nearest to the mirror image in x = ``plane`` where a
    vertex of ``rest`` (N, 3) has no partner."""
    alone, pairs = np.flatnonzero(pairs < 0), pairs.copy()
    pairs[alone] = cKDTree(rest).query(mirrored(rest[alone], plane))[1]
    return pairs


def mirrored_bones(
    rest: np.ndarray, pairs: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int, triangles: np.ndarray
) -> np.ndarray:
    """(P,) the bone that mirrors each bone in x, itself in the middle, −1 without one.

    rest (N, 3); pairs (N,): of ``mirror_symmetry``; bones, weights (N, K); triangles (T, 3): where there
    are any, vertices count by their areas, as those of fingers are many.
    """
    paired = np.flatnonzero(pairs >= 0)
    areas = vertex_areas(rest, triangles)
    areas = areas if areas.any() else np.ones(len(rest))
    # As much on both sides, however they are triangulated.
    areas[paired] = 0.5 * (areas[paired] + areas[pairs[paired]])
    every = weight_matrix(bones, weights, bone_count)
    counted = diags(areas[paired]) @ every[paired]
    sizes = np.sqrt(np.asarray(counted.multiply(every[paired]).sum(axis=0))).ravel()
    common, most = (counted.T @ every[pairs[paired]]).toarray(), sizes[:, None] * sizes
    # Several vertices may have one nearest image.
    alike = np.divide(0.5 * (common + common.T), most, out=np.zeros_like(most), where=most > 0)
    partners = np.full(bone_count, -1)
    _match(partners, alike, _SAME)
    middle = (partners < 0) & _with_limbs_of_one_side(_images(pairs, areas, bones, weights, bone_count))
    partners[middle] = np.flatnonzero(middle)
    # One that is left on either side is that side's version of the other.
    np.fill_diagonal(alike, 0.0)
    _match(partners, alike, _LIKELY)
    return partners


def lone_bones(
    pairs: np.ndarray, partners: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bones (n,) of one side that have no partner, the largest first, and their carriers (n,), which lead their images.

    pairs (N,): from ``mirror_symmetry``; partners (P,): from ``mirrored_bones``; bones, weights (N, K).
    """
    images = _images(pairs, np.ones(len(pairs)), bones, weights, len(partners))
    sizes = images.sum(axis=1)
    lone = np.flatnonzero((partners < 0) & (images.diagonal() < _MIDDLE * sizes))
    lone = lone[np.argsort(-sizes[lone], kind="stable")]
    return lone, images[lone].argmax(axis=1)


def _images(
    pairs: np.ndarray, areas: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int
) -> np.ndarray:
    """(P, P) how much of the vertices that each bone leads has mirror images that another one leads, by ``areas``
    (N,)."""
    leading, paired = strongest_bones(bones, weights), np.flatnonzero(pairs >= 0)
    images = np.zeros((bone_count, bone_count))
    np.add.at(images, (leading[paired], leading[pairs[paired]]), areas[paired])
    return images


def _with_limbs_of_one_side(images: np.ndarray) -> np.ndarray:
    """(P,) bool: bones of a part in the middle and of limbs that stand still against it, such as a trunk with one arm.

    images (P, P): see ``_images``.
    """
    own, sizes = images.diagonal(), images.sum(axis=1)
    # [bone, bone that has the most of its image]
    of_limb = _IN_IMAGE * np.where(sizes > 0, sizes, np.inf) <= images.T
    rest = sizes - own
    limbs = np.where(of_limb, images, 0.0).sum(axis=1) - np.where(of_limb.diagonal(), own, 0.0)
    return (sizes > 0) & (own >= _OWN_IMAGE * sizes) & (limbs >= _OF_LIMB * rest) & (rest > 0)


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
