# SPDX-License-Identifier: GPL-3.0-or-later
"""Which places of a garment have a point of the body's surface that they follow (Abdrashitov and others 2023,
section 4.1, with the side judged for each connected part)."""

import math
from dataclasses import dataclass

import numpy as np

from ..binding.body import wound_alike
from ..binding.types import Body
from ..deform.surface import vertex_normals
from ..geometry import unit
from .closest import Closest, closest_points

# Shares of the source's diagonal, and radians: how far away a point may be, and how much its normal may differ.
DISTANCE = 0.05
ANGLE = math.radians(20.0)

# A part faces the body with one side if at least this share of its close places does.
_ONE_SIDED = 0.8


@dataclass(frozen=True, eq=False)
class Matches:
    """closest: for each of W places, on ``triangles`` (T, 3) of the source's vertices. near, matched (W,) bool: those
    within the distance, and of them those with a similar normal."""

    closest: Closest
    triangles: np.ndarray
    near: np.ndarray
    matched: np.ndarray


def find_matches(source: Body, weighted: np.ndarray, target: Body, distance: float, angle: float) -> Matches:
    """Of each place of ``target``, the closest point of ``source``; both are in one space.

    weighted (N,) bool: vertices of the source that have weights. distance: the largest, as a share of the source's
    diagonal; angle: the largest between the normals, in radians.
    """
    triangles = _faces(source, weighted)
    closest = closest_points(source.rest, triangles, target.points)
    near = closest.distances <= distance * source.diagonal
    normals = vertex_normals(source.points, wound_alike(source.place_triangles, len(source.points)))[source.place]
    there = unit(np.einsum("ni,nij->nj", closest.shares, normals[triangles[closest.triangles]]))
    own = vertex_normals(target.points, wound_alike(target.place_triangles, len(target.points)))
    cosines = np.einsum("ni,ni->n", own, there)
    directed = own.any(axis=1) & there.any(axis=1)
    facing = cosines * _sides(target, cosines, near & directed & (np.abs(cosines) >= np.cos(angle)))
    return Matches(closest, triangles, near, near & (~directed | (facing >= np.cos(angle))))


def _sides(target: Body, cosines: np.ndarray, clear: np.ndarray) -> np.ndarray:
    """(W,) 1 or −1: which side of each place faces the source; that of its part, or its own where its part has close
    places of both sides, as one of two layers has."""
    part = target.place_components
    count = int(part.max()) + 1
    outward = np.bincount(part, clear & (cosines > 0), count)
    inward = np.bincount(part, clear & (cosines < 0), count)
    some = np.maximum(outward + inward, 1)
    own = np.where(cosines < 0, -1.0, 1.0)
    of_part = np.where(outward >= _ONE_SIDED * some, 1.0, np.where(inward >= _ONE_SIDED * some, -1.0, 0.0))
    return np.where(of_part[part] == 0, own, of_part[part])


def _faces(source: Body, weighted: np.ndarray) -> np.ndarray:
    """(T, 3) the triangles of the source whose corners are all ``weighted`` (N,); where there is none, such edges or
    else vertices, as flat ones."""
    alone = np.repeat(np.arange(len(source.rest))[:, None], 3, axis=1)
    shapes = (source.triangles, source.edges[:, [0, 1, 1]], alone)
    return next(found for shape in shapes if len(found := shape[weighted[shape].all(axis=1)]))
