# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights that are smooth over the surface, as a soft constraint: error + Σ c_uv ‖w_u − w_v‖².

The sum runs over the surface's edges with cotangents for c, so that it is the Dirichlet energy ∫ ‖∇w‖² whatever the
size of the triangles. For one vertex, with its neighbors held, the new term is a pull towards their mean, which keeps
the fit convex and of at most K influences. Vertices that are not neighbors of each other are improved together, one
such set after another, each from the latest weights: so the objective falls with every step.
"""

import numpy as np
from scipy import sparse

from ..binding.laplacian import laplacian
from ..binding.types import Body
from .vertex_step import Pull

# The least error (root mean square, in the unit ball) that is assumed, so that exact weights become smooth, too.
_LEAST_ERROR = 2e-4

# The allowed growth of E_RMS at the end of the slider; measured sequences grow by 20 % to 100 %.
_MOST_GROWTH = 4.0

# Vertices at one place, as on both sides of a seam, are coupled as strongly as by this many typical edges.
_SEAM = 16.0


def neighbor_weights(rest: np.ndarray, triangles: np.ndarray, edges: np.ndarray | None = None) -> sparse.csr_matrix:
    """c (N, N), symmetric and ≥ 0 with an empty diagonal: halved sums of cotangents, edges of no triangle as strips.

    rest (N, 3), triangles (T, 3), edges (E, 2) or None. Vertices at one place are neighbors. Raises BadMesh.
    """
    body = Body(rest, triangles, np.empty((0, 2), int) if edges is None else edges)
    stiffness = laplacian(body)[0].tocoo()
    first = body.first_vertices
    off = stiffness.row != stiffness.col
    rows, columns = first[stiffness.row[off]], first[stiffness.col[off]]
    values = -stiffness.data[off]
    others = np.flatnonzero(first[body.place] != np.arange(len(rest)))
    typical = _SEAM * (values.mean() if len(values) else 1.0)
    rows = np.concatenate([rows, others, first[body.place[others]]])
    columns = np.concatenate([columns, first[body.place[others]], others])
    values = np.concatenate([values, np.full(2 * len(others), typical)])
    result = sparse.coo_matrix((values, (rows, columns)), shape=(len(rest), len(rest))).tocsr()
    result.eliminate_zeros()
    return result


def independent_sets(neighbors: sparse.csr_matrix, chosen: np.ndarray) -> list[np.ndarray]:
    """The vertices ``chosen`` (n,) in sets without neighbors within a set, each ascending; the same in every run.

    Jones & Plassmann 1993: a vertex joins when no waiting neighbor comes before it in a shuffled order.
    """
    count = neighbors.shape[0]
    order = np.random.default_rng(0).permutation(count)
    waiting = np.zeros(count, bool)
    waiting[chosen] = True
    rows = np.repeat(np.arange(count), np.diff(neighbors.indptr))
    columns = neighbors.indices
    kept = waiting[rows] & waiting[columns]
    rows, columns = rows[kept], columns[kept]
    sets: list[np.ndarray] = []
    while waiting.any():
        later = np.zeros(count, bool)
        later[rows[order[rows] > order[columns]]] = True
        ready = np.flatnonzero(waiting & ~later)
        waiting[ready] = False
        kept = waiting[rows] & waiting[columns]
        sets.append(ready)
        rows, columns = rows[kept], columns[kept]
    return sets


class Smoothness:
    """The pull of neighbors on each vertex. strengths: ``neighbor_weights`` in units of the error."""

    def __init__(self, strengths: sparse.csr_matrix):
        self.strengths = strengths
        self.degrees = np.asarray(strengths.sum(axis=1)).ravel()

    @classmethod
    def balanced(
        cls, neighbors: sparse.csr_matrix, matrix: sparse.csr_matrix, amount: float, squared_error: float, elements: int
    ) -> "Smoothness | None":
        """A strength with which E_RMS grows to at most 1 + 4 · amount² times its value; in practice far less.

        matrix (N, P): the weights to smooth, whose ``squared_error`` over ``elements`` numbers is least. With a growth
        g allowed, their energy counts as g² − 1 times that error: so weights with a lower sum of error and energy
        cannot have a larger error. None where there is nothing to smooth.
        """
        energy = cls(neighbors).energy(matrix)
        if energy <= 0:
            return None
        growth = 1.0 + _MOST_GROWTH * amount**2
        allowed = (growth**2 - 1.0) * max(squared_error, elements * _LEAST_ERROR**2)
        return cls(neighbors * (allowed / energy))

    def pull(self, part: np.ndarray, matrix: sparse.csr_matrix) -> Pull:
        """The pull of the neighbors' weights ``matrix`` (N, P) on the vertices ``part`` (n,)."""
        degrees = self.degrees[part]
        sums = (self.strengths[part] @ matrix).toarray()
        return Pull(degrees, sums / np.where(degrees > 0, degrees, 1.0)[:, None])

    def energy(self, matrix: sparse.csr_matrix) -> float:
        """Σ s_uv ‖w_u − w_v‖² over pairs of neighbors, each pair once."""
        squares = np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
        return float(self.degrees @ squares - (self.strengths @ matrix).multiply(matrix).sum())
