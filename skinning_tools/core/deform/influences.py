# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone indices and weights in rows (N, K): checks, normal forms and selections."""

import numpy as np
from scipy import sparse

from ..errors import BadWeights

# Blender's armature modifier ignores a vertex whose weights add up to no more than this.
LEAST_TOTAL_WEIGHT = 1e-4


def convex_influences(
    bones: np.ndarray, weights: np.ndarray, vertex_count: int, bone_count: int | None = None, name: str = "the mesh"
) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` (N, K) int32 and ``weights`` (N, K) float64 with rows that sum to 1.

    As in Blender's armature modifier: rows are divided by their sum, whether it is more or less than 1, and rows that
    sum to ``LEAST_TOTAL_WEIGHT`` or less become zero: such a vertex follows no bone. Raises BadWeights on shapes that
    do not fit, bones out of range and weights that are negative or not numbers, naming the first such vertex.
    """
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if bones.ndim != 2 or bones.shape != weights.shape or len(bones) != vertex_count:
        raise BadWeights(
            f"The {vertex_count} vertices of {name} do not fit bones {bones.shape} and weights {weights.shape}"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        vertex = int(np.argmax(wrong.any(axis=1)))
        raise BadWeights(
            f"Vertex {vertex} of {name} has a weight that is negative or not a number. "
            "Normalize the vertex groups (Weights > Normalize All)"
        )
    if bones.size and (bones.min() < 0 or (bone_count is not None and bones.max() >= bone_count)):
        vertex = int(np.argmax(((bones < 0) | (bones >= (bone_count or np.inf))).any(axis=1)))
        raise BadWeights(f"Vertex {vertex} of {name} refers to a bone that is not among the armature's {bone_count}")
    sums = weights.sum(axis=1, keepdims=True)
    moved = sums > LEAST_TOTAL_WEIGHT
    return bones.astype(np.int32, copy=False), np.divide(weights, sums, out=np.zeros_like(weights), where=moved)


def strongest_influences(bones: np.ndarray, weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` and ``weights`` (N, K) with K at most ``most``: the largest weights of each row, of the same sum.

    They keep their order, since the blending of rotations depends on it; of equal weights the first are kept.
    """
    if weights.shape[1] <= most:
        return bones, weights
    kept = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :most], axis=1)
    sums = weights.sum(axis=1, keepdims=True)
    bones, weights = np.take_along_axis(bones, kept, axis=1), np.take_along_axis(weights, kept, axis=1)
    left = weights.sum(axis=1, keepdims=True)
    return bones, weights * np.divide(sums, left, out=np.ones_like(left), where=left > 0)


def weight_matrix(bones: np.ndarray, weights: np.ndarray, bone_count: int) -> sparse.csr_matrix:
    """(N, P) sparse, with the slots as given: a bone may occur twice in a row, with weight 0 for instance."""
    count, influences = bones.shape
    pointers = np.arange(0, count * influences + 1, max(influences, 1))[: count + 1]
    if influences == 0:
        pointers = np.zeros(count + 1, int)
    return sparse.csr_matrix((weights.ravel(), bones.ravel(), pointers), shape=(count, bone_count))
