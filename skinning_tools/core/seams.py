# SPDX-License-Identifier: GPL-3.0-or-later
"""Seams of a split mesh: vertices at one place that no edge joins, such as along the UV seams of an imported mesh."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .geometry import diagonal

if TYPE_CHECKING:
    from scipy import sparse

# Of the diagonal: vertices of a seam that are farther apart leave a gap that shows.
_GAP = 1e-3
# Weights of a vertex that differ by less in all differ by rounding.
_ALIKE = 1e-5


def by_place(rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vertices of ``rest`` (N, 3) in an order (N,) in which those at one place follow each other, and whether each
    but the first (N - 1,) is at the place of the one before it."""
    order = np.lexsort(rest.T)
    return order, (rest[order[1:]] == rest[order[:-1]]).all(axis=1)


def seam_edges(rest: np.ndarray) -> np.ndarray:
    """(S, 2) edges without length between the vertices of ``rest`` (N, 3) that are at one place."""
    order, same = by_place(rest)
    return np.stack([order[:-1], order[1:]], axis=1)[same]


def with_seams(rest: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """``edges`` (E, 2) and those of ``seam_edges``."""
    return np.concatenate([edges, seam_edges(rest)])


def meeting_parts(rest: np.ndarray, triangles: np.ndarray, parts: np.ndarray, count: int) -> np.ndarray:
    """(count, count) bool: the ``parts`` (N,) int that have vertices at the corners of one of the ``triangles`` (T, 3).

    rest (N, 3). All parts with a vertex at a corner's place are at that corner, as where the faces of several parts
    meet at a seam.
    """
    # The interface loads this module as well.
    from scipy.sparse import csr_matrix

    order, same = by_place(rest)
    places = np.zeros(len(rest), np.int64)
    places[order[1:]] = np.cumsum(~same)
    at_places = csr_matrix((np.ones(len(rest), bool), (places, parts)), shape=(len(rest), count))
    corners, own = places[triangles].ravel(), np.repeat(np.arange(len(triangles)), 3)
    at_triangles = csr_matrix((np.ones(len(corners), bool), (own, corners)), shape=(len(triangles), len(rest)))
    found = at_triangles @ at_places
    return (found.T @ found).toarray()


def sewn_vertices(rest: np.ndarray, border: np.ndarray, weights: "sparse.csr_matrix") -> np.ndarray:
    """(N,) the vertex that stands for each: of those on the ``border`` (N,) bool that are at one place of ``rest``
    (N, 3) and that bones move alike, by their rows of ``weights`` (N, P), the first; else itself.

    Vertices that are no border, as of two layers that touch, belong to no seam; nor do those that bones move apart.
    """
    first, left = np.arange(len(rest)), np.flatnonzero(border)
    while len(left):
        order, same = by_place(rest[left])
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        left = left[order]
        leaders = np.repeat(left[starts], np.diff([*starts, len(left)]))
        alike = np.asarray(abs(weights[left] - weights[leaders]).sum(axis=1)).ravel() < _ALIKE
        first[left[alike]] = leaders[alike]
        # Among the others, each place has another leader.
        left = left[~alike]
    return first


def torn_seams(rest: np.ndarray, edges: np.ndarray, frames: Iterable[np.ndarray]) -> int:
    """The number of seam edges without an edge of the mesh, of ``edges`` (E, 2), that open in one of the ``frames``,
    each (N, 3) in any space."""
    seams = np.sort(seam_edges(rest))
    if not len(seams):
        return 0
    own, found = (np.sort(each) @ [len(rest), 1] for each in (edges, seams))
    first, second = seams[~np.isin(found, own)].T
    torn = np.zeros(len(first), bool)
    for points in frames:
        gaps = np.linalg.norm(points[first] - points[second], axis=1)
        torn |= gaps > _GAP * diagonal(points)
    return int(np.count_nonzero(torn))
