# SPDX-License-Identifier: GPL-3.0-or-later
"""A closed mesh of any shape as a volume of containment binding."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..dense import one_blas_thread
from ..errors import BadMesh
from ..geometry import transform_points
from ..segments import segment_distances
from .body import wound_alike
from .containment import Volume

# A volume is a proxy: each of its triangles is compared with each vertex of the body.
MOST_TRIANGLES = 5000

# Pairs of a point and a triangle at a time, for the sake of memory.
_PAIRS = 1 << 15

# Slabs along the volume, and stations across each.
_SLABS = 16
_ACROSS = 9

# Stations that are less deep by this share are as deep: a wide volume has its axis in the middle.
_AS_DEEP = 0.05


@dataclass(frozen=True, eq=False)
class MeshVolume(Volume):
    """A ``Volume`` of kind MESH: a closed surface. points (n, 3), triangles (t, 3): in the volume's own space, wound
    either way; ``radii``: half of its extent along x, y and z."""

    points: np.ndarray
    triangles: np.ndarray

    @classmethod
    def of(cls, bone: int, matrix: np.ndarray, points: np.ndarray, triangles: np.ndarray) -> "MeshVolume":
        """Raises BadMesh if the surface is not closed, or has more than ``MOST_TRIANGLES``."""
        if len(triangles) > MOST_TRIANGLES:
            raise BadMesh(f"It has {len(triangles):,} triangles, and a volume may have {MOST_TRIANGLES:,}")
        pairs = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        uses = np.unique(pairs, axis=0, return_counts=True)[1]
        open_edges = int(np.count_nonzero(uses % 2))
        if open_edges or not len(triangles):
            reason = f"{open_edges:,} of its edges are open" if len(triangles) else "it has no faces"
            raise BadMesh(f"It is not closed: {reason}")
        radii = np.maximum(0.5 * np.ptp(points, axis=0), 1e-30)
        return cls(bone, "MESH", matrix, radii, points, wound_alike(triangles, len(points)))

    def depth(self, points: np.ndarray) -> np.ndarray:
        """(n,) 0 on the axis, 1 on the surface, and between them ρ / (ρ + d) with the distances ρ from the axis and d
        from the surface; outside, 1 + d in mean radii of the volume. points (n, 3).

        The axis leads through the deepest places of slabs across y.
        """
        # With products as small as these, more threads would only wait for each other.
        with one_blas_thread():
            starts, ways = self._axis
            distances, inside = self._measured(points)
        along = np.min([segment_distances(points, *pair) for pair in zip(starts, ways, strict=True)], axis=0)
        within = np.divide(along, along + distances, out=np.zeros(len(points)), where=along > 0)
        return np.where(inside, within, 1 + distances / self.width)

    @cached_property
    def _corners(self) -> np.ndarray:
        """(t, 3, 3) the triangles in the mesh's space."""
        matrix = np.asarray(self.matrix, dtype=np.float64)
        return transform_points(self.points, matrix)[self.triangles]

    @cached_property
    def _axis(self) -> tuple[np.ndarray, np.ndarray]:
        """(s, 3) starts and ways of segments in the mesh's space."""
        matrix = np.asarray(self.matrix, dtype=np.float64)
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        shares = [(np.arange(count) + 0.5) / count for count in (_ACROSS, _SLABS, _ACROSS)]
        grid = np.stack(np.meshgrid(*shares, indexing="ij"), axis=-1).swapaxes(0, 1).reshape(-1, 3)
        stations = transform_points(low + grid * (high - low), matrix)
        distances, inside = self._measured(stations)
        deep = np.where(inside, distances, 0.0).reshape(_SLABS, -1)
        stations = stations.reshape(_SLABS, -1, 3)
        places = []
        for slab, values in zip(stations, deep, strict=True):
            deepest = values >= (1 - _AS_DEEP) * values.max()
            middle = slab[deepest].mean(axis=0)
            places.append(slab[deepest][np.argmin(np.linalg.norm(slab[deepest] - middle, axis=1))])
        path = np.array(places)[deep.max(axis=1) > 0]
        if not len(path):
            # Thinner than the stations are apart: its middle.
            path = self._corners.mean(axis=(0, 1))[None]
        return (path[:-1], np.diff(path, axis=0)) if len(path) > 1 else (path, np.zeros((1, 3)))

    def _measured(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) distances from the surface and (n,) bool: inside, by the winding number.

        All from scalar products of points with what is known of the triangles, about the middle of the volume to keep
        digits.
        """
        middle = self._corners.mean(axis=(0, 1))
        corners = np.moveaxis(self._corners - middle, 1, 0)
        edges = np.roll(corners, -1, axis=0) - corners
        normals = np.cross(edges[0], edges[1])
        across = np.cross(normals, edges)
        distances, inside = np.empty(len(points)), np.empty(len(points), bool)
        step = max(_PAIRS // len(self._corners), 1)
        for start in range(0, len(points), step):
            rows = slice(start, start + step)
            there = points[rows] - middle
            squares = [_dot(there, there)[:, None] - 2 * there @ each.T + _dot(each, each) for each in corners]
            heights = there @ normals.T - _dot(corners[0], normals)
            least = np.full(heights.shape, np.inf)
            within = np.ones(heights.shape, bool)
            for corner, edge, way, square in zip(corners, edges, across, squares, strict=True):
                along, length = there @ edge.T - _dot(corner, edge), np.maximum(_dot(edge, edge), 1e-300)
                share = np.clip(along / length, 0.0, 1.0)
                np.minimum(least, square + share * (share * length - 2 * along), out=least)
                within &= there @ way.T >= _dot(corner, way)
            sizes = _dot(normals, normals)
            least = np.where(within & (sizes > 0), heights**2 / np.maximum(sizes, 1e-300), least)
            distances[rows] = np.sqrt(np.maximum(least.min(axis=1), 0.0))
            # Solid angles: Van Oosterom and Strackee 1983.
            lengths = [np.sqrt(np.maximum(each, 0.0)) for each in squares]
            below = lengths[0] * lengths[1] * lengths[2]
            for slot in range(3):
                first, second = corners[slot], corners[slot - 2]
                between = _dot(first, second) + _dot(there, there)[:, None] - there @ (first + second).T
                below += between * lengths[slot - 1]
            turns = np.arctan2(-heights, below).sum(axis=1) / (2 * np.pi)
            inside[rows] = np.round(turns) % 2 == 1
        return distances, inside


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i->...", first, second)
