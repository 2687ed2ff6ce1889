# SPDX-License-Identifier: GPL-3.0-or-later
"""The first segmentation: one bone for each vertex (Kavan et al. 2010, section 4.1).

Seed triangles spread over the mesh by p-center, their deformation gradients, regions that grow from them over the mesh
with a priority queue; then a few rounds of fitting a motion to each region and giving each vertex to the best one.
"""

import heapq

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.spatial

from ..dense import product
from ..geometry import triangle_areas
from ..progress import Progress, checkpoint, ignore
from ..threads import for_each
from .bone_model import BoneModel, homogeneous
from .reduction import AnimationMatrix, Reduction

_BLOCK_VERTICES = 2048
# As a share of a vertex's own ‖y‖²: smaller errors come from single precision, and must not order the queue.
_NO_ERROR = 1e-12
_STAGE = "Segmenting"


def grow_regions(
    matrix: AnimationMatrix,
    reduction: Reduction,
    rest: np.ndarray,
    triangles: np.ndarray,
    bone_count: int,
    progress: Progress = ignore,
    *,
    outermost_first: bool = False,
    seeds: np.ndarray | None = None,
) -> np.ndarray:
    """Region of each vertex (N,) in 0 … bone_count − 1, every region non-empty; needs bone_count ≤ N.

    rest (N, 3) in solver units, triangles (T, 3), seeds (bone_count, 3) vertices to start from instead of
    ``seed_triples``. Next is the vertex with the least prediction error, as in the paper,
    or with ``outermost_first`` that with the least error less its ‖y‖²: those far from the middle of the frames come
    before all others, so that regions close up from the ends of limbs inwards. Raises Cancelled.
    """
    if seeds is None:
        seeds = seed_triples(rest, triangles, bone_count)
    gradients = deformation_gradients(matrix, rest, seeds)
    model = BoneModel(product(gradients, reduction.basis))
    costs = np.empty((len(rest), bone_count), dtype=np.float32)

    def fill(start: int) -> None:
        part = slice(start, start + _BLOCK_VERTICES)
        data = reduction.rows(part)
        found = model.squared_distances(homogeneous(rest[part]), data)
        norms = np.einsum("ij,ij->i", data, data)[:, None]
        costs[part] = np.where(found > _NO_ERROR * norms, found, 0.0) - (norms if outermost_first else 0.0)

    def report(start: int, _: None) -> None:
        checkpoint(progress, 0.5 * start / len(rest), _STAGE)

    for_each(fill, range(0, len(rest), _BLOCK_VERTICES), report)
    labels = _grow(costs, surface_neighbors(triangles, len(rest)), seeds, progress)
    return fill_empty_regions(labels, rest, bone_count)


def seed_triples(rest: np.ndarray, triangles: np.ndarray, count: int) -> np.ndarray:
    """Three vertices (count, 3) for each seed, spread by the farthest-point solution of the p-center problem.

    Triangles with an area; where there are too few of them, each vertex with its two nearest neighbors instead.
    """
    solid = triangles[2.0 * triangle_areas(rest[triangles]) > 1e-12]
    if len(solid) >= count:
        return solid[farthest_points(rest[solid].mean(axis=1), count)]
    chosen = farthest_points(rest, count)
    nearest = scipy.spatial.cKDTree(rest).query(rest[chosen], k=min(3, len(rest)))[1].reshape(count, -1)
    triples = np.repeat(chosen[:, None], 3, axis=1)
    for column in range(1, nearest.shape[1]):
        triples[:, column] = np.where(nearest[:, column] == chosen, nearest[:, 0], nearest[:, column])
    return triples


def farthest_points(points: np.ndarray, count: int) -> np.ndarray:
    """Indices (count,): the point nearest to the middle, then always the one farthest from all chosen ones."""
    chosen = np.empty(count, dtype=np.int64)
    offsets = points - points.mean(axis=0)
    chosen[0] = np.argmin(np.einsum("ij,ij->i", offsets, offsets))
    distances = np.full(len(points), np.inf)
    for i in range(1, count):
        offsets = points - points[chosen[i - 1]]
        np.minimum(distances, np.einsum("ij,ij->i", offsets, offsets), out=distances)
        distances[chosen[i - 1]] = -1.0
        chosen[i] = np.argmax(distances)
    return chosen


def deformation_gradients(matrix: AnimationMatrix, rest: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """Motion of each triple of vertices as Tᵀ (4P, 3F): edges and normal of the rest pose to those of each frame.

    A triple without area only translates.
    """
    count = len(triples)
    corners = matrix.unweigh(matrix.rows(triples.ravel())).reshape(count, 3, -1, 3).transpose(0, 2, 1, 3)
    rest_frame = _edge_frames(rest[triples][:, None])[:, 0]
    sizes = np.linalg.norm(rest_frame, axis=1).prod(axis=1)
    solid = np.abs(np.linalg.det(rest_frame)) > 1e-8 * sizes
    rest_frame[~solid] = np.eye(3)
    frames = _edge_frames(corners)
    linear = np.where(solid[:, None, None, None], frames @ np.linalg.inv(rest_frame)[:, None], np.eye(3))
    translation = corners[:, :, 0] - np.einsum("pfij,pj->pfi", linear, rest[triples[:, 0]])
    rows = np.empty((count, 4, corners.shape[1], 3))
    rows[:, :3] = linear.transpose(0, 3, 1, 2)
    rows[:, 3] = translation
    return matrix.weigh(rows.reshape(4 * count, -1))


def _edge_frames(corners: np.ndarray) -> np.ndarray:
    """(…, 3, 3) whose columns are two edges and a normal as long as the edges are on average."""
    first = corners[..., 1, :] - corners[..., 0, :]
    second = corners[..., 2, :] - corners[..., 0, :]
    normal = np.cross(first, second)
    length = np.sqrt(np.linalg.norm(normal, axis=-1, keepdims=True))
    normal = normal / np.where(length > 0, length, 1.0)
    return np.stack([first, second, normal], axis=-1)


def surface_neighbors(triangles: np.ndarray, vertex_count: int) -> scipy.sparse.csr_matrix:
    """(N, N) bool: which vertices share a side of a triangle."""
    ends = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    ends = np.concatenate([ends, ends[:, ::-1]])
    ones = np.ones(len(ends), dtype=bool)
    return scipy.sparse.csr_matrix((ones, (ends[:, 0], ends[:, 1])), shape=(vertex_count, vertex_count))


def _grow(costs: np.ndarray, neighbors: scipy.sparse.csr_matrix, seeds: np.ndarray, progress: Progress) -> np.ndarray:
    """Always append the vertex with the least of ``costs`` (N, P) among all that border a region.

    The queue is one for all regions, which is the same as comparing the fronts of one queue each. Parts of the mesh
    that no seed reaches go whole to the region that predicts them best.
    """
    starts, ends = neighbors.indptr.tolist(), neighbors.indices.tolist()
    labels = [-1] * len(costs)
    queue: list[tuple[float, int, int]] = []
    taken = 0

    def append(vertex: int, region: int) -> None:
        labels[vertex] = region
        around = ends[starts[vertex] : starts[vertex + 1]]
        for neighbor, cost in zip(around, costs[around, region].tolist(), strict=True):
            if labels[neighbor] < 0:
                heapq.heappush(queue, (cost, neighbor, region))

    for region, seed in enumerate(seeds.tolist()):
        for vertex in seed:
            if labels[vertex] < 0:
                append(vertex, region)
    while queue:
        _, vertex, region = heapq.heappop(queue)
        if labels[vertex] < 0:
            append(vertex, region)
            taken += 1
            if taken % _BLOCK_VERTICES == 0:
                checkpoint(progress, 0.5 + 0.5 * taken / len(costs), _STAGE)
    regions = np.array(labels)
    missed = np.nonzero(regions < 0)[0]
    if len(missed):
        parts = scipy.sparse.csgraph.connected_components(neighbors, directed=False)[1][missed]
        regions[missed] = _best_of_parts(costs, missed, parts)
    return regions


def _best_of_parts(costs: np.ndarray, vertices: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """The region (n,) for each of ``vertices`` (n,) that predicts best all those with the same of ``parts`` (n,)."""
    order = np.argsort(parts, kind="stable")
    starts = np.nonzero(np.diff(parts[order], prepend=-1))[0]
    best = np.empty(len(vertices), dtype=np.int64)
    ends = np.append(starts[1:], len(vertices))
    # Several whole parts at a time: a cloud of loose vertices has as many parts as vertices.
    for group in np.split(np.arange(len(starts)), np.nonzero(np.diff(starts // _BLOCK_VERTICES))[0] + 1):
        rows = order[starts[group[0]] : ends[group[-1]]]
        summed = np.add.reduceat(costs[vertices[rows]], starts[group] - starts[group[0]], axis=0, dtype=np.float64)
        best[rows] = np.repeat(np.argmin(summed, axis=1), ends[group] - starts[group])
    return best


def fill_empty_regions(labels: np.ndarray, rest: np.ndarray, bone_count: int) -> np.ndarray:
    """Give each region without vertices half of the largest one, cut across its longest side."""
    labels = labels.copy()
    counts = np.bincount(labels, minlength=bone_count)
    for region in np.nonzero(counts == 0)[0]:
        members = np.nonzero(labels == np.argmax(counts))[0]
        axis = np.argmax(np.ptp(rest[members], axis=0))
        moved = members[np.argsort(rest[members, axis], kind="stable")[len(members) // 2 :]]
        counts[labels[members[0]]] -= len(moved)
        counts[region] = len(moved)
        labels[moved] = region
    return labels
