# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation: for each vertex the center of the surface with similar weights.

Source: Le & Hodgins 2016, "Real-time skeletal skinning with optimized centers of rotation", and its evaluation of
2019, equations 6, 9 and 10. The center of a vertex depends on its weights alone.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from .animation import check_triangles
from .binding.influence_rows import padded_influences
from .binding.types import weld
from .center_sums import Surface, Targets, summed
from .deform.influences import convex_influences, weight_matrix
from .dense import one_blas_thread
from .errors import BadMesh, BadSettings, BadWeights
from .geometry import MIRROR_X, diagonal
from .progress import Progress, checkpoint, ignore, span

# A vertex is summed again without interpolation if interpolation could move its center by more than this share of the
# mesh.
_CENTER_TOLERANCE = 1e-7

# How far a vertex may be from another's mirror image, as a share of the bounding box's diagonal; vertices closer than
# the second share of that are at one place.
_MIRROR_TOLERANCE, _COINCIDENT = 1e-4, 1e-3


def bake_rotation_centers(
    rest: np.ndarray,
    triangles: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    *,
    sigma: float = 0.1,
    subdivision_epsilon: float = 0.1,
    progress: Progress = ignore,
    name: str = "the mesh",
) -> tuple[np.ndarray, np.ndarray]:
    """Center of rotation of every vertex, from the complete sum over the surface.

    rest (N, 3), triangles (T, 3), bones and weights (N, K); weights are divided by their sums. sigma: how similar
    weights must be to count. subdivision_epsilon: triangles whose corners' weights differ by more than this are summed
    in finer pieces; 0 takes each as a whole.

    Returns centers (N, 3) float32 and valid (N,) bool. Vertices with the same weights, such as the two sides of a seam,
    have the same center, bit for bit. A vertex that follows fewer than two bones, or whose pair of bones no face
    shares, has its rest position and False. Faces without area and vertices without faces are allowed.
    Raises BadMesh, BadWeights (no weights; no vertex with two bones), BadSettings and Cancelled; messages use ``name``.
    """
    if not (np.isfinite(sigma) and sigma > 0):
        raise BadSettings(f"Sigma must be greater than zero, not {sigma:g}")
    if not (np.isfinite(subdivision_epsilon) and subdivision_epsilon >= 0):
        raise BadSettings(f"The subdivision threshold must be zero (off) or greater, not {subdivision_epsilon:g}")
    rest, triangles = _checked_mesh(rest, triangles, name)
    matrix = _checked_weights(bones, weights, len(rest), name)
    targets = Targets.of(matrix)
    surface = Surface.of(rest, triangles, matrix, subdivision_epsilon)
    if surface is None:
        raise BadMesh(f"No face of {name} has an area, so there is no surface to take centers from")
    with one_blas_thread():
        sums, doubt = summed(targets, surface, sigma, False, span(progress, 0.0, 0.95))
        # If hardly any surface has similar weights, interpolation errors of the rest may show.
        unsure = doubt > _CENTER_TOLERANCE * sums[:, 3]
        if unsure.any():
            sums[unsure], _ = summed(targets.only(unsure), surface, sigma, True, span(progress, 0.95, 1.0))
        found = sums[:, 3] > np.finfo(float).tiny
        if not found.any() and summed(targets, surface, 1.0, False, ignore)[0][:, 3].any():
            raise BadSettings("Sigma is so small that no vertex finds a center. Raise it to 0.01 or more")
    centers, valid = rest.astype(np.float32), np.zeros(len(rest), bool)
    own = targets.own
    valid[own >= 0] = found[own[own >= 0]]
    middles = np.divide(sums[:, :3], sums[:, 3:], out=np.zeros((len(sums), 3)), where=found[:, None])
    centers[valid] = surface.to_object_space(middles)[own[valid]]
    checkpoint(progress, 1.0, "Centers of rotation")
    return centers, valid


def joined_skins(
    skins: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Several meshes of a character as one, for ``bake_rotation_centers``: rest, triangles, bones and weights, with the
    vertices in the order of the meshes.

    skins: the four arrays of each mesh, at least one; positions in one space, bones numbered alike.
    """
    starts = np.cumsum([0] + [len(skin[0]) for skin in skins[:-1]])
    width = max(np.shape(skin[2])[1] for skin in skins)
    rows = [padded_influences(bones, weights, width) for _, _, bones, weights in skins]
    return (
        np.concatenate([skin[0] for skin in skins]),
        np.concatenate([np.asarray(skin[1]) + start for skin, start in zip(skins, starts, strict=True)]),
        np.concatenate([bones for bones, _ in rows]),
        np.concatenate([weights for _, weights in rows]),
    )


def check_positions(rest: np.ndarray, name: str) -> None:
    """Raises BadMesh if one of the positions (N, 3) of the mesh ``name`` is not a number."""
    finite = np.isfinite(rest).all(axis=1)
    if not finite.all():
        raise BadMesh(
            f"Vertex {int(np.argmin(finite))} of {name} has a position that is not a number (NaN or infinite). "
            "Move it, or delete it"
        )


def fingerprint(rest: np.ndarray, triangles: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> str:
    """A checksum of everything that centers of rotation depend on, except their settings.

    Arrays as for ``bake_rotation_centers``. The order of a vertex's influences, unused influences and the scale
    of its weights do not count. Raises BadWeights as ``convex_influences``.
    """
    matrix = _weight_matrix(*convex_influences(bones, weights, len(rest)))
    digest = hashlib.sha256()
    parts = (
        (np.asarray(rest) + 0.0, "<f4"),
        (triangles, "<i4"),
        (matrix.indptr, "<i4"),
        (matrix.indices, "<i4"),
        # Dividing by the sum leaves a rounding error that depends on the sum.
        (matrix.data, "<f4"),
    )
    for values, kind in parts:
        values = np.ascontiguousarray(values, dtype=kind)
        digest.update(str(values.shape).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def mirror_pairs(rest: np.ndarray) -> np.ndarray:
    """(N,) int: for each vertex the vertex at its mirror image in X, itself on the mirror plane, −1 where none is.

    Pairs are mutual, except for vertices at one place, as on a split seam: all of them have a partner at the image of
    that place.
    """
    rest = np.asarray(rest, dtype=np.float64)
    limit = _MIRROR_TOLERANCE * diagonal(rest)
    place = weld(rest, _COINCIDENT * limit)
    points = rest[np.unique(place, return_index=True)[1]]
    distances, nearest = cKDTree(points).query(points * MIRROR_X)
    places = np.arange(len(points))
    # A place on the plane is its own image, whichever nearby place the search has found.
    nearest = np.where(np.abs(points[:, 0]) <= 0.5 * limit, places, nearest)
    nearest = np.where((distances <= limit) & (nearest[nearest] == places), nearest, -1)
    # Vertices by their places: the first at one place belongs to the first at the other, and so on.
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place, minlength=len(points))
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(rest), int)
    rank[order] = np.arange(len(rest)) - starts[place[order]]
    partner = nearest[place]
    return np.where(partner >= 0, order[starts[partner] + rank % counts[partner]], -1)


def symmetrized(centers: np.ndarray, valid: np.ndarray, mirrored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric centers: each is the mean of the vertex's own and its partner's mirrored center.

    mirrored (N,): from ``mirror_pairs``. A vertex without a center takes its partner's mirrored center; a vertex
    without a partner keeps its own. The arguments do not change.
    """
    paired = np.asarray(mirrored) >= 0
    partners = np.where(paired, mirrored, np.arange(len(centers)))
    images = np.asarray(centers, dtype=np.float64)[partners] * MIRROR_X
    theirs = paired & valid[partners]
    result = np.array(centers, dtype=np.float32)
    both, only_theirs = valid & theirs, ~valid & theirs
    result[both] = 0.5 * (centers[both] + images[both])
    result[only_theirs] = images[only_theirs]
    return result, valid | theirs


def _weight_matrix(bones: np.ndarray, weights: np.ndarray) -> sparse.csr_matrix:
    """(N, P) in canonical form: bones sorted, none twice, none with weight 0."""
    # A copy: the matrix shares its memory with the caller's arrays.
    matrix = weight_matrix(bones, weights, int(bones.max(initial=0)) + 1).copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _checked_mesh(rest: np.ndarray, triangles: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    rest = np.asarray(rest, dtype=np.float64).reshape(-1, 3)
    triangles = np.asarray(triangles, dtype=np.int64).reshape(-1, 3)
    check_positions(rest, name)
    check_triangles(triangles, len(rest), name)
    if len(triangles) == 0:
        raise BadMesh(f"There are no faces in {name}, but centers of rotation are computed from the surface. Add faces")
    return rest, triangles


def _checked_weights(bones: np.ndarray, weights: np.ndarray, vertex_count: int, name: str) -> sparse.csr_matrix:
    matrix = _weight_matrix(*convex_influences(bones, weights, vertex_count, name=name))
    if matrix.nnz == 0:
        raise BadWeights(f"No vertex of {name} has a weight. Assign vertex groups named as the bones first")
    if np.diff(matrix.indptr).max() < 2:
        raise BadWeights(
            f"Nothing needs a center of rotation: every vertex of {name} follows one bone only, and moves with it "
            "whatever its center is. Enable Deform on the other bones if they have weights"
        )
    return matrix
