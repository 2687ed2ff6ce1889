# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of bulge bones: soft regions for bones that only shape the skin (smooth skinning chapter, on muscles)."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from ..decomposition.weights import closest_on_simplex
from ..errors import BadSettings
from ..smooth_step import smooth_step
from .influence_rows import tidy_influences
from .types import Body

# From this share of the limb on, cloth follows in full; across, up to the first share of the radius, and not beyond
# the second.
_FULL_BELOW = 0.2
_CLOTH_FULL, _CLOTH_END = 0.25, 0.85
# So far out, as shares of the center's distance, it begins to follow, and follows in full: cloth at the sides of a
# limb is taken along.
_BEHIND, _BEFORE = -0.5, 0.25


def soft_region(body: Body, center: np.ndarray, radius: float, *, along_surface: bool = True) -> np.ndarray:
    """(N,) from 1 at ``center`` (3,) to 0 at ``radius`` from it, with level ends; in the mesh's space and units.

    along_surface: distances run over the skin, so that the other side of a thin limb and other parts nearby stay
    out, and a center off the skin moves to its nearest point; these distances are up to a tenth too long. Otherwise
    straight through space. Welded vertices get the same. Raises BadSettings where the radius is not positive.
    """
    if not (radius > 0 and np.isfinite(radius)):
        raise BadSettings(f"The radius must be above 0, not {radius:g}")
    center = np.asarray(center, dtype=np.float64)
    distances = _over_the_skin(body, center, radius) if along_surface else np.linalg.norm(body.points - center, axis=1)
    return smooth_step(1.0 - distances / radius)[body.place]


def draped_region(
    points: np.ndarray, head: np.ndarray, limb: np.ndarray, center: np.ndarray, radius: float
) -> np.ndarray:
    """(N,) from 0 to 1: the cloth around a limb that swings toward the ``center`` (3,) of the cloth's side.

    points (N, 3); head (3,), limb (3,): the vector from there to its end. All cloth below the limb's head counts, from
    a fifth of the limb on in full; across the limb it is full up to a quarter of the ``radius`` and fades out before
    it; toward the center it is full from a quarter of that distance on, and none behind the limb. Raises BadSettings
    where the radius is not positive, or the center on the limb.
    """
    length = float(np.linalg.norm(limb))
    along = np.asarray(limb, dtype=np.float64) / length
    toward = np.asarray(center, dtype=np.float64) - head
    toward = toward - along * (along @ toward)
    gap = float(np.linalg.norm(toward))
    if not (radius > 0 and np.isfinite(radius) and gap > 1e-9 * length):
        raise BadSettings("Cloth needs a radius above 0, and a center beside the limb that pushes it")
    toward = toward / gap
    offsets = np.asarray(points, dtype=np.float64) - head
    below = smooth_step(offsets @ along / length / _FULL_BELOW)
    beside = smooth_step((_CLOTH_END - np.abs(offsets @ np.cross(along, toward)) / radius) / (_CLOTH_END - _CLOTH_FULL))
    return below * beside * smooth_step((offsets @ toward / gap - _BEHIND) / (_BEFORE - _BEHIND))


def add_soft_bone(
    bones: np.ndarray,
    weights: np.ndarray,
    bone: int,
    region: np.ndarray,
    *,
    strength: float = 1.0,
    carrier: int | None = None,
    max_influences: int = 4,
    locked: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """bones int32 and weights (N, K) with ``bone`` taking ``strength`` × ``region`` (N,) of each vertex.

    carrier: the bone that carries the new one. Only the carrier gives weight, so that nothing moves while the new bone
    is at rest on it; it first gets back what the new bone may have taken before. None: all bones give equally, which
    makes a region stiffer where several bones bend it. Weights of bones ``locked`` (P,) stay. Rows keep to
    ``max_influences``. Raises BadSettings where the strength is not from 0 to 1.
    """
    if not 0 <= strength <= 1:
        raise BadSettings(f"The strength must be from 0 to 1, not {strength:g}")
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if carrier is None:
        giving = bones != bone
    else:
        bones = np.where(bones == bone, carrier, bones)
        giving = bones == carrier
    if locked is not None:
        giving = giving & ~np.asarray(locked)[bones]
    taken = np.where(giving, weights * strength * np.asarray(region)[:, None], 0.0)
    new_bones = np.hstack([bones, np.full((len(bones), 1), bone)])
    new_weights = np.hstack([weights - taken, taken.sum(axis=1, keepdims=True)])
    return tidy_influences(new_bones, new_weights, max_influences, locked)


def _over_the_skin(body: Body, center: np.ndarray, radius: float) -> np.ndarray:
    """(W,) distances from ``center`` (3,) over edges and unfolded pairs of triangles, inf beyond ``radius``."""
    center, around = _onto_the_skin(body, center)
    graph = body.edge_graph + _across(body)
    # The corners around the center and their neighbors are seen from it directly.
    near = np.union1d(graph[around].indices, around)
    straight = np.linalg.norm(body.points - center, axis=1)
    spokes = sparse.csr_matrix((straight[near] + 1e-12 * radius, (np.zeros(len(near), int), near)), (1, len(straight)))
    whole = sparse.bmat([[None, spokes], [spokes.T, graph]], format="csr")
    return np.maximum(dijkstra(whole, directed=False, indices=0, limit=radius)[1:], straight)


def _onto_the_skin(body: Body, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The point (3,) of the skin nearest to ``center``, and the places around it: those of the triangles that it is on,
    or the nearest one."""
    corners = body.points[body.place_triangles] - center
    place = int(np.argmin(np.linalg.norm(body.points - center, axis=1)))
    if len(corners) == 0:
        return body.points[place], np.array([place])
    gram = np.einsum("tid,tjd->ijt", corners, corners)
    weights, squared = closest_on_simplex(gram, np.zeros(gram.shape[1:]))
    nearest = int(np.argmin(squared))
    point = weights[:, nearest] @ corners[nearest] + center
    if np.linalg.norm(point - center) > np.linalg.norm(body.points[place] - center):
        return body.points[place], np.array([place])
    # On an edge, only rounding tells which of its triangles is the nearest.
    beside = squared <= squared[nearest] + 1e-12 * np.einsum("iit->t", gram)
    return point, np.unique(body.place_triangles[beside])


def _across(body: Body) -> sparse.csr_matrix:
    """(W, W): the straight way between the corners across from an edge, over its two triangles laid flat.

    Without it, distances over edges depend on how the mesh is triangulated; where the way would leave the two
    triangles, and at edges of other than two triangles, there is none.
    """
    size = len(body.points)
    triangles = body.place_triangles
    sides = np.sort(triangles[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    _, edge, shared = np.unique(sides @ [size, 1], return_inverse=True, return_counts=True)
    order = np.argsort(edge.reshape(-1), kind="stable")
    starts = (np.cumsum(shared) - shared)[shared == 2]
    sides, corners = sides[order[starts]], triangles.ravel()[order[[starts, starts + 1]]]
    origin = body.points[sides[:, 0]]
    along = body.points[sides[:, 1]] - origin
    length = np.linalg.norm(along, axis=1)
    offsets = body.points[corners] - origin
    x = np.einsum("kij,ij->ki", offsets, along) / length
    height = np.sqrt(np.maximum(np.einsum("kij,kij->ki", offsets, offsets) - x * x, 0.0))
    total = height.sum(axis=0)
    crossing = np.divide((x * height[::-1]).sum(axis=0), total, out=np.full(len(length), -1.0), where=total > 0)
    straight = (crossing > 0) & (crossing < length) & (corners[0] != corners[1])
    first, second = np.sort(corners[:, straight], axis=0)
    distance = np.hypot(x[0] - x[1], total)[straight]
    # If several paths join two corners, one is enough; the shortest is an edge, where there is one.
    pairs, kept = np.unique(first * size + second, return_index=True)
    new = ~np.isin(pairs, body.place_edges @ [size, 1])
    first, second, distance = first[kept[new]], second[kept[new]], distance[kept[new]]
    half = sparse.coo_matrix((distance, (first, second)), shape=(size, size))
    return (half + half.T).tocsr()
