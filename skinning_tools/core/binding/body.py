# SPDX-License-Identifier: GPL-3.0-or-later
"""The inside and the outside of a body, however its faces are wound."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..geometry import unit
from ..grouping import ranges
from .types import Body

# A component whose signed volume V has a smaller share |V| / area^1.5 is a sheet rather than a solid: a ball has 0.094,
# a human body 0.04, a rod of one to a hundred 0.02.
_SOLID = 0.005

# Twice the area over the square of the longest side: triangles below this have no normal.
_FLAT = 1e-9

# Radians: where the normals of faces, weighted by their angles, add up to less, the faces are back to back, and what is
# left of the sum is rounding.
_CANCELED = 1e-9

# Directions closer to the surface than this (a sine) are never judged by the normal alone.
_UNCLEAR = 0.1

# Directions that are judged at a time, to bound the memory.
_QUERIES = 1 << 16


def facing_outward(body: Body, inner_points: np.ndarray) -> np.ndarray:
    """``body.place_triangles`` (T', 3), wound so that their normals point out of the body.

    Neighboring faces are wound alike first; then each solid component by its volume, and each sheet so that
    ``inner_points`` (W, 3), the nearest point inside of each place, are behind most of it.
    """
    triangles = wound_alike(body.place_triangles, len(body.points))
    points = body.points
    part = body.place_components[triangles[:, 0]] if len(triangles) else np.zeros(0, int)
    count = int(body.place_components.max()) + 1
    middles: np.ndarray = np.stack([np.bincount(body.place_components, points[:, i], count) for i in range(3)], axis=1)
    middles /= np.bincount(body.place_components, minlength=count)[:, None]
    corners = points[triangles] - middles[part][:, None]
    areas = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    volumes = np.bincount(part, np.einsum("ij,ij->i", areas, corners[:, 0]) / 3, count)
    surfaces = np.bincount(part, np.linalg.norm(areas, axis=1), count)
    away = (points - inner_points)[triangles].mean(axis=1)
    votes = np.bincount(part, np.einsum("ij,ij->i", areas, away), count)
    inside_out = np.where(np.abs(volumes) > _SOLID * surfaces**1.5, volumes < 0, votes < 0)
    turned = inside_out[part]
    triangles[turned] = triangles[turned][:, ::-1]
    return triangles


def with_others(body: Body, triangles: np.ndarray) -> np.ndarray:
    """(T' + U, 3): ``triangles`` (T', 3), which are ``body.place_triangles`` but for how they are wound, and then
    ``body.place_others``, wound like those."""
    others, rows = body.place_others
    turned = triangles[rows, 0] != body.place_triangles[rows, 0]
    return np.concatenate([triangles, np.where(turned[:, None], others[:, ::-1], others)])


def wound_alike(triangles: np.ndarray, count: int) -> np.ndarray:
    """A copy of ``triangles`` (T, 3) in which the two triangles of an edge run along it in opposite directions.

    Each patch keeps the winding of the majority of its triangles. One-sided patches and edges of more than two
    triangles are left unchanged.
    """
    sides = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    forward = sides[:, 0] < sides[:, 1]
    key = np.min(sides, axis=1) * count + np.max(sides, axis=1)
    order = np.argsort(key, kind="stable")
    new = np.flatnonzero(np.diff(key[order], prepend=-1))
    runs = new[np.diff(np.append(new, len(order))) == 2]
    first, second = order[runs], order[runs + 1]
    same = forward[first] == forward[second]
    a, b = first // 3, second // 3
    # Two nodes a triangle, as it is and reversed, joined where they fit together. A patch has two components, one the
    # reverse of the other, or a single one if it is one-sided.
    total = len(triangles)
    ends = np.concatenate([np.where(same, b + total, b), np.where(same, b, b + total)])
    links = sparse.coo_matrix(
        (np.ones(2 * len(a), bool), (np.concatenate([a, a + total]), ends)), shape=(2 * total,) * 2
    )
    halves, half = connected_components(links, directed=False)
    kept = np.bincount(half[:total], minlength=halves)
    turned = kept[half[:total]] < kept[half[total:]]
    # If the halves are equal, the one with the first triangle stays.
    turned |= (kept[half[:total]] == kept[half[total:]]) & (half[:total] > half[total:])
    triangles = triangles.copy()
    triangles[turned] = triangles[turned][:, ::-1]
    return triangles


class Surface:
    """The faces around each place, to decide what lies behind them.

    points (W, 3), triangles (T, 3) facing outward; shares (T,): how much each counts, None for all alike.
    """

    def __init__(self, points: np.ndarray, triangles: np.ndarray, shares: np.ndarray | None = None):
        to_second = points[triangles[:, [1, 2, 0]]] - points[triangles]
        to_third = points[triangles[:, [2, 0, 1]]] - points[triangles]
        across = np.cross(to_second[:, 0], to_third[:, 0])
        area = np.linalg.norm(across, axis=1)
        longest = np.square(to_second).sum(axis=2).max(axis=1, initial=0)
        solid = np.flatnonzero(area > _FLAT * longest)
        order = np.argsort(triangles[solid].ravel(), kind="stable")
        place = triangles[solid].ravel()[order]
        self._start = np.searchsorted(place, np.arange(len(points)))
        self._count = np.bincount(place, minlength=len(points))
        self._face = np.repeat(across[solid] / area[solid, None], 3, axis=0)[order]
        self._second, self._third = (unit(sides[solid].reshape(-1, 3)[order]) for sides in (to_second, to_third))
        cosine = np.einsum("ij,ij->i", self._second, self._third)
        self._angle = np.arccos(np.clip(cosine, -1, 1))
        if shares is not None:
            self._angle *= np.repeat(shares[solid], 3)[order]
        # Weighted by the angle of the face at the place, so that the triangulation of the faces does not matter.
        sums = _sums(self._angle[:, None] * self._face, self._start, self._count)
        self.normals = np.where(np.linalg.norm(sums, axis=1, keepdims=True) > _CANCELED, unit(sums), 0.0)
        least = np.einsum("ij,ij->i", self._face, np.repeat(self.normals, self._count, axis=0))
        # The sine of how far the faces around a place lean from its normal.
        lean = np.sqrt(np.maximum(1 - np.clip(least, 0, 1) ** 2, 0))
        self._lean = np.zeros(len(points))
        some = self._count > 0
        if some.any():
            self._lean[some] = np.maximum.reduceat(lean, self._start[some])

    def below(self, places: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """(n,) sine of the angle at which unit ``directions`` (n, 3) go from ``places`` (n,) into the body.

        Negative where they leave it; 1 at places without faces.
        """
        normals = self.normals[places]
        sine = -np.einsum("ij,ij->i", normals, directions)
        sine[self._count[places] == 0] = 1
        # Where the normal alone may mislead, along a crease, the nearest of the faces decides.
        unclear = np.flatnonzero((np.abs(sine) <= self._lean[places] + _UNCLEAR) & (self._count[places] > 0))
        for start in range(0, len(unclear), _QUERIES):
            rows = unclear[start : start + _QUERIES]
            sine[rows] = self._below_faces(places[rows], directions[rows])
        return sine

    def _below_faces(self, places: np.ndarray, directions: np.ndarray) -> np.ndarray:
        count = self._count[places]
        first = np.cumsum(count) - count
        corner = ranges(self._start[places], count)
        direction = np.repeat(directions, count, axis=0)
        face, second, third = self._face[corner], self._second[corner], self._third[corner]
        height = np.einsum("ij,ij->i", face, direction)
        within = np.einsum("ij,ij->i", np.cross(face, second), direction) >= 0
        within &= np.einsum("ij,ij->i", np.cross(third, face), direction) >= 0
        along = np.maximum(np.einsum("ij,ij->i", second, direction), np.einsum("ij,ij->i", third, direction))
        beside = np.sqrt(np.maximum(1 - np.clip(along, 0, 1) ** 2, 0))
        distance = np.where(within, np.abs(height), beside)
        nearest = np.minimum.reduceat(distance, first)
        # If an edge is nearest, its two faces decide together; if the place itself is, all faces do, weighted by their
        # angles.
        share = np.where(distance <= np.repeat(nearest, count) + 1e-9, 1.0, 0.0)
        share *= np.where(distance >= 1, self._angle[corner], 1.0)
        return np.where(np.add.reduceat(share * height, first) < 0, nearest, -nearest)


def _sums(values: np.ndarray, start: np.ndarray, count: np.ndarray) -> np.ndarray:
    result = np.zeros((len(count), values.shape[1]))
    some = count > 0
    if some.any():
        result[some] = np.add.reduceat(values, start[some], axis=0)
    return result
