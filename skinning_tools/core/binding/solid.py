# SPDX-License-Identifier: GPL-3.0-or-later
"""A solid of voxels from any mesh: open, torn, doubled or inside out, as no face is asked which way it faces."""

import itertools
from functools import cached_property

import numpy as np
from scipy.ndimage import binary_erosion, distance_transform_edt

from ..geometry import triangle_areas
from .types import Body

# Voxels in the box around a body: on a human figure with its arms out they are a centimeter wide, half a finger.
_COUNT = 1_000_000

# The most voxels along the longest side of the grid, however thin the body is.
_LONGEST = 400

# A voxel from which this many of the 26 directions meet the skin is inside: in a closed body all of them do. Where the
# skin is open, as at the waist of trousers, nine do not; a voxel there is inside if at least half of the directions
# meet the skin an odd number of times. Between legs, about nineteen directions meet the skin, but twice each.
_WALLS = 24
_ODD = 13

_DIRECTIONS = tuple(way for way in itertools.product((-1, 0, 1), repeat=3) if any(way))

# Samples on the surface lie this share of a voxel apart, so that no ray slips between them.
_SPACING = 0.5

# Samples at a time, for the sake of memory.
_SAMPLES = 1 << 19

# A segment is sampled at this many points.
_STATIONS = 32

# A bone this many voxels outside counts as inside: in a thin wing it may well lie beside the skin.
_HARDLY_OUTSIDE = 2

# Principal moments that differ by a smaller share of their sum count as equal: their axes would be arbitrary, so the
# coordinate axes are used.
_EQUAL = 1e-3


class Grid:
    """Voxels along the principal axes of a body: turned, moved or mirrored, it has the same ones.

    size: the edge of a voxel. shape: how many along each axis, all odd, so that the middle of the body is in the middle
    of a voxel, not between two, where rounding would choose a side. origin (3,): the middle of the first voxel;
    axes (3, 3): unit rows.
    """

    def __init__(self, body: Body):
        self.axes = _principal_axes(body)
        along = body.points @ self.axes.T
        low, high = along.min(axis=0), along.max(axis=0)
        extent = np.maximum(high - low, 1e-3 * (body.diagonal or 1.0))
        self.size = max(float(np.prod(extent) / _COUNT) ** (1 / 3), float(extent.max()) / _LONGEST)
        # One voxel of air around the body.
        half = np.ceil(0.5 * extent / self.size).astype(int) + 1
        self.shape = tuple(int(n) for n in 2 * half + 1)
        self._low = 0.5 * (low + high) - half * self.size

    def voxels(self, points: np.ndarray) -> np.ndarray:
        """(n, 3) int: the voxel of each point, which may lie beyond the grid."""
        middle = (np.array(self.shape) - 1) // 2
        offset = points @ self.axes.T - (self._low + middle * self.size)
        # About the middle: halves are rounded alike on both sides.
        return np.rint(offset / self.size).astype(np.int64) + middle

    def centers(self, voxels: np.ndarray) -> np.ndarray:
        """(n, 3) the middles of voxels (n, 3)."""
        return (self._low + voxels * self.size) @ self.axes

    def within(self, voxels: np.ndarray) -> np.ndarray:
        """(n,) bool: which of ``voxels`` (n, 3) the grid has."""
        return np.all((voxels >= 0) & (voxels < self.shape), axis=1)

    def surface(self, points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
        """(S, 3) the voxels that triangles (T, 3) of ``points`` pass through, each once."""
        corners = points[triangles]
        longest = np.sqrt(np.square(corners - np.roll(corners, 1, axis=1)).sum(axis=2).max(axis=1, initial=0))
        steps = np.maximum(np.ceil(longest / (_SPACING * self.size)), 1).astype(int)
        # Powers of two, so that there are few kinds of triangles.
        steps = 2 ** np.ceil(np.log2(steps)).astype(int)
        found = [np.zeros(0, dtype=np.int64)]
        for step in np.unique(steps):
            i, j = np.nonzero(np.add.outer(np.arange(step + 1), np.arange(step + 1)) <= step)
            shares = np.column_stack([i, j, step - i - j]) / step
            some = np.flatnonzero(steps == step)
            at_once = max(_SAMPLES // len(shares), 1)
            for start in range(0, len(some), at_once):
                samples = shares @ corners[some[start : start + at_once]]
                found.append(np.unique(np.ravel_multi_index(self.voxels(samples.reshape(-1, 3)).T, self.shape)))
        return np.column_stack(np.unravel_index(np.unique(np.concatenate(found)), self.shape))


class Solid:
    """What is inside of a body, its skin included.

    filled: bool, the voxels of ``grid``.
    """

    def __init__(self, body: Body):
        self.grid = Grid(body)
        skin = np.concatenate([self.grid.voxels(body.points), self.grid.surface(body.points, body.place_triangles)])
        surface = np.zeros(self.grid.shape, dtype=bool)
        surface[tuple(skin.T)] = True
        self.filled = filled(surface)
        self._interior = self.filled & ~surface

    def holds(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool: which points (n, 3) are inside."""
        voxels = self.grid.voxels(points)
        result = self.grid.within(voxels)
        result[result] = self.filled[tuple(voxels[result].T)]
        return result

    def samples(self) -> np.ndarray:
        """(n, 3) the middles of every eighth voxel inside, the same ones on both sides of the middle; of all voxels
        where none of these is inside."""
        voxels = np.argwhere(self.filled)
        middle = (np.array(self.grid.shape) - 1) // 2
        chosen = voxels[((voxels - middle) % 2 == 0).all(axis=1)]
        return self.grid.centers(chosen if len(chosen) else voxels)

    def deep(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool: which points (n, 3) are inside, with all voxels around theirs."""
        voxels = self.grid.voxels(points)
        result = self.grid.within(voxels)
        result[result] = self._core[tuple(voxels[result].T)]
        return result

    def distances(self, points: np.ndarray) -> np.ndarray:
        """(n,) from points (n, 3) to the solid, to about a voxel near it; 0 inside."""
        voxels = self.grid.voxels(points)
        nearest = np.clip(voxels, 0, np.array(self.grid.shape) - 1)
        return self.grid.size * (self._gaps[tuple(nearest.T)] + np.linalg.norm(voxels - nearest, axis=1))

    def shares(self, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """(n,) which share of the way from each of ``heads`` (n, 3) to its tail is inside, or hardly outside."""
        return self._nearly_holds(_stations(heads, tails)).reshape(_STATIONS, -1).mean(axis=0)

    def depths(self, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """(S, n) how far S points along the way from each of ``heads`` (n, 3) to its tail are from the nearest voxel
        outside; outside, the edge of a voxel."""
        voxels = self.grid.voxels(_stations(heads, tails))
        inside = self.grid.within(voxels)
        result = np.ones(len(voxels))
        result[inside] = np.maximum(distance_transform_edt(self.filled)[tuple(voxels[inside].T)], 1)
        return self.grid.size * result.reshape(_STATIONS, -1)

    def sees(self, points: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n,) bool: whether the straight way from points (n, 3) on the skin to targets (n, 3) keeps clear of the skin.

        Thin limbs and narrow gaps are skin alone: nothing is seen through these.
        """
        ways = targets - points
        lengths = np.linalg.norm(ways, axis=1)
        result = np.ones(len(points), dtype=bool)
        for step in range(_HARDLY_OUTSIDE, int(lengths.max(initial=0) / self.grid.size) + 1):
            left = np.flatnonzero(result & (step * self.grid.size < lengths))
            if not len(left):
                break
            stations = points[left] + ways[left] * (step * self.grid.size / lengths[left])[:, None]
            voxels = self.grid.voxels(stations)
            clear = self.grid.within(voxels)
            clear[clear] = self._interior[tuple(voxels[clear].T)]
            result[left] = clear
        return result

    def ways_out(self, starts: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """(n,) how far it is from ``starts`` (n, 3) along unit ``directions`` (n, 3) to where the ray leaves.

        From where it is hardly outside, the ray goes as far as it stays so; 0 from further outside.
        """
        steps = 0.5 * self.grid.size * np.arange(2 * sum(self.grid.shape))
        result = np.zeros(len(starts))
        for index, (start, direction) in enumerate(zip(starts, directions, strict=True)):
            stations = start + steps[:, None] * direction
            inside = self.holds(stations)
            if not inside[0]:
                inside = self._nearly_holds(stations)
            result[index] = steps[max(int(np.argmin(inside)) - 1, 0)]
        return result

    def _nearly_holds(self, points: np.ndarray) -> np.ndarray:
        return self.distances(points) < (_HARDLY_OUTSIDE + 0.5) * self.grid.size

    @cached_property
    def _core(self) -> np.ndarray:
        return binary_erosion(self.filled, np.ones((3, 3, 3), dtype=bool))

    @cached_property
    def _gaps(self) -> np.ndarray:
        return distance_transform_edt(~self.filled).astype(np.float32)


def _stations(heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """(S · n, 3) points along the ways from ``heads`` (n, 3) to ``tails``."""
    way = (np.arange(_STATIONS)[:, None, None] + 0.5) / _STATIONS
    return (heads + way * (tails - heads)).reshape(-1, 3)


def filled(surface: np.ndarray) -> np.ndarray:
    """``surface`` (X, Y, Z) bool and what it encloses, even where it has holes."""
    if min(surface.shape) <= 4:  # with air around it nothing is left to enclose
        return surface
    walls, odd = np.zeros(surface.shape, dtype=np.uint8), np.zeros(surface.shape, dtype=np.uint8)
    for way in _DIRECTIONS:
        for total, found in zip((walls, odd), _meets(surface, way), strict=True):
            total += found
    return surface | (walls >= _WALLS) | (odd >= _ODD)


def _meets(surface: np.ndarray, way: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(X, Y, Z) bool twice: whether the line that goes ``way`` from each voxel meets ``surface``, and whether it meets
    it an odd number of times."""
    first = next(axis for axis in range(3) if way[axis])
    surface = np.moveaxis(surface, first, 0)
    across = tuple(way[axis] for axis in range(3) if axis != first)
    here = tuple(slice(max(-step, 0), min(-step, 0) or None) for step in across)
    there = tuple(slice(max(step, 0), min(step, 0) or None) for step in across)
    found, odd = np.zeros(surface.shape, dtype=bool), np.zeros(surface.shape, dtype=bool)
    layers = range(len(surface) - 2, -1, -1) if way[first] > 0 else range(1, len(surface))
    for layer in layers:
        at, ahead = (layer, *here), (layer + way[first], *there)
        found[at] = surface[ahead] | found[ahead]
        odd[at] = odd[ahead] ^ (surface[ahead] & ~surface[at])
    return np.moveaxis(found, 0, first), np.moveaxis(odd, 0, first)


def _principal_axes(body: Body) -> np.ndarray:
    """(3, 3) unit rows: along which the surface spreads most and least; the points, where there is no surface."""
    corners = body.points[body.place_triangles]
    areas = triangle_areas(corners)
    if areas.sum() > 0:
        # A polynomial of the second degree over a triangle is the mean of its values in the middles of the sides.
        points = 0.5 * (corners + np.roll(corners, 1, axis=1)).reshape(-1, 3)
        shares = np.repeat(areas, 3)
    else:
        points, shares = body.points, np.ones(len(body.points))
    points = points - np.average(points, axis=0, weights=shares)
    spread = (points * shares[:, None]).T @ points
    moments, axes = np.linalg.eigh(spread)
    return axes.T if np.diff(moments).min() > _EQUAL * moments.sum() else np.eye(3)
