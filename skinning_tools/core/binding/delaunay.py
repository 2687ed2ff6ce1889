# SPDX-License-Identifier: GPL-3.0-or-later
"""DELAUNAY: distances to bones along edges of tetrahedra inside of the body, not across the gap to the next limb.

The space between skin and bones is broken up into tetrahedra; their edges are traversed from points on the bones to the
vertices (Shin & Shin 2000). A bone reaches a vertex only where it, or its parent or child, is the closest
topological neighbor; of these few bones, the distance decides which ones the vertex belongs to.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import Delaunay, QhullError, cKDTree

from ..grouping import ranges
from ..progress import Progress, checkpoint, ignore, span
from .assignment import Assignment, Request, assigned, nearly_best
from .distances import TIE, BoneDistances
from .types import Body, Skeleton, weld

# Bones up to this share further than the nearest candidate take part.
_MARGIN = 0.1

# Points on a bone lie half a limb's radius apart, with at most this number for a bone.
_SPACING = 0.5
_MOST_SAMPLES = 32

# An edge is inside of the body where it leaves a vertex at least this steeply below the surface (a sine: 6°). Along a
# flat surface, the edges of the mesh are used.
_STEEPEST = 0.1

# A bone is also a candidate where a path that leaves the shortest path within this many edges is at most this factor
# longer.
_EDGES = 2
_DETOUR = 1.25

# Larger numbers of places are thinned out, as memory grows with the tetrahedra; the mesh's edges lead to the others.
_MOST_PLACES = 50_000

# Points are perturbed by at most this share of the scale, in waves of about a thousandth of it; points nearer to a
# coordinate plane than the last share are perturbed less.
_SHAKE = 1e-6
_WAVES = 1e3
_IN_PLANE = 1e-5

# Points whose thickness is below this share of their extent lie in a plane.
_THIN = 1e-5

# Tetrahedra with one circumsphere, to this share of its radius, are one cell; beyond so many corners they stay apart.
_COSPHERICAL = 1e-8
_MOST_CORNERS = 64

# Most places that may be equally near to a point on a bone.
_MOST_NEAREST = 8

_STAGE = "Traversing tetrahedra"


def assign(request: Request, progress: Progress = ignore) -> Assignment:
    """Shares by distance to the bones that are topological neighbors."""
    distances, limits = request.distances, request.limits
    near = topological_neighbors(request.body, distances, request.skeleton, span(progress, 0.0, 0.7))

    def block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        scores = np.where(near[rows].toarray(), distances.facing(rows), np.inf)
        scores = limits.applied(rows, scores)
        return nearly_best(scores, _MARGIN), scores.min(axis=1)

    return assigned(distances, block, span(progress, 0.7, 1.0), _STAGE)


def topological_neighbors(
    body: Body, distances: BoneDistances, skeleton: Skeleton, progress: Progress = ignore
) -> sparse.csr_matrix:
    """(W, P) bool: the bones that are candidates for each place, at least one for each. Raises Cancelled."""
    checkpoint(progress, 0.0, _STAGE)
    samples, owners = bone_samples(distances, skeleton)
    count = len(distances.points)
    chosen = np.arange(count) if count <= _MOST_PLACES else _thinned(distances)
    graph, bones = _graph(body, distances, chosen, samples, owners)
    checkpoint(progress, 0.6, _STAGE)
    lengths, closest = _closest(graph, bones, distances.scale)
    checkpoint(progress, 0.8, _STAGE)
    near, closest = _nearly_closest(graph, lengths, closest)[:count], closest[:count]
    # Bones outside of the body, to which no place is closest, are not passed on to their relatives.
    present = sparse.diags((closest.getnnz(axis=0) > 0).astype(np.float32))
    near = _pattern(near + closest @ _kin(skeleton) @ present)
    reached = np.flatnonzero(np.diff(near.indptr))
    if len(reached) == 0:
        return sparse.csr_matrix(np.ones((count, len(skeleton)), bool))
    if len(reached) < count:
        # For example clothes over a body, which hides the bones: they take the nearest place that bones reach.
        near = near[reached[cKDTree(distances.points[reached]).query(distances.points)[1]]]
    return near.astype(bool)


def bone_samples(distances: BoneDistances, skeleton: Skeleton) -> tuple[np.ndarray, np.ndarray]:
    """Points (S, 3) on the bones, about ``distances.middle``, and the bone of each (S,)."""
    points, owners = [], []
    for bone, (_, near) in enumerate(distances.owned(distances.plain)):
        radius = np.median(near) if len(near) else skeleton.lengths[bone]
        wanted = skeleton.lengths[bone] / (_SPACING * radius) if radius > 0 else 1.0
        # Slightly less, so that rounding does not give a bone and its mirror image different numbers.
        count = int(np.clip(np.ceil(wanted - 1e-6), 1, _MOST_SAMPLES))
        share = (np.arange(count)[:, None] + 0.5) / count
        points.append(skeleton.heads[bone] + share * skeleton.axes[bone])
        owners.append(np.full(count, bone))
    return np.concatenate(points) - distances.middle, np.concatenate(owners)


def _thinned(distances: BoneDistances) -> np.ndarray:
    """``_MOST_PLACES`` places, practically at random, but a place and its mirror image are chosen alike."""
    grid = np.round(np.abs(distances.points) / (TIE * distances.scale)).astype(np.int64)
    # Fractions of multiples of irrational numbers are spread evenly.
    spread = np.modf(grid @ np.sqrt([2.0, 3.0, 5.0]))[0]
    return np.sort(np.argsort(spread, kind="stable")[:_MOST_PLACES])


def _graph(
    body: Body, distances: BoneDistances, chosen: np.ndarray, samples: np.ndarray, owners: np.ndarray
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Lengths of edges (M, M) between nodes, the places and then the samples beside them, and their bones (M, P)."""
    places, scale = len(distances.points), distances.scale
    gaps, nearest = cKDTree(distances.points).query(samples, k=range(1, min(places, _MOST_NEAREST) + 1))
    beside = gaps[:, 0] > TIE * scale
    node = nearest[:, 0].copy()
    apart = weld(samples[beside], TIE * scale)
    node[beside] = places + apart
    new = samples[beside][np.unique(apart, return_index=True)[1]]
    points = np.concatenate([distances.points, new])
    sample, rank = np.nonzero(beside[:, None] & (gaps <= gaps[:, :1] * (1 + TIE)))
    surface = np.column_stack([node[sample], nearest[sample, rank]])
    bones = sparse.csr_matrix((np.ones(len(owners), np.float32), (node, owners)), shape=(len(points), distances.count))
    used = np.concatenate([chosen, np.arange(places, len(points))])
    pairs = _tetrahedra_edges(_shaken(points[used], scale))
    if pairs is not None:
        pairs = used[pairs]
    # With all points in a plane, or too few for tetrahedra, the surface leads on from the place nearest to each bone.
    leads = _other_pairs(surface if pairs is None else pairs, body.place_edges, len(points))
    if pairs is not None:
        leads = leads[_inside(distances, points, leads)]
    first, second = np.concatenate([body.place_edges, leads]).T
    lengths = np.linalg.norm(points[first] - points[second], axis=1)
    half = sparse.coo_matrix((np.maximum(lengths, 1e-9 * scale), (first, second)), shape=(len(points),) * 2)
    return (half + half.T).tocsr(), bones


def _other_pairs(pairs: np.ndarray, known: np.ndarray, count: int) -> np.ndarray:
    """(E, 2) each of ``pairs`` of 0 … count − 1 once, the first less than the second, without those of ``known``."""
    keys = np.unique(pairs.min(axis=1) * count + pairs.max(axis=1))
    keys = keys[~np.isin(keys, known[:, 0] * count + known[:, 1], assume_unique=True)]
    return np.column_stack([keys // count, keys % count])


def _shaken(points: np.ndarray, scale: float) -> np.ndarray:
    """``points`` (n, 3), slightly perturbed, a point and its mirror images in the coordinate planes alike.

    The time for tetrahedra grows with the square of the number of points if these lie in rows and columns.
    """
    share = np.abs(points) / scale
    shake = np.sin(share @ (_WAVES * np.sqrt([[2, 3, 5], [7, 11, 13], [17, 19, 23]])))
    # Points in a coordinate plane stay in it.
    return points + _SHAKE * scale * shake * np.clip(points / (_IN_PLANE * scale), -1, 1)


def _tetrahedra_edges(points: np.ndarray) -> np.ndarray | None:
    """(E, 2) pairs of ``points`` (n, 3) that are corners of one Delaunay cell; None where there are no cells.

    Points on one sphere, as any three are with their mirror images, have several tetrahedralizations. All of their
    pairs count, so that none is preferred and symmetry is kept.
    """
    spread = points - points.mean(axis=0)
    thickness = np.sqrt(np.maximum(np.linalg.eigvalsh(spread.T @ spread / len(points)), 0))
    if thickness[0] <= _THIN * thickness[2]:
        return None
    try:
        mesh = Delaunay(points)
    except QhullError:
        return None
    corners = mesh.simplices
    cell = _cells(points, corners, mesh.neighbors)
    sizes = np.bincount(cell)
    several = sizes[cell] > 1
    pairs = [corners[~several][:, [a, b]] for a, b in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]
    if several.any():
        rank = np.cumsum(sizes > 1) - 1
        rows = np.repeat(rank[cell[several]], 4)
        has = _pattern(sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, corners[several].ravel()))))
        together = sparse.triu(has.T @ has, k=1).tocoo()
        pairs.append(np.column_stack([together.row, together.col]))
    return np.concatenate(pairs)


def _cells(points: np.ndarray, corners: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """(C,) the cell of each tetrahedron: connected tetrahedra with the same circumsphere."""
    origin = points[corners[:, 0]]
    edges = points[corners[:, 1:]] - origin[:, None]
    squares = np.einsum("cij,cij->ci", edges, edges)
    # Cramer's rule: the center has the same distance from all corners and the origin.
    across = np.stack([np.cross(edges[:, 1], edges[:, 2]), np.cross(edges[:, 2], edges[:, 0])], axis=1)
    across = np.concatenate([across, np.cross(edges[:, 0], edges[:, 1])[:, None]], axis=1)
    volume = np.einsum("ci,ci->c", edges[:, 0], across[:, 0])
    flat = np.abs(volume) <= 1e-9 * squares.max(axis=1) ** 1.5
    center = np.einsum("ci,cij->cj", squares, across) / np.where(flat, 1, 2 * volume)[:, None]
    radius = np.linalg.norm(center, axis=1)
    center += origin
    tetrahedron, side = np.nonzero((neighbors >= 0) & ~flat[:, None])
    other = neighbors[tetrahedron, side]
    # The neighbor's corner that is not of this tetrahedron: the sum of its corners less the three that they share.
    opposite = corners[other].sum(axis=1) - corners[tetrahedron].sum(axis=1) + corners[tetrahedron, side]
    off = np.linalg.norm(points[opposite] - center[tetrahedron], axis=1) - radius[tetrahedron]
    one = (np.abs(off) <= _COSPHERICAL * radius[tetrahedron]) & ~flat[other]
    links = sparse.coo_matrix((np.ones(one.sum(), bool), (tetrahedron[one], other[one])), shape=(len(corners),) * 2)
    cell = connected_components(links, directed=False)[1]
    # n corners have at least n − 3 tetrahedra.
    huge = np.bincount(cell)[cell] > _MOST_CORNERS - 3
    cell[huge] = cell.max() + 1 + np.arange(huge.sum())
    return np.unique(cell, return_inverse=True)[1].reshape(-1)


def _inside(distances: BoneDistances, points: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(E,) bool: edges that run below the surface at both ends. Edges between two samples are not: bones of different
    limbs may see each other."""
    along = points[pairs[:, 1]] - points[pairs[:, 0]]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    on_surface = pairs < len(distances.points)
    inward = np.any(on_surface, axis=1)
    for side, direction in ((0, along), (1, -along)):
        judged = np.flatnonzero(inward & on_surface[:, side])
        inward[judged] = distances.surface.below(pairs[judged, side], direction[judged]) >= _STEEPEST
    return inward


def _closest(graph: sparse.csr_matrix, bones: sparse.csr_matrix, scale: float) -> tuple[np.ndarray, sparse.csr_matrix]:
    """The distance (M,) along ``graph`` from each node to the nearest bone, infinite without a path; and those bones
    (M, P), several where they are equally near. bones (M, P): the bones at each node."""
    sources = np.flatnonzero(np.diff(bones.indptr))
    length, _, source = dijkstra(graph, indices=sources, min_only=True, return_predecessors=True)
    reached = np.flatnonzero(np.isfinite(length))
    start = sparse.csr_matrix((np.ones(len(reached), np.float32), (reached, source[reached])), shape=graph.shape)
    near = _pattern(start @ bones)
    # The search has chosen one of several shortest paths; take the bones of the others, too.
    edges = graph.tocoo()
    with np.errstate(invalid="ignore"):  # the difference of two infinities: not tight
        tight = (np.abs(length[edges.row] + edges.data - length[edges.col]) <= TIE * scale) & (length[edges.col] > 0)
    into = sparse.csr_matrix(
        (np.ones(tight.sum(), np.float32), (edges.col[tight], edges.row[tight])), shape=graph.shape
    )
    while True:
        more = _pattern(near + into @ near)
        if more.nnz == near.nnz:
            return length, near
        near = more


def _nearly_closest(graph: sparse.csr_matrix, lengths: np.ndarray, closest: sparse.csr_matrix) -> sparse.csr_matrix:
    """(M, P) the ``closest`` bones of each node, and those of nodes a few edges away if the path through them is hardly
    longer: around joints, where a small difference in path length is no reason."""
    ways, found = graph.tocoo(), closest.tocoo()
    node, bone, length = found.row.astype(np.int64), found.col.astype(np.int64), lengths[found.row]
    for _ in range(_EDGES):
        # Every edge, with every bone at its far end.
        count = np.bincount(node, minlength=len(lengths))
        several = count[ways.col]
        item = ranges((np.cumsum(count) - count)[ways.col], several)
        here = np.repeat(ways.row.astype(np.int64), several)
        detour = np.repeat(ways.data, several) + length[item]
        short = detour <= _DETOUR * lengths[here]
        node, length = np.append(node, here[short]), np.append(length, detour[short])
        bone = np.append(bone, bone[item[short]])
        # The shortest path to each bone, sorted by nodes again.
        order = np.lexsort((length, bone, node))
        order = order[np.diff(node[order] * closest.shape[1] + bone[order], prepend=-1) > 0]
        node, bone, length = node[order], bone[order], length[order]
    return sparse.csr_matrix((np.ones(len(node), np.float32), (node, bone)), shape=closest.shape)


def _kin(skeleton: Skeleton) -> sparse.csr_matrix:
    """(P, P): 1 between parents and children."""
    children = np.flatnonzero(skeleton.parents >= 0)
    parents = skeleton.parents[children]
    ones = np.ones(2 * len(children), np.float32)
    ends = np.concatenate([children, parents]), np.concatenate([parents, children])
    return sparse.csr_matrix((ones, ends), shape=(len(skeleton),) * 2)


def _pattern(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Ones where ``matrix`` has a number."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
