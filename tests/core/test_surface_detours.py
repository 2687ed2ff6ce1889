# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.joint_search import find_joint_hierarchy
from skinning_tools.core.surface_detours import surface_detours
from tests.core import skinned_shapes


def strip(places):
    """Two rows of vertices along ``places`` (n, 3), one unit apart in y, and the triangles between them."""
    places = np.asarray(places, dtype=float)
    points = np.concatenate([places, places + np.array([0, 1, 0])])
    first = np.arange(len(places) - 1)
    other = first + len(places)
    triangles = np.concatenate(
        [np.stack(c, axis=1) for c in ((first, first + 1, other), (first + 1, other + 1, other))]
    )
    return points, triangles


def horseshoe():
    """Two arms of length 10, one unit apart, and what joins them."""
    arm = np.arange(10.0, -1, -1)
    low, high = np.stack([arm, 0 * arm, 0 * arm], axis=1), np.stack([arm[::-1], 0 * arm, 0 * arm + 1], axis=1)
    points, triangles = strip(np.concatenate([low, high]))
    column = np.arange(len(points)) % 22
    return points, triangles, [np.flatnonzero(column == 0), np.flatnonzero(column == 21)]


def test_the_way_leads_over_the_surface():
    points, triangles, ends = horseshoe()
    detours = surface_detours(points, triangles, ends)
    np.testing.assert_allclose(detours, [[0, 20], [20, 0]])


def test_seams_do_not_tear():
    points, triangles, ends = horseshoe()
    split = points[triangles.ravel()]
    corners = np.arange(len(split)).reshape(-1, 3)
    regions = [np.flatnonzero(np.isin(triangles.ravel(), end)) for end in ends]
    np.testing.assert_allclose(surface_detours(split, corners, regions), surface_detours(points, triangles, ends))


def test_a_loose_piece_belongs_to_what_is_near():
    points, triangles, ends = horseshoe()
    eye, more = strip([[10.2 + 0.1 * x, 0, 0] for x in range(3)])
    regions = [*ends, np.arange(len(points), len(points) + len(eye))]
    detours = surface_detours(np.concatenate([points, eye]), np.concatenate([triangles, more + len(points)]), regions)
    assert detours[0, 2] == pytest.approx(0)
    assert detours[1, 2] == pytest.approx(20, abs=0.5)


def test_regions_without_vertices_and_without_triangles():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]])
    regions = [np.array([0]), np.array([], int), np.array([2])]
    detours = surface_detours(points, np.zeros((0, 3), int), regions)
    assert detours[0, 2] == detours[2, 0] == 0
    assert np.isinf(detours[0, 1])
    assert np.isinf(detours[1]).all()


def test_arms_that_swing_in_step_hang_from_the_trunk():
    """By motion alone one hangs from the other, against which it never moves."""
    points, triangles, _ = horseshoe()
    column = np.arange(len(points)) % 22
    part = np.where(column < 8, 1, np.where(column > 13, 2, 0))
    transforms = np.tile(np.eye(3, 4), (12, 3, 1, 1))
    random = np.random.default_rng(0)
    for frame in range(1, 12):
        turned = Rotation.from_rotvec(0.3 * random.normal(size=3)).as_matrix()
        transforms[frame, 1:] = skinned_shapes.about(turned, [2.5, 0, 0.5])[:3]
    skin = points, part[:, None].astype(np.int32), np.ones((len(points), 1))
    assert find_joint_hierarchy(*skin, transforms).parents.tolist() != [-1, 0, 0]
    assert find_joint_hierarchy(*skin, transforms, triangles).parents.tolist() == [-1, 0, 0]
