# SPDX-License-Identifier: GPL-3.0-or-later
"""Centres of rotation as the evaluation of 2019 computes them: naive, in parallel, breadth-first.

For comparison only. All sum over whole triangles (no subdivision), with each vertex's own bones but every triangle, or
those that the search reaches; the inner loop over triangles is numpy's.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import sparse

SIGMA = 0.1
# The suggestion of Le & Hodgins 2016 that the evaluation follows.
SIMILAR_WEIGHTS = 0.1
LEAST_SIMILARITY = 1e-6


@dataclass(frozen=True)
class Problem:
    """weights (N, P); for each triangle middles (T, 3), areas (T,) and, a row for each bone, face_weights (P, T)."""

    triangles: np.ndarray
    weights: np.ndarray
    middles: np.ndarray
    areas: np.ndarray
    face_weights: np.ndarray

    @classmethod
    def of(cls, rest, triangles, bones, weights) -> "Problem":
        dense = np.zeros((len(rest), int(bones.max()) + 1))
        np.add.at(dense, (np.arange(len(rest))[:, None], bones), weights)
        dense /= dense.sum(axis=1, keepdims=True)
        a, b, c = np.moveaxis(rest[triangles], 1, 0)
        areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
        face_weights = np.ascontiguousarray(dense[triangles].mean(axis=1).T)
        return cls(triangles, dense, (a + b + c) / 3, areas, face_weights)

    def similarity(self, vertex: int, faces=slice(None)) -> np.ndarray:
        """(n,) equation 6 without its terms j = k, of a vertex and some faces."""
        weights = self.weights[vertex]
        used = np.flatnonzero(weights)
        total = np.zeros(len(self.areas[faces]))
        for i, j in enumerate(used):
            for k in used[i + 1 :]:
                t_j, t_k = self.face_weights[j, faces], self.face_weights[k, faces]
                difference = weights[j] * t_k - weights[k] * t_j
                total += 2 * weights[j] * weights[k] * t_j * t_k * np.exp(-((difference / SIGMA) ** 2))
        return total

    def center(self, similarity: np.ndarray, faces=slice(None)) -> np.ndarray:
        """Equation 10; NaN where no face is similar."""
        masses = similarity * self.areas[faces]
        total = masses.sum()
        return masses @ self.middles[faces] / total if total > 0 else np.full(3, np.nan)


def naive(problem: Problem, vertices=None) -> np.ndarray:
    """(n, 3) centres of ``vertices``, all if None, one vertex after another over all triangles."""
    vertices = range(len(problem.weights)) if vertices is None else vertices
    return np.array([problem.center(problem.similarity(vertex)) for vertex in vertices])


def parallel(problem: Problem, processes: int | None = None) -> np.ndarray:
    """(N, 3) by algorithm 3: equal intervals of the vertices, one process each."""
    processes = processes or os.cpu_count() or 1
    intervals = np.array_split(np.arange(len(problem.weights)), processes)
    with ProcessPoolExecutor(processes, initializer=_take, initargs=(problem,)) as pool:
        return np.concatenate(list(pool.map(_naive_part, intervals)))


def breadth_first(problem: Problem) -> np.ndarray:
    """(N, 3) by algorithm 4: from the faces of vertices with like weights over the mesh, while faces are similar."""
    face_count = len(problem.triangles)
    incidence = sparse.csr_matrix(
        (np.ones(3 * face_count, np.int8), problem.triangles.ravel(), np.arange(0, 3 * face_count + 1, 3)),
        shape=(face_count, len(problem.weights)),
    )
    faces_of_vertices = incidence.T.tocsr()
    common = (incidence.astype(np.int32) @ incidence.T.astype(np.int32)).tocsr()
    common.data[common.data != 2] = 0
    common.eliminate_zeros()
    squares = np.einsum("np,np->n", problem.weights, problem.weights)
    result = np.empty((len(problem.weights), 3))
    for vertex, weights in enumerate(problem.weights):
        distances = squares + squares[vertex] - 2 * problem.weights @ weights
        alike = np.flatnonzero(distances < SIMILAR_WEIGHTS**2)
        result[vertex] = _searched(problem, vertex, _neighbours(faces_of_vertices, alike), common)
    return result


def _searched(problem: Problem, vertex: int, front: np.ndarray, neighbours: sparse.csr_matrix) -> np.ndarray:
    """Level after level instead of face after face: the same faces, in another order."""
    visited = np.zeros(len(problem.triangles), bool)
    faces, similarities = [], []
    while len(front):
        visited[front] = True
        similarity = problem.similarity(vertex, front)
        kept = similarity >= LEAST_SIMILARITY
        faces.append(front[kept])
        similarities.append(similarity[kept])
        reached = _neighbours(neighbours, front[kept])
        front = reached[~visited[reached]]
    if not faces:
        return np.full(3, np.nan)
    return problem.center(np.concatenate(similarities), np.concatenate(faces))


def _neighbours(graph: sparse.csr_matrix, rows: np.ndarray) -> np.ndarray:
    return np.unique(graph[rows].indices)


_shared: list[Problem] = []


def _take(problem: Problem) -> None:
    _shared.append(problem)


def _naive_part(vertices) -> np.ndarray:
    return naive(_shared[0], vertices)
