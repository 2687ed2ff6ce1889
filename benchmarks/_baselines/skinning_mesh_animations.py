# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning Mesh Animations (James & Twigg 2005), with affine bones.

Connected triangles with similar rotations over the frames, found by mean shift, form a bone, which moves like their
vertices; weights by non-negative least squares over the bones that individually predict a vertex best.
"""

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition.reduction import AnimationMatrix
from skinning_tools.core.decomposition.segmentation import deformation_gradients
from skinning_tools.core.dense import one_blas_thread, product, self_product
from skinning_tools.core.rotations import polar_decomposition

from .approximations import Skinned, best_bones_and_weights, measured, region_transforms, trajectories

# Bandwidths relative to the spread of all rotations, wide to narrow: the best one counts, as in the paper.
BANDWIDTHS = (0.35, 0.25, 0.18, 0.125, 0.09, 0.06)
# Bandwidths are compared on every n-th vertex.
_EVERY = 8
# The reduction of rotations loses this share of their variance.
_LOST = 1e-3
_BLOCK = 1024
# Mean shift runs on so many evenly chosen triangles; all others join the mode of the nearest one.
_MOST_CLIMBERS = 2000
_MOST_STEPS = 100
_SETTLED = 1e-3


class TooFewClusters(Exception):
    """Mean shift finds fewer clusters than the requested bones with every bandwidth."""


@one_blas_thread()
def approximate(animation: Animation, bone_count: int) -> Skinned:
    """Raises TooFewClusters."""
    data, rest = trajectories(animation), animation.frames[0].astype(float)
    triangles = solid_triangles(rest, animation.triangles)
    rotations = rotation_sequences(animation, triangles)
    spread = np.sqrt(np.einsum("ij,ij->", rotations, rotations) / len(rotations))
    some = Animation(animation.frames[:, ::_EVERY], [])
    best = np.inf, None
    for share in BANDWIDTHS:
        labels = largest_parts(triangles, cluster(rotations, share * spread), bone_count)
        if labels is None:
            continue
        regions = [np.unique(triangles[labels == bone]) for bone in range(bone_count)]
        transforms = region_transforms(rest, data, regions)
        error = measured(some, _skinned(rest[::_EVERY], data[::_EVERY], transforms))[0]
        best = min(best, (error, transforms), key=lambda entry: entry[0])
    if best[1] is None:
        raise TooFewClusters(f"Mean shift does not find {bone_count} clusters")
    return _skinned(rest, data, best[1])


def _skinned(rest, data, transforms) -> Skinned:
    return Skinned(rest, *best_bones_and_weights(rest, data, transforms), transforms)


def solid_triangles(rest: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """The ``triangles`` (T, 3) with a significant area."""
    corners = rest[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return triangles[areas > 1e-6 * areas.mean()]


def rotation_sequences(animation: Animation, triangles: np.ndarray) -> np.ndarray:
    """The rotations of each triangle over all frames (T, 9F), in fewer coordinates that preserve distances (T, D)."""
    matrix = AnimationMatrix(animation.frames)
    rest, frame_count = matrix.rest_pose(), len(animation.frames)
    rotations = np.empty((len(triangles), 9 * frame_count))
    for start in range(0, len(triangles), _BLOCK):
        some = triangles[start : start + _BLOCK]
        rows = deformation_gradients(matrix, rest, some).reshape(len(some), 4, frame_count, 3)
        linear = rows[:, :3].transpose(0, 2, 3, 1)
        rotations[start : start + len(some)] = polar_decomposition(linear)[0].reshape(len(some), -1)
    rotations -= rotations.mean(axis=0)
    values, vectors = scipy.linalg.eigh(self_product(rotations), overwrite_a=True)
    kept = np.cumsum(np.maximum(values, 0.0)) > _LOST * values.sum()
    return product(rotations, np.ascontiguousarray(vectors[:, kept]))


def cluster(points: np.ndarray, bandwidth: float) -> np.ndarray:
    """Labels (T,) from 0 of the mode that each of ``points`` (T, D) belongs to."""
    climbers = points[np.linspace(0, len(points) - 1, min(len(points), _MOST_CLIMBERS)).astype(int)]
    nearest = np.empty(len(points), dtype=int)
    for start in range(0, len(points), _BLOCK):
        part = slice(start, start + _BLOCK)
        nearest[part] = np.argmin(_squared_distances(points[part], climbers), axis=1)
    return mean_shift(climbers, bandwidth)[nearest]


def mean_shift(points: np.ndarray, bandwidth: float) -> np.ndarray:
    """Labels (n,) from 0 of the mode that each of ``points`` (n, D) climbs to, with a Gaussian kernel (Cheng 1995)."""
    places = points.copy()
    moving = np.arange(len(points))
    for _ in range(_MOST_STEPS):
        closeness = np.exp(-0.5 / bandwidth**2 * _squared_distances(places[moving], points))
        moved = product(closeness, points) / closeness.sum(axis=1, keepdims=True)
        steps = np.linalg.norm(moved - places[moving], axis=1)
        places[moving] = moved
        moving = moving[steps > _SETTLED * bandwidth]
        if not len(moving):
            break
    return _joined(places, 0.5 * bandwidth)


def _joined(places, reach) -> np.ndarray:
    """Labels (n,) from 0: positions within ``reach`` of the first of their cluster."""
    labels = np.full(len(places), -1)
    count = 0
    for vertex, place in enumerate(places):
        if labels[vertex] < 0:
            labels[(labels < 0) & (np.linalg.norm(places - place, axis=1) <= reach)] = count
            count += 1
    return labels


def largest_parts(triangles: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray | None:
    """Labels (T,) 0 … count − 1 of the largest connected parts with one label, −1 elsewhere.

    Connected, because legs that swing together rotate alike, but no affine motion fits both. None if there are fewer
    parts.
    """
    edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    owners = np.repeat(np.arange(len(triangles)), 3)
    order = np.lexsort(edges.T)
    edges, owners = edges[order], owners[order]
    first, second = owners[:-1], owners[1:]
    together = np.all(edges[:-1] == edges[1:], axis=1) & (labels[first] == labels[second])
    ones = np.ones(np.count_nonzero(together), dtype=bool)
    graph = scipy.sparse.csr_matrix((ones, (first[together], second[together])), shape=(len(labels), len(labels)))
    part_count, parts = scipy.sparse.csgraph.connected_components(graph, directed=False)
    if part_count < count:
        return None
    rank = np.full(part_count, -1)
    rank[np.argsort(-np.bincount(parts), kind="stable")[:count]] = np.arange(count)
    return rank[parts]


def _squared_distances(first, second) -> np.ndarray:
    lengths = np.einsum("ij,ij->i", first, first)[:, None] + np.einsum("ij,ij->i", second, second)
    return np.maximum(lengths - 2.0 * product(first, second.T), 0.0)
