# SPDX-License-Identifier: GPL-3.0-or-later
"""A body's surface: how far regions are apart on it, how much they touch, and what hangs together.

What lies near what at rest does not count: a hand that rests at a thigh touches nothing.
"""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from .binding.types import WELDING_DISTANCE, weld
from .deform.influences import weight_matrix
from .geometry import diagonal, vertex_areas

# Loose pieces, such as eyes or armor, are joined by bridges: from a place to those of its nearest places that belong to
# another piece. The longest bridge is this multiple of the shortest, as a longer one would lead past the body.
_NEAREST, _LONGEST_BRIDGE = 12, 2.0
# The axes after, and before, each one.
_AFTER, _BEFORE = [1, 2, 0], [2, 0, 1]


class BodySurface:
    """points (N, 3), triangles (T, 3). Vertices at one place are welded, and loose pieces joined to what is nearest,
    once something asks for it: what is inside needs neither."""

    def __init__(self, points: np.ndarray, triangles: np.ndarray):
        self._points, self._triangles = points, triangles

    @cached_property
    def _place(self) -> np.ndarray:
        return weld(self._points, WELDING_DISTANCE * diagonal(self._points))

    @cached_property
    def _places(self) -> np.ndarray:
        return self._points[np.unique(self._place, return_index=True)[1]]

    @cached_property
    def _edges(self) -> np.ndarray:
        corners = self._place[self._triangles]
        return _once(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]))

    @cached_property
    def _piece(self) -> np.ndarray:
        return np.asarray(connected_components(_graph(self._places, self._edges), directed=False)[1])

    @cached_property
    def _bridges(self) -> np.ndarray:
        return _once(_bridges(self._places, self._piece))

    @cached_property
    def _links(self) -> np.ndarray:
        """(L, 2): edges and bridges."""
        return np.concatenate([self._edges, self._bridges])

    @cached_property
    def _corners(self) -> np.ndarray:
        """(3, 3, T): by corner, axis and triangle, so that a step for all triangles is a step along memory."""
        return np.ascontiguousarray(self._points[self._triangles].transpose(1, 2, 0))

    def pieces(self) -> np.ndarray:
        """(N,) the loose piece that each vertex belongs to."""
        return self._piece[self._place]

    def ways(self, regions: list[np.ndarray]) -> np.ndarray:
        """(P, P) the shortest way over the surface from region to region, inf where none leads there.

        regions: the vertices of each.
        """
        graph = _graph(self._places, self._links)
        ways = np.full((len(regions), len(regions)), np.inf)
        for region, mine in enumerate(regions):
            if len(mine):
                far = dijkstra(graph, directed=False, indices=np.unique(self._place[mine]), min_only=True)
                ways[region] = [far[self._place[theirs]].min(initial=np.inf) for theirs in regions]
        return ways

    def detours(self, regions: list[np.ndarray]) -> np.ndarray:
        """(P, P) by how much the shortest way over the surface from region to region is longer than the straight one.

        regions: the vertices of each. Where no way leads from one to the other, the straight one is all detour. inf for
        regions without vertices.
        """
        lines, ways = np.full((len(regions), len(regions)), np.inf), self.ways(regions)
        for region, mine in enumerate(regions):
            if len(mine):
                straight = cKDTree(self._points[mine]).query(self._places)[0]
                lines[region] = [straight[self._place[theirs]].min(initial=np.inf) for theirs in regions]
        return np.where(np.isfinite(ways), ways - np.where(np.isfinite(ways), lines, 0.0), lines)

    def contacts(self, bones: np.ndarray, weights: np.ndarray, bone_count: int) -> tuple[np.ndarray, np.ndarray]:
        """(P, P), symmetric: how much bones touch on the surface, and how much of it is not across a bridge.

        bones, weights (N, K). Each edge counts by its length and by the products of its ends' weights, so that the sum
        over the boundary of two regions is about its length; a bridge is as long as the edges at its ends.
        """
        count = np.bincount(self._place)
        used = weight_matrix(bones, weights, bone_count)
        gathered = sparse.csr_matrix((1.0 / count[self._place], (self._place, np.arange(len(bones)))))
        used = gathered @ used
        lengths = np.linalg.norm(np.subtract(*self._places[self._edges.T]), axis=1)
        degrees = np.bincount(self._edges.ravel(), minlength=len(count))
        reach = np.bincount(self._edges.ravel(), np.repeat(lengths, 2), len(count)) / np.maximum(degrees, 1)
        over_edges = _touching(used, self._edges, lengths)
        over_bridges = _touching(used, self._bridges, reach[self._bridges].mean(axis=1))
        return over_edges + over_bridges, over_edges

    def areas(self) -> np.ndarray:
        """(N,) a third of the area of the triangles at each vertex."""
        return vertex_areas(self._points, self._triangles)

    def place_counts(self, labels: np.ndarray, count: int) -> np.ndarray:
        """(count,) the number of places at which there are vertices of each of the ``labels`` (N,)."""
        pairs = np.unique(np.stack([labels, self._place]), axis=1)
        return np.bincount(pairs[0], minlength=count)

    def patches(self, labels: np.ndarray) -> np.ndarray:
        """(N,) the patch of each vertex: vertices of one of the ``labels`` (N,) that hang together. A place where
        several labels meet belongs to the patch of the last one."""
        at_place = np.empty(len(self._places), dtype=labels.dtype)
        at_place[self._place] = labels
        ends = self._links
        ends = ends[at_place[ends[:, 0]] == at_place[ends[:, 1]]]
        return connected_components(_graph(self._places, ends), directed=False)[1][self._place]

    def borders(self, groups: np.ndarray, labels: np.ndarray, label_count: int) -> sparse.csr_matrix:
        """(G, label_count) how many edges lead from each of the ``groups`` (N,) to vertices of other groups with each
        of the ``labels`` (N,). A place where several groups meet belongs to the last one."""
        at_place = np.empty((2, len(self._places)), int)
        at_place[:, self._place] = groups, labels
        ends = np.concatenate([self._links, self._links[:, ::-1]])
        here, there = at_place[0][ends].T
        ends = ends[here != there]
        pairs = at_place[0][ends[:, 0]], at_place[1][ends[:, 1]]
        return sparse.csr_matrix((np.ones(len(ends)), pairs), shape=(int(groups.max()) + 1, label_count))

    def inside(self, places: np.ndarray) -> np.ndarray:
        """(n,) bool: which of ``places`` (n, 3) the surface surrounds, by more than half where it has holes.

        Generalized winding numbers (Jacobson et al. 2013), of solid angles as in Van Oosterom and Strackee 1983.
        """
        return np.array([abs(self._winding(place)) > 0.5 for place in places], bool)

    def _winding(self, place: np.ndarray) -> float:
        corners = self._corners - place[:, None]
        lengths = np.sqrt(np.einsum("cat,cat->ct", corners, corners))
        second, third = corners[1], corners[2]
        across = second[_AFTER] * third[_BEFORE] - second[_BEFORE] * third[_AFTER]
        volume = np.einsum("at,at->t", corners[0], across)
        below = lengths.prod(axis=0)
        for one, other, opposite in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            below += np.einsum("at,at->t", corners[one], corners[other]) * lengths[opposite]
        return float(np.arctan2(volume, below).sum() / (2.0 * np.pi))


def _touching(used: sparse.csr_matrix, ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    across = (used[ends[:, 0]].multiply(lengths[:, None]).T @ used[ends[:, 1]]).toarray()
    return across + across.T


def _bridges(places: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """(B, 2) places of different pieces that are about as near as any of either piece."""
    if not piece.any():
        return np.zeros((0, 2), np.int64)
    distances, near = cKDTree(places).query(places, min(_NEAREST, len(places)))
    far = np.repeat(np.arange(len(places)), near.size // len(places)), near.ravel()
    lengths, pieces = distances.ravel(), piece[np.array(far)]
    across = pieces[0] != pieces[1]
    pairs, lengths, pieces = np.stack(far, axis=1)[across], lengths[across], pieces[:, across]
    shortest = np.full(piece.max() + 1, np.inf)
    for side in pieces:
        np.minimum.at(shortest, side, lengths)
    return pairs[lengths <= _LONGEST_BRIDGE * shortest[pieces].max(axis=0)]


def _once(ends: np.ndarray) -> np.ndarray:
    """The edges ``ends`` (E, 2), each once, in ascending order, without those from a place to itself."""
    low, high = ends.min(axis=1).astype(np.int64), ends.max(axis=1)
    # One number for each edge sorts many times faster than a row.
    span = int(high.max(initial=0)) + 1
    return np.stack(np.divmod(np.unique((low * span + high)[low < high]), span), axis=1)


def _graph(places: np.ndarray, ends: np.ndarray) -> sparse.csr_matrix:
    """(W, W) lengths of the edges ``ends`` (E, 2)."""
    lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
    return sparse.csr_matrix((lengths, (ends[:, 0], ends[:, 1])), shape=(len(places), len(places)))
