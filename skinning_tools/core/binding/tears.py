# SPDX-License-Identifier: GPL-3.0-or-later
"""T-intersections: vertices on an edge of a face without them. Where such a surface bends it opens, since the
vertex does not stay on the edge, whatever the weights (smooth skinning chapter, on modeling the mesh)."""

import numpy as np
from scipy.spatial import cKDTree

from ..segments import segment_distances
from .types import Body

# How near to the edge, and how far from its ends, as shares of its length.
_ON = 1e-3
_ENDS = 1e-2


def t_intersections(body: Body) -> np.ndarray:
    """(n,) the vertices of ``body`` that lie on an edge of one face only which does not have them.

    Vertices at one place count as joined, so seams are none; the corner opposite of an edge in a sliver is none.
    """
    corners = body.place_triangles
    sides = np.sort(corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    if not len(sides):
        return np.zeros(0, int)
    edges, first, uses = np.unique(sides, axis=0, return_index=True, return_counts=True)
    edges, opposite = edges[uses == 1], corners.sum(axis=1)[first[uses == 1] // 3]
    opposite = opposite - edges.sum(axis=1)
    places = np.unique(edges)
    if not len(places):
        return np.zeros(0, int)
    starts, ends = body.points[edges[:, 0]], body.points[edges[:, 1]]
    lengths = np.linalg.norm(ends - starts, axis=1)
    near = cKDTree(body.points[places]).query_ball_point(0.5 * (starts + ends), 0.5 * lengths * (1 - _ENDS))
    counts = np.array([len(each) for each in near])
    rows = np.repeat(np.arange(len(edges)), counts)
    found = places[np.concatenate([*near, []]).astype(int)]
    off = segment_distances(body.points[found], starts[rows], (ends - starts)[rows])
    on = (off <= _ON * lengths[rows]) & (found != opposite[rows])
    on &= (found != edges[rows, 0]) & (found != edges[rows, 1])
    return np.flatnonzero(np.isin(body.place, found[on]))
