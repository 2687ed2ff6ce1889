# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights: vertices attached to a bone far from its other ones, found and corrected (Weber 2000; smooth skinning
chapter, on rogue vertices).

The vertices of a bone fall into islands, contiguous over welded edges. The one around the bone's best vertex is valid,
and so is what a bone plausibly moves besides; all other islands are rogue.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from ..deform.influences import weight_matrix
from .influence_rows import padded_influences, tidy_influences
from .smoothing import place_weights
from .types import Body, Skeleton

# A second place of a bone has at least this share of the size of its first; on the same part of the mesh it begins
# nearer to the bone than half of the first lies: a jaw moves chin and lip, with nothing in between.
_SECOND_PLACE = 0.1
# On other parts, from so many vertices on it is no accident, and up to so many times the bone's usual distance.
_FEWEST = 3
_REACH = 2.0
# A place of which that much is rogue can hide that the places around it belong together.
_LOST = 0.5
# What a vertex's own weight counts beside the mean of its neighbors'.
_OWN = 1e-3
# Distances that differ by less are alike.
_AS_NEAR = 1.1


@dataclass(frozen=True, eq=False)
class Island:
    """vertices (n,) that follow ``bone`` (an index), apart from its valid ones; strength: its largest weight there."""

    bone: int
    vertices: np.ndarray
    strength: float

    @property
    def size(self) -> int:
        return len(self.vertices)


@dataclass(frozen=True, eq=False)
class CleanWeights:
    """bones int32 and weights (N, K) without rogue weights; changed (n,): the vertices whose rows are new."""

    bones: np.ndarray
    weights: np.ndarray
    changed: np.ndarray


def rogue_islands(body: Body, skeleton: Skeleton, bones: np.ndarray, weights: np.ndarray) -> list[Island]:
    """Islands whose attachment to a bone is rogue, the smallest first. bones, weights (N, K), rows that sum to 1.

    The best vertex of a bone has, with its neighbors, the largest weights for how near it is: alone, a stray vertex
    of full weight is not. Beside the island around it these are valid:
    - a second place on the same part of the mesh, of a tenth of its size or more and as near to the bone,
    - on another part of the mesh, such as a button, the best island there, if it is the whole part, or three vertices
      and more and a tenth of that part or of the bone's first island; and if it lies within the reach that the bone has
      elsewhere, or nearer to it than to any other bone,
    - islands that only rogue vertices cut off.
    A single vertex is the valid one of a bone only where no other is nearer. Nothing is rogue in meshes without edges.
    """
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return []
    attachments = _Attachments(body, skeleton, weight_matrix(bones, weights, len(skeleton)))
    rogue = attachments.rogue()
    return attachments.islands(rogue, bones, weights)


def remove_rogue_weights(
    body: Body,
    skeleton: Skeleton,
    bones: np.ndarray,
    weights: np.ndarray,
    islands: Sequence[Island] | None = None,
    locked: np.ndarray | None = None,
) -> CleanWeights:
    """Every rogue weight given to the bones of the nearest valid vertex, in that one's shares.

    islands: those to correct, from ``rogue_islands``; None corrects all. Nearest is over the surface, and in space for
    parts without a valid vertex. bones, weights (N, K), rows that sum to 1; the result has the same K, and rows without
    rogue weights as they were. Weights of bones ``locked`` (P,) stay, rogue or not.
    """
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return CleanWeights(bones.astype(np.int32), weights.copy(), np.zeros(0, np.int64))
    locked = np.zeros(len(skeleton), bool) if locked is None else np.asarray(locked, dtype=bool)
    attachments = _Attachments(body, skeleton, weight_matrix(bones, weights, len(skeleton)))
    rogue = attachments.rogue()
    chosen = rogue if islands is None else attachments.members(islands)
    chosen = chosen & ~locked[attachments.bones]
    donors, sources = attachments.donors(rogue | chosen, locked)
    hit = attachments.slots(chosen, bones) & (weights > 0)
    mass = np.where(hit, weights, 0.0).sum(axis=1)
    source = sources[body.place]
    changed = np.flatnonzero((mass > 0) & (source >= 0))
    given = donors[source[changed]]
    width = max(int(np.diff(given.indptr).max(initial=1)), 1)
    filled = np.arange(width) < np.diff(given.indptr)[:, None]
    given_bones, given_weights = np.zeros(filled.shape, np.int32), np.zeros(filled.shape)
    given_bones[filled], given_weights[filled] = given.indices, given.data
    row_bones = np.hstack([bones[changed], given_bones])
    row_weights = np.hstack([np.where(hit, 0.0, weights)[changed], given_weights * mass[changed, None]])
    rows = padded_influences(*tidy_influences(row_bones, row_weights, bones.shape[1], locked), bones.shape[1])
    new_bones, new_weights = bones.astype(np.int32), weights.copy()
    new_bones[changed], new_weights[changed] = rows
    return CleanWeights(new_bones, new_weights, changed)


class _Attachments:
    """All pairs of a place and a bone that moves it, A of them, in order of place and bone.

    places, bones, weights, distances (A,): from the place to the bone. label (A,): the island of each.
    """

    def __init__(self, body: Body, skeleton: Skeleton, matrix: sparse.csr_matrix):
        self._body, self._skeleton = body, skeleton
        matrix = place_weights(body, matrix)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self.matrix = matrix
        self.bones, self.weights = matrix.indices.astype(np.int64), matrix.data
        self.places = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        self._keys = self.places * len(skeleton) + self.bones
        self.distances = _segment_distances(
            body.points[self.places], skeleton.heads[self.bones], skeleton.tails[self.bones]
        )
        self._links = self._shared(*body.place_edges.T)
        first, second = self._links
        graph = sparse.coo_matrix((np.ones(len(first), bool), (first, second)), shape=(len(self.bones),) * 2)
        self.count, self.label = connected_components(graph, directed=False)
        self._typical = _medians(self.distances, self.bones, len(skeleton), self.weights)

    def rogue(self) -> np.ndarray:
        """(A,) bool"""
        if len(self._body.place_edges) == 0:
            return np.zeros(len(self.bones), bool)
        valid = self._valid_islands()
        return ~self._cut_off(valid)[self.label]

    def islands(self, rogue, bones, weights) -> list[Island]:
        """Those of the attachments ``rogue`` (A,), as vertices of ``bones`` and ``weights`` (N, K)."""
        found = self._find(np.repeat(self._body.place, bones.shape[1]), bones.ravel())
        found = np.where((found >= 0) & (weights.ravel() > 0), found, -1)
        slots = np.flatnonzero((found >= 0) & rogue[found])
        labels = self.label[found[slots]]
        slots = slots[np.argsort(labels, kind="stable")]
        result = []
        for members in np.split(slots, np.cumsum(np.unique(labels, return_counts=True)[1])[:-1]):
            if len(members):
                vertices = np.unique(members // bones.shape[1])
                result.append(Island(int(bones.flat[members[0]]), vertices, float(weights.flat[members].max())))
        return sorted(result, key=lambda island: (island.size, island.strength, island.bone, island.vertices[0]))

    def members(self, islands) -> np.ndarray:
        """(A,) bool: the attachments of ``islands``."""
        chosen = np.zeros(len(self.bones), bool)
        for island in islands:
            found = self._find(self._body.place[island.vertices], np.full(island.size, island.bone))
            chosen[found[found >= 0]] = True
        return chosen

    def slots(self, chosen, bones) -> np.ndarray:
        """(N, K) bool: the slots of ``bones`` whose attachment is among ``chosen`` (A,)."""
        found = self._find(np.repeat(self._body.place, bones.shape[1]), bones.ravel())
        return ((found >= 0) & chosen[found]).reshape(bones.shape)

    def donors(self, rogue, locked) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Rows (W, P) to give, without ``rogue`` attachments and ``locked`` bones, summing to 1 or 0; and the nearest
        place (W,) that gives to each, −1 where there is none."""
        size = len(self._body.points)
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
            self._body.edge_graph, directed=False, indices=given, min_only=True, return_predecessors=True
        )
        sources = np.where(np.isfinite(away), nearest, -1)
        lost = np.flatnonzero(sources < 0)
        if len(lost):
            sources[lost] = given[cKDTree(self._body.points[given]).query(self._body.points[lost])[1]]
        return clean, sources

    def _valid_islands(self) -> np.ndarray:
        """(count,) bool, by island."""
        size = np.bincount(self.label, minlength=self.count)
        bone = self._of_island(self.bones)
        part = self._of_island(self._body.place_components[self.places])
        score = self._scores()
        nearest = self._nearest_bone()
        best_island = np.full(len(self._skeleton), -1)
        best_island[self.bones] = self.label[_first_best(score, self.bones)[self.bones]]
        of_bone = best_island[bone]
        first = (of_bone == np.arange(self.count)) & ((size > 1) | nearest)

        least, most = np.full(self.count, np.inf), np.zeros(self.count)
        np.minimum.at(least, self.label, self.distances)
        np.maximum.at(most, self.label, self.distances)
        half = _medians(self.distances, self.label, self.count)
        same_part = part == part[of_bone]
        second = same_part & (size > 1) & (size >= _SECOND_PLACE * size[of_bone]) & (least <= half[of_bone])

        pair = np.unique(self.bones * (int(part.max()) + 1) + part[self.label], return_inverse=True)[1].reshape(-1)
        leads = np.isin(np.arange(self.count), self.label[_first_best(score, pair)])
        of_part = np.bincount(self._body.place_components)
        whole = size == of_part[part]
        mean = np.bincount(self.label, self.distances, self.count) / size
        reach = np.maximum(most[of_bone], _REACH * self._typical[bone])
        many = (size >= _FEWEST) & (size >= _SECOND_PLACE * np.minimum(size[of_bone], of_part[part]))
        other = ~same_part & leads & (whole | many) & ((mean <= _AS_NEAR * reach) | nearest)
        return first | ((second | other) & first[of_bone])

    def _cut_off(self, valid) -> np.ndarray:
        """``valid`` (count,) with the islands that rogue places between cut off from valid ones: one such place, or for
        islands of small weights, which are hardly strays, any number of them."""
        lost = np.bincount(self.places, np.where(valid[self.label], 0.0, self.weights), len(self._body.points)) >= _LOST
        around = (self._body.edge_graph > 0).astype(np.int32)
        rim = (around @ sparse.diags(lost, dtype=np.int32)).tocsr()
        rim.eliminate_zeros()
        over = sparse.triu((rim @ rim.T).tocsr(), k=1).tocoo()
        first, second = (self.label[ends] for ends in self._shared(over.row, over.col))
        links = [np.column_stack([first, second])]

        # Holes are contiguous lost places; islands of one bone around a hole are linked by a node for that hole.
        inside = sparse.diags(lost, dtype=np.int32) @ rim
        inside.eliminate_zeros()
        hole = connected_components(inside, directed=False)[1]
        strength = np.zeros(self.count)
        np.maximum.at(strength, self.label, self.weights)
        counts = np.diff(rim.indptr)[self.places] * (valid | (strength < _LOST))[self.label]
        starts = rim.indptr[self.places]
        entries = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        keys = hole[rim.indices[entries]] * len(self._skeleton) + np.repeat(self.bones, counts)
        _, node = np.unique(keys, return_inverse=True)
        links.append(np.column_stack([np.repeat(self.label, counts), self.count + node.reshape(-1)]))

        first, second = np.concatenate(links).T
        nodes = self.count + (int(node.max()) + 1 if len(node) else 0)
        graph = sparse.coo_matrix((np.ones(len(first), bool), (first, second)), shape=(nodes, nodes))
        group = connected_components(graph, directed=False)[1][: self.count]
        return np.isin(group, group[valid])

    def _scores(self) -> np.ndarray:
        """(A,) the mean weight of the places around one for the bone, less the farther it is from that.

        Its own weight hardly counts, or a stray vertex would be the best of a bone that has no full weights elsewhere.
        """
        first, second = self._links
        support = _OWN * self.weights
        degree = np.maximum(np.diff(self._body.edge_graph.indptr)[self.places], 1)
        np.add.at(support, first, self.weights[second] / degree[first])
        np.add.at(support, second, self.weights[first] / degree[second])
        typical = self._typical[self.bones]
        ratio = np.divide(self.distances, typical, out=np.zeros_like(typical), where=typical > 0)
        return support / (1 + ratio**2)

    def _nearest_bone(self) -> np.ndarray:
        """(count,) bool: no other bone that moves anything is clearly nearer to the middle of the island."""
        size = np.bincount(self.label, minlength=self.count)
        middle = np.stack(
            [np.bincount(self.label, self._body.points[self.places, i], self.count) / size for i in range(3)], axis=1
        )
        heads, tails = self._skeleton.heads, self._skeleton.tails
        least = np.full(self.count, np.inf)
        for bone in np.unique(self.bones):
            np.minimum(least, _segment_distances(middle, heads[bone], tails[bone]), out=least)
        own = self._of_island(self.bones)
        return _segment_distances(middle, heads[own], tails[own]) <= _AS_NEAR * least

    def _of_island(self, values) -> np.ndarray:
        """(count,) of values (A,) that are the same all over each island."""
        result = np.zeros(self.count, np.int64)
        result[self.label] = values
        return result

    def _shared(self, first, second) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of attachments to the same bone, of the places ``first`` and ``second`` (E,)."""
        starts, counts = self.matrix.indptr[first], np.diff(self.matrix.indptr)[first]
        one = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        other = self._find(np.repeat(second, counts), self.bones[one])
        return one[other >= 0], other[other >= 0]

    def _find(self, places, bones) -> np.ndarray:
        """The attachments of pairs of places and bones, −1 where there is none."""
        keys = places * len(self._skeleton) + bones
        found = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[found] == keys, found, -1)


def _segment_distances(points, heads, tails) -> np.ndarray:
    """(n,) distances of points (n, 3) from segments, n or one of them."""
    axes = tails - heads
    squared = np.einsum("...i,...i->...", axes, axes)
    offsets = points - heads
    along = np.einsum("...i,...i->...", offsets, axes) / np.where(squared > 0, squared, 1.0)
    return np.linalg.norm(offsets - np.clip(along, 0, 1)[..., None] * axes, axis=-1)


def _first_best(values, groups) -> np.ndarray:
    """Where the largest of ``values`` (A,) is in each of the groups 0 … of ``groups`` (A,); of equals the first.

    0 for groups without members.
    """
    order = np.lexsort((np.arange(len(values)), -values, groups))
    result = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
    firsts = order[np.unique(groups[order], return_index=True)[1]]
    result[groups[firsts]] = firsts
    return result


def _medians(values, groups, count, weights=None) -> np.ndarray:
    """(count,) the median of ``values`` (A,) in each group, by ``weights`` (A,); 0 for groups without members."""
    weights = np.ones(len(values)) if weights is None else weights
    order = np.lexsort((values, groups))
    running = np.cumsum(weights[order])
    totals = np.bincount(groups, weights, count)
    ends = np.cumsum(totals)
    middle = np.searchsorted(running, ends - totals / 2 - 1e-12 * ends[-1])
    return np.where(totals > 0, values[order][np.minimum(middle, len(values) - 1)], 0.0)
