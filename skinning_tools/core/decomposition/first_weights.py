# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights to start from where a skeleton's user has added and deleted bones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from ..bone_order import linked_bones
from ..seams import with_seams
from ..segments import segment_distances
from ..strongest import strongest_bones

# A vertex that has kept more of its weights than it lost shares the rest among its bones.
_LEAST_LEFT = 0.5


@dataclass(frozen=True, eq=False)
class FirstWeights:
    """Weights to start from: bones and weights (N, K) whose rows sum to 1. new (P,) bool: bones that had none before;
    lost (N,) bool: vertices whose bones are gone, and that follow a neighbor's for the time being. around: pairs of
    lost vertices (N,) bool and the bones (P,) bool that lie around them on the surface."""

    bones: np.ndarray
    weights: np.ndarray
    new: np.ndarray
    lost: np.ndarray
    around: tuple[tuple[np.ndarray, np.ndarray], ...]


def first_weights(
    rest: np.ndarray,
    edges: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    ends: np.ndarray,
    parents: np.ndarray,
    *,
    locked: np.ndarray | None = None,
    lost_before: np.ndarray | None = None,
) -> FirstWeights:
    """Weights to start from where bones were added and removed.

    rest (N, 3), edges (E, 2); bones, weights (N, K) as stored: of the bones that are left, and 0 of new bones.
    ends (P, 2, 3): heads and tails; parents (P,) int. What a vertex has lost of its weights goes to the strongest bone
    of a near vertex that kept them, see ``_sources``. A vertex that this bone runs past, as after a merge, does not
    count as lost. A new bone takes the vertices that are nearer to it than to their own bone, if that is next to it in
    the skeleton, or if nothing is. A lost vertex has weights only of the bones around it on the surface.
    locked (P,) bool: bones that keep their weights, and get no others if some bone is not locked. lost_before (N,)
    bool: vertices that were lost in an earlier solve, and stay so unless there are new bones.
    """
    locked = np.zeros(len(ends), bool) if locked is None else locked
    sums, new = weights.sum(axis=1), np.bincount(bones[weights > 0], minlength=len(ends)) == 0
    whole = sums > _LEAST_LEFT
    whole = whole if whole.any() else sums > 0
    # Vertices that were lost before have whole weights since, but these are of heirs, too.
    kept = whole
    if lost_before is not None and not new.any() and (whole & ~lost_before).any():
        kept = whole & ~lost_before
    owners = strongest_bones(bones, weights)
    takers = kept & ~locked[owners]
    takers = takers if takers.any() else kept
    heirs = owners
    if takers.any() and not kept.all():
        heirs = np.where(kept, owners, owners[_sources(rest, edges, takers, owners)])
    bones = np.column_stack([bones, heirs])
    weights = np.where(whole[:, None], weights / np.where(whole, sums, 1.0)[:, None], weights)
    weights = np.column_stack([weights, np.where(whole, 0.0, 1.0 - weights.sum(axis=1))])
    lost = ~kept & ~_give_to_bones_past(rest, bones, weights, ~whole, ends)
    own, axes = strongest_bones(bones, weights), ends[:, 1] - ends[:, 0]
    best, distances = own.copy(), segment_distances(rest, ends[own, 0], axes[own])
    for bone, beside in zip(np.flatnonzero(new), _beside(parents, new), strict=True):
        distance = segment_distances(rest, ends[bone, 0], axes[bone])
        nearer = beside[own] & (distance < distances) & ~locked[own] & ~locked[bone]
        best[nearer], distances[nearer] = bone, distance[nearer]
    taken = best != own
    strongest, held = np.argmax(weights[taken], axis=1), np.where(locked[bones[taken]], weights[taken], 0.0)
    bones[taken], weights[taken] = np.where(held > 0, bones[taken], best[taken, None]), held
    weights[np.flatnonzero(taken), strongest] = 1.0 - held.sum(axis=1)
    lost &= ~taken
    around = tuple(_bones_around(rest, edges, lost, np.where(lost, heirs, best), locked))
    for vertices, near in around:
        far = np.where(vertices[:, None] & ~(near | locked)[bones], weights, 0.0)
        weights -= far
        weights[:, -1] += far.sum(axis=1)
    return FirstWeights(bones, weights, new, lost, around)


def _bones_around(
    rest: np.ndarray, edges: np.ndarray, lost: np.ndarray, owners: np.ndarray, locked: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """``FirstWeights.around``, without ``locked`` bones. owners (N,): the strongest bones, of lost vertices their
    heirs: a part without border has no others."""
    edges = with_seams(rest, edges)
    both, inside = np.concatenate([edges, edges[:, ::-1]]), edges[lost[edges].all(axis=1)]
    links = sparse.csr_matrix((np.ones(len(inside)), inside.T), shape=(len(rest), len(rest)))
    count, parts = connected_components(links, directed=False)
    near = np.zeros((count, len(locked)), bool)
    border = both[lost[both[:, 0]] & ~lost[both[:, 1]]]
    near[parts[border[:, 0]], owners[border[:, 1]]] = True
    near &= ~locked
    near[parts[lost], owners[lost]] = True
    sets, numbers = np.unique(near[parts[lost]], axis=0, return_inverse=True)
    for number, bones in enumerate(sets):
        vertices = lost.copy()
        vertices[lost] = numbers.reshape(-1) == number
        yield vertices, bones


def _give_to_bones_past(
    rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, lost: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """(N,) bool: the ``lost`` vertices that an heir runs past, as near as past its own; in place, they follow the
    nearest of these."""
    owners, nearest = strongest_bones(bones, weights), np.full(len(rest), np.inf)
    for bone in np.unique(bones[lost, -1]):
        start, axis = ends[bone, 0], ends[bone, 1] - ends[bone, 0]
        along, away = (rest - start) @ axis, segment_distances(rest, start, axis)
        reach = away[~lost & (owners == bone)].max(initial=0.0)
        past = lost & (along > 0) & (along < axis @ axis) & (away <= reach) & (away < nearest)
        bones[past, -1], nearest[past] = bone, away[past]
    return np.isfinite(nearest)


def _sources(rest: np.ndarray, edges: np.ndarray, kept: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(N,) the vertex nearest to each among those ``kept`` (N,) bool, with the strongest bones ``owners`` (N,).

    Along the edges and seams, else in space. Along them, distances count less the more vertices a bone has, so that a
    small one, such as a pouch, does not take over most of the body that it lies on.
    """
    count, sources = len(rest), np.where(kept, np.arange(len(rest)), -1)
    lost, edges = ~kept, with_seams(rest, edges)
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[lost[both[:, 1]]]
    lengths = np.maximum(np.linalg.norm(rest[both[:, 0]] - rest[both[:, 1]], axis=1), 1e-30)
    graph = sparse.csr_matrix((lengths, both.T), shape=(count, count))
    border = np.unique(both[kept[both[:, 0]], 0])
    parts, nearest = np.bincount(owners[kept], minlength=owners.max() + 1), np.full(count, np.inf)
    for owner in np.unique(owners[border]):
        own = border[owners[border] == owner]
        away, _, found = dijkstra(graph, indices=own, min_only=True, return_predecessors=True)
        away = away / parts[owner]
        nearer = lost & (away < nearest)
        nearest[nearer], sources[nearer] = away[nearer], found[nearer]
    apart = np.flatnonzero(sources < 0)
    if len(apart):
        given = np.flatnonzero(kept)
        sources[apart] = given[cKDTree(rest[given]).query(rest[apart])[1]]
    return sources


def _beside(parents: np.ndarray, new: np.ndarray) -> list[np.ndarray]:
    """For each new bone (P,) bool: the old bones next to it in the skeleton, past other new ones; all if none is."""
    neighbors, found = linked_bones(parents), []
    for bone in np.flatnonzero(new):
        reached = np.zeros(len(parents), bool)
        waiting = [bone]
        while waiting:
            at = waiting.pop()
            if not reached[at]:
                reached[at] = True
                waiting += np.flatnonzero(neighbors[at] & ~reached).tolist() if new[at] else []
        found.append(reached & ~new if (reached & ~new).any() else ~new)
    return found
