# SPDX-License-Identifier: GPL-3.0-or-later
"""The closest points of a surface to many points at once."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from ..geometry import unit

# Large triangles have several samples: all triangles together have about twice as many as there are triangles.
_SAMPLES = 1.0

# A triangle is cut into at most this many strips.
_MOST_STRIPS = 64

# Samples whose triangles are compared for each query.
_COMPARED = 12

# Queries at a time, to bound the memory.
_QUERIES = 1 << 13


@dataclass(frozen=True, eq=False)
class Closest:
    """triangles (n,) and shares (n, 3): the closest point of each query, as shares of the triangle's corners that are
    ≥ 0 and sum to 1; distances (n,)."""

    triangles: np.ndarray
    shares: np.ndarray
    distances: np.ndarray


def closest_points(points: np.ndarray, triangles: np.ndarray, queries: np.ndarray) -> Closest:
    """The closest points to ``queries`` (n, 3) on ``triangles`` (T, 3), T ≥ 1, of ``points`` (N, 3).

    Triangles may be flat, or have a corner twice. Only the triangles of the nearest samples of the surface are
    compared: another one may be closer by less than the usual radius of a triangle, where triangles of very different
    sizes meet.
    """
    corners = points[triangles]
    middles = corners.mean(axis=1)
    radii = np.linalg.norm(corners - middles[:, None], axis=2).max(axis=1)
    normals = unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    samples, owners = _samples(corners, radii)
    tree, count = cKDTree(samples), min(_COMPARED, len(samples))
    parts = []
    for start in range(0, max(len(queries), 1), _QUERIES):
        block = queries[start : start + _QUERIES]
        candidates = np.sort(owners[tree.query(block, k=np.arange(1, count + 1))[1]], axis=1)
        to_middle = middles[candidates] - block[:, None]
        heights = np.einsum("nki,nki->nk", to_middle, normals[candidates]) ** 2
        beside = np.sqrt(np.maximum(np.einsum("nki,nki->nk", to_middle, to_middle) - heights, 0.0))
        # No point of a triangle is nearer than that of the disk around it.
        bounds = heights + np.maximum(beside - radii[candidates], 0.0) ** 2
        rows, best = np.arange(len(block)), bounds.argmin(axis=1)
        first = candidates[rows, best]
        limits = _gaps(block, corners[first], closest_shares(block, corners[first])) ** 2
        tried = bounds <= limits[:, None]
        tried[rows, best] = True
        tried[:, 1:] &= candidates[:, 1:] != candidates[:, :-1]
        row, column = np.nonzero(tried)
        some = candidates[row, column]
        shares = closest_shares(block[row], corners[some])
        gaps = _gaps(block[row], corners[some], shares)
        order = np.lexsort((some, gaps, row))
        kept = order[np.flatnonzero(np.diff(row[order], prepend=-1))]
        parts.append((some[kept], shares[kept], gaps[kept]))
    return Closest(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _gaps(points: np.ndarray, corners: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(n,) distances of points (n, 3) from the points that ``shares`` (n, 3) of corners (n, 3, 3) give."""
    return np.linalg.norm(np.einsum("ni,nij->nj", shares, corners) - points, axis=1)


def closest_shares(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, 3) the shares of the corners (n, 3, 3) in the point of each triangle that is closest to its own of ``points``
    (n, 3)."""
    a, b, c = corners.swapaxes(0, 1)
    to_b, to_c, to_point = b - a, c - a, points - a
    bb, bc, cc, pb, pc = (
        np.einsum("ij,ij->i", first, second)
        for first, second in ((to_b, to_b), (to_b, to_c), (to_c, to_c), (to_point, to_b), (to_point, to_c))
    )
    size = bb * cc - bc * bc
    solid = size > 1e-12 * bb * cc
    size = np.where(solid, size, 1.0)
    second, third = (cc * pb - bc * pc) / size, (bb * pc - bc * pb) / size
    result = np.column_stack([1.0 - second - third, second, third])
    outside = np.flatnonzero(~(solid & (result >= 0).all(axis=1)))
    if len(outside):
        result[outside] = _on_sides(points[outside], corners[outside])
    return result


def _on_sides(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """``closest_shares`` where the closest point is on a side."""
    best, result = np.full(len(points), np.inf), np.zeros((len(points), 3))
    for first in range(3):
        second = (first + 1) % 3
        side, to_point = corners[:, second] - corners[:, first], points - corners[:, first]
        square = np.einsum("ij,ij->i", side, side)
        along = np.einsum("ij,ij->i", side, to_point)
        share = np.clip(np.divide(along, square, out=np.zeros_like(along), where=square > 0), 0.0, 1.0)
        gap = np.square(to_point - share[:, None] * side).sum(axis=1)
        nearer = gap < best
        best[nearer] = gap[nearer]
        result[nearer] = 0.0
        result[nearer, first], result[nearer, second] = 1.0 - share[nearer], share[nearer]
    return result


def _samples(corners: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (S, 3) that cover triangles (T, 3, 3) of those ``radii`` (T,) evenly, and (S,) the triangle of each."""
    usual = np.sqrt(np.mean(radii**2) / _SAMPLES)
    strips = np.clip(np.ceil(radii / usual) if usual > 0 else np.ones(len(radii)), 1, _MOST_STRIPS).astype(int)
    samples, owners = [], []
    for count in np.unique(strips):
        members = np.flatnonzero(strips == count)
        shares = _middles_of_parts(int(count))
        samples.append(np.einsum("si,nij->nsj", shares, corners[members]).reshape(-1, 3))
        owners.append(np.repeat(members, len(shares)))
    return np.concatenate(samples), np.concatenate(owners)


def _middles_of_parts(count: int) -> np.ndarray:
    """(count², 3) shares of the corners in the middles of the parts of a triangle, each side cut into ``count``."""
    first, second = (each.ravel() for each in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    upright, turned = first + second < count, first + second < count - 1
    pairs = np.concatenate(
        [
            np.column_stack([first, second])[upright] + 1 / 3,
            np.column_stack([first, second])[turned] + 2 / 3,
        ]
    )
    return np.column_stack([pairs, count - pairs.sum(axis=1)]) / count
