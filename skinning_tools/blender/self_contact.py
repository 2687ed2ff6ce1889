# SPDX-License-Identifier: GPL-3.0-or-later
"""Triangles of a mesh that run into each other in a pose, by Blender's own trees of bounding volumes."""

import numpy as np
from mathutils.bvhtree import BVHTree


class SelfContact:
    """Finds the triangles that cross each other in a pose but not at rest.

    rest (N, 3), triangles (T, 3): of the mesh at rest.
    """

    def __init__(self, rest: np.ndarray, triangles: np.ndarray):
        self._triangles = triangles
        # Faces that meet at a seam, where the mesh has a vertex for each side, are neighbors.
        self._places = np.unique(rest, axis=0, return_inverse=True)[1].reshape(-1)
        self._tree = BVHTree.FromPolygons(rest.tolist(), triangles.tolist())
        every = np.arange(len(triangles))
        self._at_rest = self._keys(self._pairs(self._tree, self._tree, every, every))

    def touching(self, points: np.ndarray, vertices: np.ndarray) -> np.ndarray:
        """(n,) the triangles that cross others in the pose ``points`` (N, 3), in which only ``vertices`` moved."""
        moves = np.zeros(len(points), bool)
        moves[vertices] = True
        moved = np.flatnonzero(moves[self._triangles].any(axis=1))
        used, places = np.unique(self._triangles[moved], return_inverse=True)
        tree = BVHTree.FromPolygons(points[used].tolist(), places.reshape(-1, 3).tolist())
        others = self._pairs(tree, self._tree, moved, np.arange(len(self._triangles)))
        # In the tree of the mesh at rest, the moved triangles are not where they are now.
        others = others[~moves[self._triangles[others[:, 1]]].any(axis=1)]
        pairs = np.concatenate([others, self._pairs(tree, tree, moved, moved)])
        return np.unique(pairs[~np.isin(self._keys(pairs), self._at_rest)])

    def _pairs(self, tree: BVHTree, other: BVHTree, names: np.ndarray, other_names: np.ndarray) -> np.ndarray:
        """(n, 2) triangles without a common vertex of which one in each tree cross."""
        found = np.array(tree.overlap(other), dtype=np.int64).reshape(-1, 2)
        pairs = np.stack([names[found[:, 0]], other_names[found[:, 1]]], axis=1)
        corners = self._places[self._triangles[pairs]]
        joined = (corners[:, 0, :, None] == corners[:, 1, None, :]).any(axis=(1, 2))
        return pairs[~joined]

    def _keys(self, pairs: np.ndarray) -> np.ndarray:
        ordered = np.sort(pairs, axis=1)
        return ordered[:, 0] * len(self._triangles) + ordered[:, 1]
