# SPDX-License-Identifier: GPL-3.0-or-later
"""Subdivision of triangles by their weights, as a list of pieces: the mesh itself is never built.

A triangle whose corners differ in weights is cut in two at the middle of the edge that differs most, and so are its
halves, until no edge differs by more than ε (Le & Hodgins 2016; the evaluation of 2019, section 3.3). Weights are
linear over a triangle, so how it is cut follows from three inner products of its corners' weights alone, and triangles
that share an edge cut it alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .progress import Progress, checkpoint, ignore

# Squared lengths that differ by less are the same.
_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class Pieces:
    """Parts of triangles, in the order of their triangles.

    triangles (L,) int32: the row of each piece's triangle. middles (L, 3) float64: barycentric coordinates
    of their middles. shares (L,) float64: their areas as shares of the triangles'.
    """

    triangles: np.ndarray
    middles: np.ndarray
    shares: np.ndarray


def weight_differences(weights: sparse.csr_matrix, triangles: np.ndarray) -> np.ndarray:
    """(T, 3) inner products e₁·e₁, e₁·e₂, e₂·e₂ of the weights' changes from a triangle's first corner to the others.

    weights (N, P) sparse, triangles (T, 3).
    """
    first = weights[triangles[:, 0]]
    to_second, to_third = weights[triangles[:, 1]] - first, weights[triangles[:, 2]] - first
    pairs = ((to_second, to_second), (to_second, to_third), (to_third, to_third))
    return np.stack([np.asarray(a.multiply(b).sum(axis=1)).ravel() for a, b in pairs], axis=1)


def subdivide(
    differences: np.ndarray, epsilon: float, limit: int = 1 << 18, progress: Progress = ignore
) -> Iterator[Pieces]:
    """Pieces whose edges differ in weights by ``epsilon`` at most, about ``limit`` at a time.

    epsilon 0: whole triangles. differences (T, 3), see ``weight_differences``. Memory does not grow with the number of
    pieces, only with the logarithm of how small they are. Raises Cancelled.
    """
    finished, count = [], 0
    for pieces in _finished(differences, epsilon, limit, progress):
        finished.append(pieces)
        count += len(pieces.triangles)
        if count >= limit:
            yield _joined(finished)
            finished, count = [], 0
    if count:
        yield _joined(finished)


def _finished(differences: np.ndarray, epsilon: float, limit: int, progress: Progress) -> Iterator[Pieces]:
    total, done = len(differences), 0.0
    # The last triangles are pushed first, so that pieces come out roughly in the triangles' order.
    starts = range(0, total, limit)
    stack = [_whole(np.arange(start, min(start + limit, total), dtype=np.int32)) for start in reversed(starts)]
    while stack:
        triangles, corners, shares = stack.pop()
        checkpoint(progress, min(done / total, 1.0), "Subdividing")
        lengths = _squared_lengths(differences[triangles], corners)
        most = lengths.max(axis=1)
        # The first of the edges that are equal up to rounding.
        longest = np.argmax(lengths * _SLACK >= most[:, None], axis=1)
        rough = most > epsilon * epsilon * _SLACK
        if epsilon == 0:
            rough[:] = False
        fine = ~rough
        if fine.any():
            done += float(shares[fine].sum())
            middles = corners[fine].mean(axis=1)
            yield Pieces(triangles[fine], np.column_stack([1 - middles.sum(axis=1), middles]), shares[fine])
        if rough.any():
            halves = _halves(triangles[rough], corners[rough], shares[rough], longest[rough])
            parts = -(-len(halves[0]) // limit)
            split = zip(*(np.array_split(values, parts) for values in halves), strict=True)
            # Copies: a part that waits on the stack must not keep all of its level in memory.
            stack.extend(reversed([tuple(values.copy() for values in part) for part in split]))


def _whole(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triangle rows (n,), corners (n, 3, 2) in the second and third barycentric coordinate, shares of the area (n,)."""
    corners = np.broadcast_to(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), (len(triangles), 3, 2))
    return triangles, corners, np.ones(len(triangles))


def _squared_lengths(differences: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, 3) how far the weights of each edge's ends are apart, squared; edge i goes from corner i to the next."""
    second, third = np.moveaxis(np.roll(corners, -1, axis=1) - corners, -1, 0)
    a, b, c = differences.T[:, :, None]
    return a * second**2 + 2 * b * second * third + c * third**2


def _halves(
    triangles: np.ndarray, corners: np.ndarray, shares: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.arange(len(triangles))
    start, end, opposite = (corners[rows, (edges + i) % 3] for i in range(3))
    middle = 0.5 * (start + end)
    halves = np.stack([np.stack([start, middle, opposite], axis=1), np.stack([middle, end, opposite], axis=1)], axis=1)
    return np.repeat(triangles, 2), halves.reshape(-1, 3, 2), np.repeat(0.5 * shares, 2)


def _joined(finished: list[Pieces]) -> Pieces:
    triangles = np.concatenate([pieces.triangles for pieces in finished])
    order = np.argsort(triangles, kind="stable")
    middles = np.concatenate([pieces.middles for pieces in finished])
    shares = np.concatenate([pieces.shares for pieces in finished])
    return Pieces(triangles[order], middles[order], shares[order])
