# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights: vertices attached to a bone far from its other ones, found and corrected (Weber 2000; smooth skinning
chapter, on rogue vertices).

The vertices of a bone fall into islands, contiguous over welded edges. The one around the bone's best vertex is valid.
Another one may be an artist's intent as well: a jaw moves chin and lip, weights fade out in patches. What tells them
apart is what they do: an island is rogue that tears the surface when the bones move, at its rim, against what the
vertices around it are moved by. Faint or smooth weights, and bones that move alike there, tear nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from ..deform.influences import weight_matrix
from .influence_rows import padded_influences, tidy_influences
from .smoothing import place_weights
from .types import Body, Skeleton

# Radians that each bone turns against its parent, about any axis, in the poses in which tears are looked for.
_TURN = 0.8
# Edge lengths by which an island's rim is torn off, root of the mean square over those poses: from which on it may be
# rogue, and from which on hardly anything else is; and the same as shares of the mesh's extent, as what nobody can
# see is no fault however fine the mesh is.
_TEAR, _HARD_TEAR = 0.2, 1.0
_SEEN, _HARD_SEEN, _CERTAINLY_SEEN = 0.002, 0.003, 0.005
# Edge lengths that the bone alone takes vertices away: bones that move more alike are neighbors.
_APART = 2.2
# What is certain is taken so far away by its bone alone, in shares of the extent, or half as far by a bone that is so
# many times as far as another: below these, the binding of each vertex to its nearest bone tears, too.
_FAR_AWAY, _FAR_BONE = 0.06, 2.25
# Larger shares of a connected part of the mesh are no accident, nor is what has so many times the weights of the bone's
# first island.
_LARGE, _MOST = 0.25, 4.0
# Nor are larger patches, in places and as a share of the part, if their mean weight is less or their bone the nearest.
_PATCH, _PATCH_SHARE, _FULL = 24, 0.0025, 0.5
# What tears little is rogue only with fewer of the bone's weights than that, against its first island.
_MINOR = 0.5
# How far into the distances of a bone's vertices, by weight, its usual distance is: strays are far away, so few count.
_USUAL = 0.1
# A whole part of the mesh, a button or an eye, is rogue if its bone is so many times as far as another, and so many
# times as far as the bone reaches elsewhere, where it has more weights.
_FAR_PART, _REACH = 2.0, 1.1
# A place of which that much is rogue can hide that the places around it belong together.
_LOST = 0.5
# What a vertex's own weight counts beside the mean of its neighbors'.
_OWN = 1e-3
# Distances that differ by less are alike.
_AS_NEAR = 1.1


@dataclass(frozen=True, eq=False)
class Island:
    """vertices (n,) that follow ``bone`` (an index), apart from its valid ones; strength: its largest weight there.

    certain: it tears the surface so that it can hardly be meant.
    """

    bone: int
    vertices: np.ndarray
    strength: float
    certain: bool = False

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
    of full weight is not. The island around it is valid, and so is one with several times its weights. Of the others
    those are rogue that tear the surface where the bones turn: at the rim the vertices leave, by edge lengths and
    visibly, the place where the nearest valid vertex's bones would take them. A small tear by the bone that is nearest
    is none, and neither are islands that only rogue vertices cut off, or large ones: a quarter of their connected part
    of the mesh, or both 24 places and a four-hundredth of it, unless they follow by half their weights or more a bone
    that is not the nearest. A whole connected part, which cannot tear, is rogue where
    its bone is far: farther than it reaches elsewhere, and twice as far as another one.
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
    islands: Sequence[Island],
    locked: np.ndarray | None = None,
) -> CleanWeights:
    """Rogue weights given to the bones of the nearest valid vertex, in that one's shares.

    islands: those to correct, from ``rogue_islands``: all, or only those that are certain. Nearest is over the surface,
    and in space for parts without a valid vertex. bones, weights (N, K), rows that sum to 1; the result has the same K,
    and rows without corrected weights as they were. Weights of bones ``locked`` (P,) stay, rogue or not.
    """
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return CleanWeights(bones.astype(np.int32), weights.copy(), np.zeros(0, np.int64))
    locked = np.zeros(len(skeleton), bool) if locked is None else np.asarray(locked, dtype=bool)
    attachments = _Attachments(body, skeleton, weight_matrix(bones, weights, len(skeleton)))
    rogue = attachments.rogue()
    chosen = attachments.members(islands) & ~locked[attachments.bones]
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
        self._usual = _quantiles(self.distances, self.bones, len(skeleton), _USUAL, self.weights)
        self._certain = np.zeros(self.count, bool)

    def rogue(self) -> np.ndarray:
        """(A,) bool"""
        if len(self._body.place_edges) == 0:
            return np.zeros(len(self.bones), bool)
        return self._rogue_islands()[self.label]

    def islands(self, rogue: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> list[Island]:
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
                bone, strength = int(bones.flat[members[0]]), float(weights.flat[members].max())
                certain = bool(self._certain[self.label[found[members[0]]]])
                result.append(Island(bone, vertices, strength, certain))
        return sorted(result, key=lambda island: (island.size, island.strength, island.bone, island.vertices[0]))

    def members(self, islands: Iterable[Island]) -> np.ndarray:
        """(A,) bool: the attachments of ``islands``."""
        chosen = np.zeros(len(self.bones), bool)
        for island in islands:
            found = self._find(self._body.place[island.vertices], np.full(island.size, island.bone))
            chosen[found[found >= 0]] = True
        return chosen

    def slots(self, chosen: np.ndarray, bones: np.ndarray) -> np.ndarray:
        """(N, K) bool: the slots of ``bones`` whose attachment is among ``chosen`` (A,)."""
        found = self._find(np.repeat(self._body.place, bones.shape[1]), bones.ravel())
        return ((found >= 0) & chosen[found]).reshape(bones.shape)

    def donors(self, rogue: np.ndarray, locked: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
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

    def _rogue_islands(self) -> np.ndarray:
        """(count,) bool, by island; sets which of them are certain."""
        size = np.bincount(self.label, minlength=self.count)
        mass = np.bincount(self.label, self.weights, self.count)
        bone = self._of_island(self.bones)
        of_part = np.bincount(self._body.place_components)[self._of_island(self._body.place_components[self.places])]
        best_island = np.full(len(self._skeleton), -1)
        best_island[self.bones] = self.label[_first_best(self._scores(), self.bones)[self.bones]]
        of_bone = best_island[bone]
        own, least = self._distances_of_middles()
        nearest = own <= _AS_NEAR * least
        first = (of_bone == np.arange(self.count)) & ((size > 1) | nearest)
        whole = size == of_part
        most = np.zeros(self.count)
        np.maximum.at(most, self.label, self.distances)
        far = (own > _FAR_PART * least) & (own > _REACH * most[of_bone])
        # Full weights of a bone that is not the nearest one are no fading out: only tears tell of these.
        doubtful = (mass >= _FULL * size) & ~nearest & (size <= _LARGE * of_part)
        first |= (mass > _MOST * mass[of_bone]) & ~(doubtful & far)
        first |= (size > np.minimum(_LARGE * of_part, np.maximum(_PATCH, _PATCH_SHARE * of_part))) & ~whole & ~doubtful
        far &= mass <= mass[of_bone]
        valid = self._cut_off(first)
        torn = ~valid & ~whole
        tear, seen, apart, away = self._tears(torn)
        hard = torn & (tear >= _HARD_TEAR) & (seen >= _HARD_SEEN)
        soft = torn & (tear >= _TEAR) & (seen >= _SEEN) & (apart >= _APART) & ~nearest
        soft &= mass <= _MINOR * mass[of_bone]
        self._certain = hard & (seen >= _CERTAINLY_SEEN) & ~nearest
        self._certain &= away >= np.where(own >= _FAR_BONE * least, _FAR_AWAY / 2, _FAR_AWAY)
        return hard | soft | (~valid & whole & far)

    def _tears(self, islands) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of ``islands`` (count,) bool: how far their weights take the rim from where the nearest place without such
        would take it, in edge lengths and in shares of the extent, and how far their bone alone takes them, in both
        as well; each (count,), root of the mean square over poses, the mean over the places; 0 for the others."""
        chosen = np.flatnonzero(islands[self.label])
        if not len(chosen):
            return tuple(np.zeros((4, self.count)))
        donors, sources = self.donors(islands[self.label], np.zeros(len(self._skeleton), bool))
        places, label = self.places[chosen], self.label[chosen]
        alone = sparse.coo_matrix(
            (np.ones(len(chosen)), (np.arange(len(chosen)), self.bones[chosen])), (len(chosen), len(self._skeleton))
        )
        shares = alone.tocsr() - donors[np.maximum(sources[places], 0)]
        off = np.sqrt(_squared_offsets(self._skeleton, shares, self._body.points[places]))
        # Not the diagonal of the box, which is another one when the mesh is turned.
        offsets = self._body.points - self._body.points.mean(axis=0)
        extent = max(2 * float(np.linalg.norm(offsets, axis=1).max()), np.finfo(float).tiny)
        graph = self._body.edge_graph
        degree = np.maximum(np.diff(graph.indptr), 1)
        length = np.asarray(graph.sum(axis=1)).ravel() / degree
        length = np.maximum(length, np.finfo(float).tiny)[places]
        inside = np.bincount(np.concatenate(self._links), minlength=len(self.bones))
        rim = inside[chosen] < degree[places]
        of_rim = np.maximum(np.bincount(label[rim], minlength=self.count), 1)
        moved = (self.weights[chosen] * off)[rim]
        tear = np.bincount(label[rim], moved / length[rim], self.count) / of_rim
        seen = np.bincount(label[rim], moved, self.count) / of_rim / extent
        sizes = np.maximum(np.bincount(label, minlength=self.count), 1)
        apart, away = (np.bincount(label, values, self.count) / sizes for values in (off / length, off / extent))
        return tear, seen, apart, away

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
        usual = self._usual[self.bones]
        ratio = np.divide(self.distances, usual, out=np.zeros_like(usual), where=usual > 0)
        return support / (1 + ratio**2)

    def _distances_of_middles(self) -> tuple[np.ndarray, np.ndarray]:
        """(count,) how far the middle of each island is from its bone, and from the nearest one that moves anything."""
        size = np.bincount(self.label, minlength=self.count)
        middle = np.stack(
            [np.bincount(self.label, self._body.points[self.places, i], self.count) / size for i in range(3)], axis=1
        )
        heads, tails = self._skeleton.heads, self._skeleton.tails
        least = np.full(self.count, np.inf)
        for bone in np.unique(self.bones):
            np.minimum(least, _segment_distances(middle, heads[bone], tails[bone]), out=least)
        own = self._of_island(self.bones)
        return _segment_distances(middle, heads[own], tails[own]), least

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


def _quantiles(values, groups, count, share: float, weights) -> np.ndarray:
    """(count,) of ``values`` (A,) in each group the one below which ``share`` of the ``weights`` (A,) is; 0 for groups
    without members."""
    order = np.lexsort((values, groups))
    running = np.cumsum(weights[order])
    totals = np.bincount(groups, weights, count)
    ends = np.cumsum(totals)
    place = np.searchsorted(running, ends - (1 - share) * totals - 1e-12 * ends[-1])
    return np.where(totals > 0, values[order][np.minimum(place, len(values) - 1)], 0.0)


def _squared_offsets(skeleton: Skeleton, shares: sparse.csr_matrix, points: np.ndarray) -> np.ndarray:
    """(n,) squared distance between where two blends of bones take each of ``points`` (n, 3), the mean over all poses
    in which every bone is turned by ``_TURN`` about its head, each about an axis of its own, all axes as likely.

    shares (n, P): those of the first blend minus those of the second, sums 0.

    In closed form, so that nothing depends on the order of the bones or on the mesh's axes. Such a turn leaves of a
    vector, in the mean, the share c = (1 + 2 cos) / 3; what the mean loses in squared length, the variance gains. From
    the last bones up to the roots each turn acts on the weighted sum of all that hangs from it, and the sums of
    different branches are independent, as their turns are.
    """
    left = (1 + 2 * np.cos(_TURN)) / 3
    depths, ancestor = np.zeros(len(skeleton), int), skeleton.parents
    while (ancestor >= 0).any():
        depths += ancestor >= 0
        ancestor = np.where(ancestor >= 0, skeleton.parents[ancestor], -1)
    shares = shares.tocoo()
    of, bone, share = shares.row.astype(np.int64), shares.col.astype(np.int64), shares.data
    # Sums of vectors from each point itself, so that none is taken away from where it lies.
    mean, variance = np.zeros((len(of), 3)), np.zeros(len(of))
    for level in range(int(depths.max(initial=0)), -1, -1):
        now = (bone >= 0) & (depths[bone] == level)
        keys, group = np.unique(of[now] * len(skeleton) + bone[now], return_inverse=True)
        gather = sparse.csr_matrix(
            (np.ones(len(group.ravel())), (group.ravel(), np.flatnonzero(now))), (len(keys), len(of))
        )
        ends, turning = np.divmod(keys, len(skeleton))
        total, means = gather @ share, gather @ mean
        arm = means - total[:, None] * (skeleton.heads[turning] - points[ends])
        variances = gather @ variance + (1 - left**2) * np.einsum("ni,ni->n", arm, arm)
        of, bone = np.concatenate([of[~now], ends]), np.concatenate([bone[~now], skeleton.parents[turning]])
        share, variance = np.concatenate([share[~now], total]), np.concatenate([variance[~now], variances])
        mean = np.concatenate([mean[~now], means - (1 - left) * arm])
    sums = np.stack([np.bincount(of, mean[:, i], len(points)) for i in range(3)], axis=1)
    return np.einsum("ni,ni->n", sums, sums) + np.bincount(of, variance, len(points))
