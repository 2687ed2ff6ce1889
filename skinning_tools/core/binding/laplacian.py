# SPDX-License-Identifier: GPL-3.0-or-later
"""A Laplacian of places that works on any mesh, however untidy."""

import numpy as np
from scipy import sparse

from .types import Body

# Larger cotangents, of angles below half a degree, are practically infinite and would only cost digits.
_MOST = 100.0


def laplacian(body: Body) -> tuple[sparse.csr_matrix, np.ndarray]:
    """L (W, W), symmetric with rows that sum to 0 and no positive number off its diagonal, and areas (W,) > 0.

    Cotangents, none negative, so that diffusion stays between the smallest and the largest value. An edge without a
    triangle counts as a strip as wide as it is long. A single place has an area of its own, so that L + diag(areas) is
    always positive definite.
    """
    points, count = body.points, len(body.points)
    triangles, shares = np.concatenate([body.place_triangles, body.place_others[0]]), body.shares
    rows, columns, values = [], [], []
    for apex in range(3):
        a, b, c = (triangles[:, (apex + i) % 3] for i in range(3))
        to_b, to_c = points[b] - points[a], points[c] - points[a]
        double_area = np.linalg.norm(np.cross(to_b, to_c), axis=1)
        inner = np.einsum("ij,ij->i", to_b, to_c)
        cotangent = np.sign(inner) * _MOST
        solid = np.abs(inner) < _MOST * double_area
        cotangent[solid] = inner[solid] / double_area[solid]
        rows.append(np.minimum(b, c))
        columns.append(np.maximum(b, c))
        values.append(0.5 * shares * cotangent)
    areas = np.zeros(count)
    if len(triangles):
        areas += np.bincount(triangles.ravel(), np.repeat(shares * double_area / 6, 3), count)

    wires = _edges_without_triangles(body.place_edges, triangles, count)
    rows.append(wires[:, 0])
    columns.append(wires[:, 1])
    values.append(np.ones(len(wires)))
    strips = 0.5 * np.sum((points[wires[:, 0]] - points[wires[:, 1]]) ** 2, axis=1)
    areas += np.bincount(wires.ravel(), np.repeat(strips, 2), count)

    half = sparse.coo_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count)
    ).tocsr()
    np.maximum(half.data, 0, out=half.data)
    links = half + half.T
    result = sparse.diags(np.asarray(links.sum(axis=1)).ravel()) - links
    if areas.any():
        areas = np.maximum(areas, 1e-6 * areas.mean())
    else:
        # Flat triangles alone, or no faces and edges at all: as if the places shared a surface as large as the mesh.
        areas = np.full(count, (body.diagonal**2 or 1.0) / count)
    return result.tocsr(), areas


def _edges_without_triangles(edges: np.ndarray, triangles: np.ndarray, count: int) -> np.ndarray:
    """(n, 2) of ``edges`` (E, 2), the first less than the second; of ``count`` places."""
    sides = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    of_triangles = np.isin(edges[:, 0] * count + edges[:, 1], sides[:, 0] * count + sides[:, 1])
    return edges[~of_triangles]
