# SPDX-License-Identifier: GPL-3.0-or-later
"""Triangles of a mesh that run into each other in a pose, by Blender's own trees of bounding volumes.

Trees are of small blocks of triangles, for three reasons: only blocks whose boxes meet need any; blocks that move
rigidly need not be compared with each other; and no single call into Blender, during which Python's other threads wait,
takes long.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mathutils.bvhtree import BVHTree

from ..core.geometry import diagonal
from ..core.seams import meeting_parts

# Triangles in a block.
_BLOCK = 2048
# Shares from here on are the whole.
_WHOLE = 1 - 1e-6
# Of the mesh's diagonal: triangles with corners nearer to each other at rest touch already.
_NEAR = 0.01


@dataclass(eq=False)
class _Block:
    """Triangles (n,) by their index, of corners (n, 3) among the points (N, 3), with the box around them."""

    triangles: np.ndarray
    corners: np.ndarray
    points: np.ndarray

    @cached_property
    def box(self) -> np.ndarray:
        """(2, 3): its lowest and highest corner."""
        points = self.points[self.corners.ravel()]
        return np.array([points.min(axis=0), points.max(axis=0)])

    @cached_property
    def tree(self) -> BVHTree:
        used, places = np.unique(self.corners, return_inverse=True)
        return BVHTree.FromPolygons(self.points[used].tolist(), places.reshape(-1, 3).tolist())


class SelfContact:
    """Finds the triangles that cross each other in a pose though they belong to parts that were apart at rest.

    rest (N, 3), triangles (T, 3): of the mesh at rest; parts (N,) int: the part of each vertex; linked (P, P) bool,
    symmetric: parts beside each other, as are those that meet on the mesh, whose skin folds where they bend. Uses no
    data of Blender's, so that any thread may run it.
    """

    def __init__(self, rest: np.ndarray, triangles: np.ndarray, parts: np.ndarray, linked: np.ndarray):
        self._triangles = triangles
        self._corners, self._near = rest[triangles], _NEAR * diagonal(rest)
        centers = self._corners.mean(axis=1)
        self._parts_of, self._beside = parts[triangles], linked | meeting_parts(rest, triangles, parts, len(linked))
        self._blocks = [_Block(own, triangles[own], rest) for own in _halved(centers, np.arange(len(triangles)))]
        self._at_rest = self._keys(self._apart(_crossing(self._blocks, self._blocks, once=True)))

    def touching(self, points: np.ndarray, vertices: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """(n,) the triangles that cross others in the pose ``points`` (N, 3), in which only ``vertices`` (n,) moved,
        and those with ``shares`` (n,) of 1 rigidly."""
        moved, whole = np.zeros(len(points), bool), np.zeros(len(points), bool)
        moved[vertices] = True
        whole[vertices[shares >= _WHOLE]] = True
        moving = moved[self._triangles].any(axis=1)
        rigid = whole[self._triangles].all(axis=1)
        turned = self._parts(points, moving & rigid)
        blended = self._parts(points, moving & ~rigid)
        # The trees at rest have the moved triangles, too, which are elsewhere now.
        still = [block for block in self._blocks if not moving[block.triangles].all()]
        others = _crossing([*turned, *blended], still)
        pairs = [others[~moving[others[:, 1]]], _crossing(blended, turned), _crossing(blended, blended, once=True)]
        found = self._apart(np.concatenate(pairs))
        return np.unique(found[~np.isin(self._keys(found), self._at_rest)])

    def _parts(self, points: np.ndarray, chosen: np.ndarray) -> list[_Block]:
        """What the blocks have of the triangles ``chosen`` (T,), in a pose."""
        parts = [block.triangles[chosen[block.triangles]] for block in self._blocks]
        return [_Block(own, self._triangles[own], points) for own in parts if len(own)]

    def _apart(self, pairs: np.ndarray) -> np.ndarray:
        """Those of the pairs (n, 2) of triangles that are apart at rest, of parts not beside each other."""
        parts = self._parts_of[pairs]
        pairs = pairs[~self._beside[parts[:, 0, :, None], parts[:, 1, None, :]].any(axis=(1, 2))]
        corners = self._corners[pairs]
        away = np.linalg.norm(corners[:, 0, :, None] - corners[:, 1, None, :], axis=3).min(axis=(1, 2))
        return pairs[away > self._near]

    def _keys(self, pairs: np.ndarray) -> np.ndarray:
        ordered = np.sort(pairs, axis=1)
        return ordered[:, 0] * len(self._triangles) + ordered[:, 1]


def _halved(centers: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield ``rows`` in blocks of near ones: halves of halves along the longest side, until they are small."""
    if len(rows) <= _BLOCK:
        yield rows
        return
    own = centers[rows]
    middle = len(rows) // 2
    order = np.argpartition(own[:, np.ptp(own, axis=0).argmax()], middle)
    yield from _halved(centers, rows[order[:middle]])
    yield from _halved(centers, rows[order[middle:]])


def _crossing(first: list[_Block], second: list[_Block], once: bool = False) -> np.ndarray:
    """(n, 2) triangles, one of each list, that cross. once: both lists are the same, of which each pair counts once."""
    found = [np.zeros((0, 2), np.int64)]
    if first and second:
        mine, theirs = (np.array([block.box for block in blocks]) for blocks in (first, second))
        below = (mine[:, None, 0] <= theirs[None, :, 1]).all(axis=2)
        meet = below & (theirs[None, :, 0] <= mine[:, None, 1]).all(axis=2)
        for row, column in np.argwhere(np.triu(meet) if once else meet):
            one, other = first[row], second[column]
            pairs = np.array(one.tree.overlap(other.tree), dtype=np.int64).reshape(-1, 2)
            found.append(np.column_stack([one.triangles[pairs[:, 0]], other.triangles[pairs[:, 1]]]))
    return np.concatenate(found)
