# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way is out of a body: normals that do not trust how its faces are wound."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..deform.surface import vertex_normals
from .types import Body

# A component whose signed volume V has a smaller share |V| / area^1.5 is a sheet rather than a solid: a ball has 0.094,
# a human body 0.04, a rod of one to a hundred 0.02.
_SOLID = 0.005


def outward_normals(body: Body, inner_points: np.ndarray) -> np.ndarray:
    """Unit normals (W, 3) of the places, zero where there are no faces with an area.

    Neighboring faces are wound alike first; then each solid component by its volume, and each sheet so that
    ``inner_points`` (W, 3), what lies nearest inside of each place, are behind most of it.
    """
    triangles = _wound_alike(body.place_triangles, len(body.points))
    points = body.points
    part = body.place_components[triangles[:, 0]] if len(triangles) else np.zeros(0, int)
    count = int(body.place_components.max()) + 1
    middles = np.stack([np.bincount(body.place_components, points[:, i], count) for i in range(3)], axis=1)
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
    return vertex_normals(points, triangles)


def _wound_alike(triangles: np.ndarray, count: int) -> np.ndarray:
    """A copy of ``triangles`` (T, 3) in which those that share an edge between the two of them run along it oppositely.

    Each patch keeps the way of the larger part of its triangles. One-sided patches, and edges of more than two
    triangles, are left.
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
    # Two nodes a triangle, as it is and turned; joined where they fit together. A patch falls into two halves, one the
    # other turned, or is one if it is one-sided.
    total = len(triangles)
    ends = np.concatenate([np.where(same, b + total, b), np.where(same, b, b + total)])
    links = sparse.coo_matrix(
        (np.ones(2 * len(a), bool), (np.concatenate([a, a + total]), ends)), shape=(2 * total,) * 2
    )
    halves, half = connected_components(links, directed=False)
    kept = np.bincount(half[:total], minlength=halves)
    turned = kept[half[:total]] < kept[half[total:]]
    # Of equals one half must go: the one with the first triangle stays.
    turned |= (kept[half[:total]] == kept[half[total:]]) & (half[:total] > half[total:])
    triangles = triangles.copy()
    triangles[turned] = triangles[turned][:, ::-1]
    return triangles
