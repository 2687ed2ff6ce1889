# SPDX-License-Identifier: GPL-3.0-or-later
"""The closest points of a surface, against all triangles and against points drawn on them."""

import numpy as np

from skinning_tools.core.transfer.closest import closest_points, closest_shares
from tests.core.binding import bodies


def test_no_point_of_a_triangle_is_closer():
    random = np.random.default_rng(0)
    corners, points = random.normal(size=(40, 3, 3)), 2 * random.normal(size=(40, 3))
    # A flat one, and one whose corners are all at one place.
    corners[0, 2], corners[1] = corners[0, :2].mean(axis=0), corners[1, 0]
    shares = closest_shares(points, corners)
    assert (shares >= 0).all()
    assert np.allclose(shares.sum(axis=1), 1)
    gaps = np.linalg.norm(np.einsum("ni,nij->nj", shares, corners) - points, axis=1)
    drawn = random.dirichlet([0.5, 0.5, 0.5], 5000)
    others = np.linalg.norm(np.einsum("si,nij->nsj", drawn, corners) - points[:, None], axis=2).min(axis=1)
    assert (gaps <= others + 1e-12).all()
    # The draws come as close as they are dense.
    assert (others - gaps < 0.05).all()


def test_all_triangles_were_considered():
    body, _ = bodies.hand()
    random = np.random.default_rng(0)
    points = body.rest[random.integers(0, len(body.rest), 300)] + 0.1 * random.normal(size=(300, 3))
    found = closest_points(body.rest, body.triangles, points)
    for index, point in enumerate(points):
        repeated = np.repeat(point[None], len(body.triangles), axis=0)
        shares = closest_shares(repeated, body.rest[body.triangles])
        gaps = np.linalg.norm(np.einsum("ni,nij->nj", shares, body.rest[body.triangles]) - point, axis=1)
        assert np.isclose(found.distances[index], gaps.min(), rtol=1e-9)


def test_a_large_triangle_beside_small_ones_is_found():
    """Its corners and its middle are farther away than many whole triangles."""
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(3, 3.2, 20), np.linspace(-0.1, 0.1, 20)))
    small = np.column_stack([x, y, np.full(400, 0.5)])
    points = np.concatenate([[[-10, -10, 0], [10, -10, 0], [0, 20, 0]], small])
    triangles = np.concatenate([[[0, 1, 2]], 3 + np.column_stack([np.arange(398), np.arange(398) + 1, [0] * 398])])
    found = closest_points(points, triangles, np.array([[2.4, 0.0, 0.2], [-1.0, 1.0, -0.3]]))
    assert found.triangles.tolist() == [0, 0]
    assert np.allclose(found.distances, [0.2, 0.3])


def test_no_queries_and_one_triangle():
    corner = np.eye(3)
    assert len(closest_points(corner, np.array([[0, 1, 2]]), np.zeros((0, 3))).distances) == 0
    found = closest_points(corner, np.array([[0, 1, 2]]), np.zeros((1, 3)))
    assert np.allclose(found.shares, 1 / 3)
