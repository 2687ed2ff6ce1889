# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights: vertices attached to a bone far from its other vertices, found and corrected (Weber 2000; smooth
skinning chapter, on rogue vertices).

The vertices of a bone form islands, connected over welded edges. The island around the bone's best vertex is valid.
Other islands may be intended: a jaw moves chin and lip, weights fade out in patches. Their effect decides: an island is
rogue if its rim tears away from the vertices around it when the bones move. Faint or smooth weights, and bones that
move alike there, tear nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..grouping import members, ranges
from .attachments import Attachments
from .influence_rows import padded_influences, tidy_influences
from .random_turns import squared_offsets
from .types import Body, Skeleton

# Radians that each bone turns against its parent in the poses that show tears.
_TURN = 0.8
# Edge lengths by which an island's rim is torn off, as the root mean square over those poses: above the first an island
# may be rogue, above the second it nearly always is. The others are shares of the mesh's extent: an invisible tear is
# no fault, however fine the mesh is.
_TEAR, _HARD_TEAR = 0.2, 1.0
_SEEN, _HARD_SEEN, _CERTAINLY_SEEN = 0.002, 0.003, 0.005
# Edge lengths by which the bone alone moves vertices away: bones that move more alike are neighbors.
_APART = 2.2
# A certain island is moved away this far by its bone alone, as a share of the extent, or half as far if its bone is
# this many times as far away as another. Below these limits, binding each vertex to its nearest bone also tears.
_FAR_AWAY, _FAR_BONE = 0.06, 2.25
# An island is no accident above this share of its connected part, or with this many times the weights of the bone's
# first island.
_LARGE, _MOST = 0.25, 4.0
# Nor is a patch above this number of places and this share of the part, if its mean weight is lower or its bone the
# nearest.
_PATCH, _PATCH_SHARE, _FULL = 24, 0.0025, 0.5
# An island that tears little is rogue only below this share of the weights of the bone's first island.
_MINOR = 0.5
# The quantile, by weight, of the distances of a bone's vertices that is its usual distance: low, as strays are far.
_USUAL = 0.1
# A whole connected part, such as a button or an eye, is rogue if its bone is this many times as far away as another,
# and this many times as far as the bone reaches elsewhere, where it has more weights.
_FAR_PART, _REACH = 2.0, 1.1
# A place with this much rogue weight can hide that the places around it are connected.
_LOST = 0.5
# How much a vertex's own weight counts beside the mean of its neighbors.
_OWN = 1e-3
# Distances within this factor count as equal.
_AS_NEAR = 1.1


@dataclass(frozen=True, eq=False)
class Island:
    """vertices (n,) that follow ``bone`` (an index) apart from its valid vertices; strength: its largest weight there.

    certain: it tears the surface so much that it is hardly intended.
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
    """bones int32 and weights (N, K) without rogue weights; changed (n,): the vertices with new rows."""

    bones: np.ndarray
    weights: np.ndarray
    changed: np.ndarray


def rogue_islands(body: Body, skeleton: Skeleton, bones: np.ndarray, weights: np.ndarray) -> list[Island]:
    """Islands whose attachment to a bone is rogue, the smallest first. bones, weights (N, K), rows that sum to 1.

    The best vertex of a bone and its neighbors have the largest weights for their distance from the bone: a stray
    vertex of full weight does not. The island around the best vertex is valid, and so are islands with several times
    its weights. Another island is rogue if it tears the surface where the bones turn: its rim leaves, by edge lengths
    and visibly, the place where the bones of the nearest valid vertex would take it. Valid all the same are a small
    tear by the nearest bone, islands that only rogue vertices cut off, and large islands: a quarter of their connected
    part of the mesh, or both 24 places and a four-hundredth of it, unless they follow a bone that is not the nearest
    by half their weights or more. A whole connected part cannot tear; it is rogue where its bone is farther away than
    the bone reaches elsewhere, and twice as far as another bone.
    A single vertex is valid only where no other bone is nearer. Nothing is rogue in a mesh without edges.
    """
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return []
    return _Judgment(Attachments(body, skeleton, bones, weights)).islands(bones, weights)


def remove_rogue_weights(
    body: Body,
    skeleton: Skeleton,
    bones: np.ndarray,
    weights: np.ndarray,
    islands: Sequence[Island],
    locked: np.ndarray | None = None,
) -> CleanWeights:
    """Weights without ``islands``: each rogue weight goes to the bones of the nearest valid vertex, in its proportions.

    islands: those of ``rogue_islands`` to correct. Nearest is over the surface, and through space for parts without a
    valid vertex. bones, weights (N, K), rows that sum to 1; the result has the same K, and rows without corrected
    weights stay as they were. Weights of the bones ``locked`` (P,) stay, rogue or not.
    """
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return CleanWeights(bones.astype(np.int32), weights.copy(), np.zeros(0, np.int64))
    locked = np.zeros(len(skeleton), bool) if locked is None else np.asarray(locked, dtype=bool)
    attachments = Attachments(body, skeleton, bones, weights)
    rogue = _Judgment(attachments).rogue
    chosen = _members(attachments, islands) & ~locked[attachments.bones]
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


class _Judgment:
    """Which islands of attachments are rogue. rogue (A,) bool: their attachments."""

    def __init__(self, attachments: Attachments):
        self._at = attachments
        self.rogue, self._certain = np.zeros(len(attachments.bones), bool), np.zeros(attachments.count, bool)
        if len(attachments.body.place_edges):
            islands, self._certain = self._rogue_islands()
            self.rogue = islands[attachments.label]

    def islands(self, bones: np.ndarray, weights: np.ndarray) -> list[Island]:
        """The rogue attachments as vertices of ``bones`` and ``weights`` (N, K)."""
        at = self._at
        found = at.find(np.repeat(at.body.place, bones.shape[1]), bones.ravel())
        found = np.where((found >= 0) & (weights.ravel() > 0), found, -1)
        slots = np.flatnonzero((found >= 0) & self.rogue[found])
        labels = at.label[found[slots]]
        result = []
        for label, group in enumerate(members(labels, at.count)):
            if len(group):
                chosen = slots[group]
                bone, strength = int(bones.flat[chosen[0]]), float(weights.flat[chosen].max())
                vertices = np.unique(chosen // bones.shape[1])
                result.append(Island(bone, vertices, strength, bool(self._certain[label])))
        return sorted(result, key=lambda island: (island.size, island.strength, island.bone, island.vertices[0]))

    def _rogue_islands(self) -> tuple[np.ndarray, np.ndarray]:
        """(count,) bool: the rogue islands, and the certain ones among them."""
        at = self._at
        size = np.bincount(at.label, minlength=at.count)
        mass = np.bincount(at.label, at.weights, at.count)
        bone = at.of_island(at.bones)
        of_part = np.bincount(at.body.place_components)[at.of_island(at.body.place_components[at.places])]
        best_island = np.full(len(at.skeleton), -1)
        best_island[at.bones] = at.label[_first_best(self._scores(), at.bones)[at.bones]]
        of_bone = best_island[bone]
        own, least = at.distances_of_middles()
        nearest = own <= _AS_NEAR * least
        first = (of_bone == np.arange(at.count)) & ((size > 1) | nearest)
        whole = size == of_part
        most = np.zeros(at.count)
        np.maximum.at(most, at.label, at.distances)
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
        certain = hard & (seen >= _CERTAINLY_SEEN) & ~nearest
        certain &= away >= np.where(own >= _FAR_BONE * least, _FAR_AWAY / 2, _FAR_AWAY)
        return hard | soft | (~valid & whole & far), certain

    def _tears(self, islands: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of ``islands`` (count,) bool: how far their weights take the rim from where the nearest place outside of them
        would take it, in edge lengths and as a share of the extent; and the same for their bone alone. Each (count,),
        the root mean square over the poses, averaged over the places; 0 for other islands."""
        at = self._at
        chosen = np.flatnonzero(islands[at.label])
        if not len(chosen):
            return tuple(np.zeros((4, at.count)))
        donors, sources = at.donors(islands[at.label], np.zeros(len(at.skeleton), bool))
        places, label = at.places[chosen], at.label[chosen]
        alone = sparse.coo_matrix(
            (np.ones(len(chosen)), (np.arange(len(chosen)), at.bones[chosen])), (len(chosen), len(at.skeleton))
        )
        shares = alone.tocsr() - donors[np.maximum(sources[places], 0)]
        off = np.sqrt(squared_offsets(at.skeleton, shares, at.body.points[places], _TURN))
        # Not the diagonal of the box, which changes when the mesh is turned.
        offsets = at.body.points - at.body.points.mean(axis=0)
        extent = max(2 * float(np.linalg.norm(offsets, axis=1).max()), np.finfo(float).tiny)
        graph = at.body.edge_graph
        degree = np.maximum(np.diff(graph.indptr), 1)
        length = np.asarray(graph.sum(axis=1)).ravel() / degree
        length = np.maximum(length, np.finfo(float).tiny)[places]
        inside = np.bincount(np.concatenate(at.links), minlength=len(at.bones))
        rim = inside[chosen] < degree[places]
        of_rim = np.maximum(np.bincount(label[rim], minlength=at.count), 1)
        moved = (at.weights[chosen] * off)[rim]
        tear = np.bincount(label[rim], moved / length[rim], at.count) / of_rim
        seen = np.bincount(label[rim], moved, at.count) / of_rim / extent
        sizes = np.maximum(np.bincount(label, minlength=at.count), 1)
        apart, away = (np.bincount(label, values, at.count) / sizes for values in (off / length, off / extent))
        return tear, seen, apart, away

    def _cut_off(self, valid: np.ndarray) -> np.ndarray:
        """``valid`` (count,) and the islands that rogue places between cut off from valid ones: one such place, or any
        number of them for islands of small weights, which are hardly strays."""
        at = self._at
        lost = np.bincount(at.places, np.where(valid[at.label], 0.0, at.weights), len(at.body.points)) >= _LOST
        around = (at.body.edge_graph > 0).astype(np.int32)
        rim = (around @ sparse.diags(lost, dtype=np.int32)).tocsr()
        rim.eliminate_zeros()
        over = sparse.triu((rim @ rim.T).tocsr(), k=1).tocoo()
        first, second = (at.label[ends] for ends in at.shared(over.row, over.col))
        links = [np.column_stack([first, second])]

        # Holes are contiguous lost places; islands of one bone around a hole are linked by a node for that hole.
        inside = sparse.diags(lost, dtype=np.int32) @ rim
        inside.eliminate_zeros()
        hole = connected_components(inside, directed=False)[1]
        strength = np.zeros(at.count)
        np.maximum.at(strength, at.label, at.weights)
        counts = np.diff(rim.indptr)[at.places] * (valid | (strength < _LOST))[at.label]
        entries = ranges(rim.indptr[at.places], counts)
        keys = hole[rim.indices[entries]] * len(at.skeleton) + np.repeat(at.bones, counts)
        _, node = np.unique(keys, return_inverse=True)
        links.append(np.column_stack([np.repeat(at.label, counts), at.count + node.reshape(-1)]))

        first, second = np.concatenate(links).T
        nodes = at.count + (int(node.max()) + 1 if len(node) else 0)
        graph = sparse.coo_matrix((np.ones(len(first), bool), (first, second)), shape=(nodes, nodes))
        group = connected_components(graph, directed=False)[1][: at.count]
        return np.isin(group, group[valid])

    def _scores(self) -> np.ndarray:
        """(A,) the mean weight of the neighboring places for the bone, reduced by the distance from the bone.

        The place's own weight hardly counts, or a stray vertex would be the best of a bone without full weights
        elsewhere.
        """
        at = self._at
        first, second = at.links
        support = _OWN * at.weights
        degree = np.maximum(np.diff(at.body.edge_graph.indptr)[at.places], 1)
        np.add.at(support, first, at.weights[second] / degree[first])
        np.add.at(support, second, at.weights[first] / degree[second])
        usual = _quantiles(at.distances, at.bones, len(at.skeleton), _USUAL, at.weights)[at.bones]
        ratio = np.divide(at.distances, usual, out=np.zeros_like(usual), where=usual > 0)
        return support / (1 + ratio**2)


def _members(attachments: Attachments, islands: Iterable[Island]) -> np.ndarray:
    """(A,) bool: the attachments of ``islands``."""
    chosen = np.zeros(len(attachments.bones), bool)
    for island in islands:
        found = attachments.find(attachments.body.place[island.vertices], np.full(island.size, island.bone))
        chosen[found[found >= 0]] = True
    return chosen


def _first_best(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The index of the largest of ``values`` (A,) in each group 0 … of ``groups`` (A,); the first of equal ones.

    0 for empty groups.
    """
    order = np.lexsort((np.arange(len(values)), -values, groups))
    result = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
    firsts = order[np.unique(groups[order], return_index=True)[1]]
    result[groups[firsts]] = firsts
    return result


def _quantiles(values: np.ndarray, groups: np.ndarray, count: int, share: float, weights: np.ndarray) -> np.ndarray:
    """(count,) the weighted quantile ``share`` of ``values`` (A,) in each group; 0 for empty groups. weights (A,)."""
    order = np.lexsort((values, groups))
    running = np.cumsum(weights[order])
    totals = np.bincount(groups, weights, count)
    ends = np.cumsum(totals)
    place = np.searchsorted(running, ends - (1 - share) * totals - 1e-12 * ends[-1])
    return np.where(totals > 0, values[order][np.minimum(place, len(values) - 1)], 0.0)
