# SPDX-License-Identifier: GPL-3.0-or-later
"""How far regions are apart on the body: which of them hang together, whatever lies near what at rest."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from .binding.types import WELDING_DISTANCE, weld

# Loose pieces, such as eyes or armor, are joined by bridges: from a place to those of its nearest places that belong to
# another piece. The longest bridge is this multiple of the shortest, as a longer one would lead past the body.
_NEAREST, _LONGEST_BRIDGE = 12, 2.0


def surface_detours(points: np.ndarray, triangles: np.ndarray, regions: list[np.ndarray]) -> np.ndarray:
    """(P, P) by how much the shortest way over the surface from region to region is longer than the straight one.

    points (N, 3), triangles (T, 3) with vertices at one place welded; regions: the vertices of each. Loose pieces are
    joined to what is nearest to them. inf where no way leads from one region to the other.
    """
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    place = weld(points, WELDING_DISTANCE * size)
    places = points[np.unique(place, return_index=True)[1]]
    ends = place[np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])]
    graph = _graph(places, np.concatenate([ends, _bridges(places, ends)]))
    detours = np.full((len(regions), len(regions)), np.inf)
    for region, mine in enumerate(regions):
        if len(mine):
            ways = dijkstra(graph, directed=False, indices=np.unique(place[mine]), min_only=True)
            straight = cKDTree(points[mine]).query(places)[0]
            for other, theirs in enumerate(regions):
                if len(theirs):
                    detours[region, other] = ways[place[theirs]].min() - straight[place[theirs]].min()
    return detours


def _bridges(places: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(B, 2) places of different pieces that are about as near as any of either piece."""
    piece = connected_components(_graph(places, ends), directed=False)[1]
    distances, near = cKDTree(places).query(places, min(_NEAREST, len(places)))
    far = np.repeat(np.arange(len(places)), near.size // len(places)), near.ravel()
    lengths, pieces = distances.ravel(), piece[np.array(far)]
    across = pieces[0] != pieces[1]
    pairs, lengths, pieces = np.stack(far, axis=1)[across], lengths[across], pieces[:, across]
    shortest = np.full(piece.max() + 1, np.inf)
    for side in pieces:
        np.minimum.at(shortest, side, lengths)
    return pairs[lengths <= _LONGEST_BRIDGE * shortest[pieces].max(axis=0)]


def _graph(places: np.ndarray, ends: np.ndarray) -> sparse.csr_matrix:
    """(W, W) lengths of the edges ``ends`` (E, 2)."""
    ends = np.unique(np.sort(ends, axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
    return sparse.csr_matrix((lengths, (ends[:, 0], ends[:, 1])), shape=(len(places), len(places)))
