# SPDX-License-Identifier: GPL-3.0-or-later
"""The error that is minimized: distances, how they vary over the surface, and how far normals turn.

Σ m·‖e‖² + a²·k·‖∇e‖² + b²·k·‖(∇e)ᵀn‖² over the vertices, with e the error of a vertex in a shape and n its normal at
rest: (∇e)ᵀn is what the normal turns by. The first alone leaves skin with the right places and pocks. Each vertex
counts alike, whatever the size of its faces, but for its importances m and k. All is one symmetric matrix.
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from ..deform.surface import vertex_normals
from ..geometry import unit

# As a share of the mean area around a vertex: smaller areas count as this large.
_LEAST_AREA = 1e-3


class SurfaceError:
    """rest (N, 3), triangles (T, 3); plain and normal: the lengths a and b."""

    def __init__(self, rest: np.ndarray, triangles: np.ndarray, plain: float, normal: float):
        self.count = len(rest)
        self.normals = vertex_normals(rest, triangles)
        self.plain, self.normal = plain, normal
        self.gradients = [
            (across @ gradient).tocsr() for across, gradient in _along_surface(rest, triangles, self.normals)
        ]
        # (N, 3N) each: how far normals turn, toward each of two tangents.
        self.turns = [_dotted(gradient, self.normals) for gradient in self.gradients]
        self.weigh(np.ones(self.count), np.ones(self.count))

    def weigh(self, importance: np.ndarray, surface_importance: np.ndarray) -> None:
        """Set m and k (N,)."""
        self.importance, self.surface_importance = importance, surface_importance
        kept = sparse.diags(surface_importance)
        matrix = sparse.diags(importance)
        if self.plain:
            matrix = matrix + self.plain**2 * sum(gradient.T @ kept @ gradient for gradient in self.gradients)
        matrix = sparse.kron(matrix, sparse.identity(3))
        if self.normal:
            matrix = matrix + self.normal**2 * sum(turn.T @ kept @ turn for turn in self.turns)
        self.matrix = matrix.tocsr()
        self.own = _own_blocks(self.matrix, self.count)

    def neighbors(self) -> sparse.csr_matrix:
        """(N, N): which vertices' errors count together."""
        parts = [abs(gradient) for gradient in self.gradients]
        touched = sum(parts[1:], parts[0])
        pairs = (touched.T @ touched).tocsr()
        pairs.setdiag(0)
        pairs.eliminate_zeros()
        return pairs

    def of(self, errors: np.ndarray) -> float:
        """The error of ``errors`` (N, 3, S)."""
        flat = errors.reshape(3 * self.count, -1)
        return float(np.vdot(flat, self.matrix @ flat))

    def densities(self, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """‖e‖² and a²·‖∇e‖² + b²·‖(∇e)ᵀn‖² of each vertex (N,), all shapes together."""
        flat = errors.reshape(self.count, -1)
        rough = np.zeros(self.count)
        for gradient, turn in zip(self.gradients, self.turns, strict=True):
            if self.plain:
                rough += self.plain**2 * np.square(gradient @ flat).sum(axis=1)
            rough += self.normal**2 * np.square(turn @ errors.reshape(3 * self.count, -1)).sum(axis=1)
        return np.einsum("ij,ij->i", flat, flat), rough


def _along_surface(
    rest: np.ndarray, triangles: np.ndarray, normals: np.ndarray
) -> Iterator[tuple[sparse.csr_matrix, sparse.csr_matrix]]:
    """For each of two tangents the pair of its projection (N, 3N) and the gradient (3N, N), the mean of the faces'."""
    count = len(rest)
    corners = rest[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    double = np.linalg.norm(across, axis=1)
    around = np.bincount(triangles.ravel(), np.repeat(double, 3), count)
    around = np.maximum(around, _LEAST_AREA * around.mean() if around.any() else 1.0)
    direction = unit(across)
    rows, columns, values = [], [], []
    for corner in range(3):
        # A hat function's gradient times twice the area of its face.
        rise = np.cross(direction, corners[:, (corner + 2) % 3] - corners[:, (corner + 1) % 3])
        for vertex in triangles.T:
            rows.append(3 * vertex[:, None] + np.arange(3))
            columns.append(np.repeat(triangles[:, corner, None], 3, axis=1))
            values.append(rise / around[vertex][:, None])
    place = np.concatenate(rows).ravel(), np.concatenate(columns).ravel()
    gradient = sparse.coo_matrix((np.concatenate(values).ravel(), place), shape=(3 * count, count)).tocsr()
    helper = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    first = unit(np.cross(normals, helper))
    second = np.cross(normals, first)
    everyone = np.arange(count)
    for tangent in (first, second):
        places = np.repeat(everyone, 3), np.arange(3 * count)
        yield (
            sparse.coo_matrix((tangent.ravel(), places), shape=(count, 3 * count)).tocsr(),
            gradient,
        )


def _dotted(gradient: sparse.csr_matrix, normals: np.ndarray) -> sparse.csr_matrix:
    """(N, 3N): the gradient (N, N) of errors along each row's own normal."""
    entries = gradient.tocoo()
    values = (entries.data[:, None] * normals[entries.row]).ravel()
    columns = (3 * entries.col[:, None] + np.arange(3)).ravel()
    shape = entries.shape[0], 3 * entries.shape[1]
    return sparse.coo_matrix((values, (np.repeat(entries.row, 3), columns)), shape=shape).tocsr()


def _own_blocks(matrix: sparse.csr_matrix, count: int) -> np.ndarray:
    """(N, 3, 3) of a matrix (3N, 3N)."""
    entries = matrix.tocoo()
    inside = entries.row // 3 == entries.col // 3
    blocks = np.zeros((count, 3, 3))
    blocks[entries.row[inside] // 3, entries.row[inside] % 3, entries.col[inside] % 3] = entries.data[inside]
    return blocks
