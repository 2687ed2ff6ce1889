# SPDX-License-Identifier: GPL-3.0-or-later
"""The pairs of a place and a bone that moves it, and the islands that they form over the edges of a mesh."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from ..deform.influences import weight_matrix
from ..grouping import ranges
from ..segments import segment_distances
from .smoothing import place_weights
from .types import Body, Skeleton


class Attachments:
    """All A pairs of a place and a bone that moves it, in order of place and bone.

    places, bones, weights (A,); distances (A,) from the place to the bone. links: two arrays (L,) of attachments to the
    same bone at both ends of an edge. label (A,): the island of each attachment, 0 … count − 1.
    """

    def __init__(self, body: Body, skeleton: Skeleton, bones: np.ndarray, weights: np.ndarray):
        """bones, weights (N, K)."""
        self.body, self.skeleton = body, skeleton
        matrix = place_weights(body, weight_matrix(bones, weights, len(skeleton)))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self.matrix = matrix
        self.bones, self.weights = matrix.indices.astype(np.int64), matrix.data
        self.places = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        self._keys = self.places * len(skeleton) + self.bones
        self.distances = segment_distances(
            body.points[self.places], skeleton.heads[self.bones], skeleton.axes[self.bones]
        )
        self.links = self.shared(*body.place_edges.T)
        first, second = self.links
        graph = sparse.coo_matrix((np.ones(len(first), bool), (first, second)), shape=(len(self.bones),) * 2)
        self.count, self.label = connected_components(graph, directed=False)

    def slots(self, chosen: np.ndarray, bones: np.ndarray) -> np.ndarray:
        """(N, K) bool: the slots of ``bones`` whose attachment is among ``chosen`` (A,)."""
        found = self.find(np.repeat(self.body.place, bones.shape[1]), bones.ravel())
        return ((found >= 0) & chosen[found]).reshape(bones.shape)

    def donors(self, rogue: np.ndarray, locked: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Rows (W, P) without ``rogue`` attachments (A,) and ``locked`` bones (P,), which sum to 1 or 0; and for each
        place (W,) the nearest place that can give its row, −1 where there is none."""
        size = len(self.body.points)
        clean = self.matrix.copy()
        clean.data = np.where(rogue | locked[self.bones], 0.0, clean.data)
        clean.eliminate_zeros()
        sums = np.asarray(clean.sum(axis=1)).ravel()
        clean = (sparse.diags(np.divide(1.0, sums, out=np.zeros(size), where=sums > 0)) @ clean).tocsr()
        able = sums > 0
        spotless = able & (np.bincount(self.places[rogue], minlength=size) == 0)
        sources = np.full(size, -1)
        given = np.flatnonzero(spotless if spotless.any() else able)
        if len(given) == 0:
            return clean, sources
        away, _, nearest = dijkstra(
            self.body.edge_graph, directed=False, indices=given, min_only=True, return_predecessors=True
        )
        sources = np.where(np.isfinite(away), nearest, -1)
        lost = np.flatnonzero(sources < 0)
        if len(lost):
            sources[lost] = given[cKDTree(self.body.points[given]).query(self.body.points[lost])[1]]
        return clean, sources

    def distances_of_middles(self) -> tuple[np.ndarray, np.ndarray]:
        """(count,) distance of the middle of each island from its bone and from the nearest bone of any place."""
        size = np.bincount(self.label, minlength=self.count)
        middle = np.stack(
            [np.bincount(self.label, self.body.points[self.places, i], self.count) / size for i in range(3)], axis=1
        )
        heads, axes = self.skeleton.heads, self.skeleton.axes
        least = np.full(self.count, np.inf)
        for bone in np.unique(self.bones):
            np.minimum(least, segment_distances(middle, heads[bone], axes[bone]), out=least)
        own = self.of_island(self.bones)
        return segment_distances(middle, heads[own], axes[own]), least

    def of_island(self, values: np.ndarray) -> np.ndarray:
        """(count,) of values (A,) that are the same all over each island."""
        result = np.zeros(self.count, np.int64)
        result[self.label] = values
        return result

    def shared(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of attachments to the same bone, of the places ``first`` and ``second`` (E,)."""
        counts = np.diff(self.matrix.indptr)[first]
        one = ranges(self.matrix.indptr[first], counts)
        other = self.find(np.repeat(second, counts), self.bones[one])
        return one[other >= 0], other[other >= 0]

    def find(self, places: np.ndarray, bones: np.ndarray) -> np.ndarray:
        """The attachments of pairs of places and bones, −1 where there is none."""
        keys = places * len(self.skeleton) + bones
        found = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[found] == keys, found, -1)
