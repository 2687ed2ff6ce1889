# SPDX-License-Identifier: GPL-3.0-or-later
"""Centres of rotation as the evaluation of 2019 computes them: naive, in parallel, breadth-first.

For comparison only. All sum over whole triangles (no subdivision), with each vertex's own bones but every triangle, or
those that the search reaches; the inner loop over triangles is numpy's.
"""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from _process import peak_memory, restart_peak_memory  # beside this file
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


def breadth_first(problem: Problem, vertices=None) -> np.ndarray:
    """(n, 3) by algorithm 4: from the faces of vertices with like weights over the mesh, while faces are similar."""
    vertices = range(len(problem.weights)) if vertices is None else vertices
    return _Search.of(problem).centers(vertices)


def faces_reached(problem: Problem, vertices) -> np.ndarray:
    """(n,) number of faces whose similarity ``breadth_first`` computes."""
    search = _Search.of(problem)
    return np.array([len(search.reached(vertex)[0]) for vertex in vertices])


@dataclass(frozen=True)
class Shared:
    """What several processes have computed: centers (n, 3); longest: seconds of the processor of the slowest one;
    growth: the memory in MB by which all grew together."""

    centers: np.ndarray
    longest: float
    growth: float


def in_parallel(variant, problem: Problem, vertices=None, processes: int | None = None) -> Shared:
    """``variant``, one of the two above, by algorithm 3: equal intervals of the vertices, one process each."""
    processes = processes or os.cpu_count() or 1
    vertices = np.arange(len(problem.weights)) if vertices is None else np.asarray(vertices)
    # Made once and before the processes, as in the evaluation, whose threads share it.
    task = problem if variant is naive else _Search.of(problem)
    # A fork shares the memory, as threads do.
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_take, initargs=(task,)) as pool:
        parts = list(pool.map(_part, np.array_split(vertices, processes)))
    centers, seconds, growths = zip(*parts, strict=True)
    return Shared(np.concatenate(centers), max(seconds), sum(growths))


@dataclass(frozen=True)
class _Search:
    """The task with its triangle adjacency graph. faces_of_vertices (N, T), neighbours (T, T): faces with a common
    edge; squares (N,): of the lengths of the weights."""

    problem: Problem
    faces_of_vertices: sparse.csr_matrix
    neighbours: sparse.csr_matrix
    squares: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> "_Search":
        face_count = len(problem.triangles)
        incidence = sparse.csr_matrix(
            (np.ones(3 * face_count, np.int8), problem.triangles.ravel(), np.arange(0, 3 * face_count + 1, 3)),
            shape=(face_count, len(problem.weights)),
        )
        common = (incidence.astype(np.int32) @ incidence.T.astype(np.int32)).tocsr()
        common.data[common.data != 2] = 0
        common.eliminate_zeros()
        squares = np.einsum("np,np->n", problem.weights, problem.weights)
        return cls(problem, incidence.T.tocsr(), common, squares)

    def centers(self, vertices) -> np.ndarray:
        return np.array([self._center(vertex) for vertex in vertices])

    def _center(self, vertex: int) -> np.ndarray:
        faces, similarity = self.reached(vertex)
        kept = similarity >= LEAST_SIMILARITY
        return self.problem.center(similarity[kept], faces[kept])

    def reached(self, vertex: int) -> tuple[np.ndarray, np.ndarray]:
        """The faces that the search looks at, level after level instead of face after face: the same faces, in another
        order; and their similarities."""
        problem = self.problem
        distances = self.squares + self.squares[vertex] - 2 * problem.weights @ problem.weights[vertex]
        front = _reached(self.faces_of_vertices, np.flatnonzero(distances < SIMILAR_WEIGHTS**2))
        visited = np.zeros(len(problem.triangles), bool)
        faces, similarities = [], []
        while len(front):
            visited[front] = True
            similarity = problem.similarity(vertex, front)
            faces.append(front)
            similarities.append(similarity)
            reached = _reached(self.neighbours, front[similarity >= LEAST_SIMILARITY])
            front = reached[~visited[reached]]
        if not faces:
            return np.empty(0, int), np.empty(0)
        return np.concatenate(faces), np.concatenate(similarities)


def _reached(graph: sparse.csr_matrix, rows: np.ndarray) -> np.ndarray:
    return np.unique(graph[rows].indices)


_shared: list[Problem | _Search] = []


def _take(task: Problem | _Search) -> None:
    _shared.append(task)


def _part(vertices) -> tuple[np.ndarray, float, float]:
    before, start = restart_peak_memory(), time.process_time()
    task = _shared[0]
    centers = task.centers(vertices) if isinstance(task, _Search) else naive(task, vertices)
    return centers, time.process_time() - start, peak_memory() - before
