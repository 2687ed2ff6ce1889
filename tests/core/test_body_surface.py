# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.body_surface import BodySurface
from skinning_tools.core.joint_search import find_joint_hierarchy
from skinning_tools.core.joints_in_body import into_body
from skinning_tools.core.pair_motion import PairMotion
from tests.core import skinned_shapes
from tests.core.skinned_shapes import NO_TRIANGLES


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
    detours = BodySurface(points, triangles).detours(ends)
    np.testing.assert_allclose(detours, [[0, 20], [20, 0]])


def test_seams_do_not_tear():
    points, triangles, ends = horseshoe()
    split = points[triangles.ravel()]
    corners = np.arange(len(split)).reshape(-1, 3)
    regions = [np.flatnonzero(np.isin(triangles.ravel(), end)) for end in ends]
    np.testing.assert_allclose(
        BodySurface(split, corners).detours(regions), BodySurface(points, triangles).detours(ends)
    )


def test_a_loose_piece_belongs_to_what_is_near():
    points, triangles, ends = horseshoe()
    eye, more = strip([[10.2 + 0.1 * x, 0, 0] for x in range(3)])
    regions = [*ends, np.arange(len(points), len(points) + len(eye))]
    detours = BodySurface(np.concatenate([points, eye]), np.concatenate([triangles, more + len(points)])).detours(
        regions
    )
    assert detours[0, 2] == pytest.approx(0)
    assert detours[1, 2] == pytest.approx(20, abs=0.5)


def test_where_no_way_leads_the_whole_gap_is_a_detour():
    # The nearest places of each place are of its own piece.
    points, triangles = strip([[x, 0, 0] for x in range(12)])
    both = np.concatenate([points, points + np.array([31.0, 0, 0])])
    body = BodySurface(both, np.concatenate([triangles, triangles + len(points)]))
    detours = body.detours([np.arange(len(points)), np.arange(len(points), len(both))])
    np.testing.assert_allclose(detours, [[0, 20], [20, 0]])


@pytest.mark.parametrize("missing", [0, 30])
def test_what_the_surface_surrounds(missing):
    # With a hole in one of its ends, too.
    points, triangles = skinned_shapes.cuboid()
    body = BodySurface(points, triangles[: len(triangles) - missing])
    places = np.array([[3.0, 0, 0], [3, 0.45, -0.45], [3, 0.55, 0], [-0.1, 0, 0], [30, 1, 2]])
    np.testing.assert_array_equal(body.inside(places), [True, True, False, False, False])


def test_joints_lie_inside_the_body_where_that_costs_little():
    points, triangles = skinned_shapes.cuboid()
    far = (points[:, 0] > 3).astype(np.int32)
    transforms = np.tile(np.eye(3, 4), (12, 2, 1, 1))
    turns = Rotation.from_rotvec(np.random.default_rng(1).normal(size=(12, 3)))
    for size, inside in ((0.1, True), (1.0, False)):
        for frame, turn in enumerate(turns.as_rotvec()):
            turned = Rotation.from_rotvec(size * turn).as_matrix()
            transforms[frame, 1] = skinned_shapes.about(turned, [3, 0.6, 0])[:3]
        tree = find_joint_hierarchy(points, far[:, None], np.ones((len(points), 1)), transforms, triangles)
        joint = tree.joints[tree.parents >= 0]
        assert BodySurface(points, triangles).inside(joint).tolist() == [inside]
        assert inside or np.linalg.norm(joint - [3, 0.6, 0]) < 0.05


def test_joints_that_mirror_each_other_are_drawn_together():
    """Although each side moves as it does."""
    points, triangles = skinned_shapes.cuboid()
    points = points - [3.0, 0, 0]
    skin = np.select([points[:, 0] < -1, points[:, 0] > 1], [1, 2], 0)[:, None], np.ones((len(points), 1))
    transforms = np.tile(np.eye(3, 4), (12, 3, 1, 1))
    for frame, turn in enumerate(np.random.default_rng(1).normal(size=(12, 3))):
        for bone, size, x in ((1, 0.2, -1.0), (2, 0.16, 1.0)):
            turned = Rotation.from_rotvec(size * turn).as_matrix()
            transforms[frame, bone] = skinned_shapes.about(turned, [x, 0.6, 0])[:3]
    tree = find_joint_hierarchy(points, *skin, transforms, triangles)
    assert tree.parents.tolist() == [-1, 0, 0]
    np.testing.assert_allclose(tree.joints[1] * [-1, 1, 1], tree.joints[2], atol=1e-6)
    assert BodySurface(points, triangles).inside(tree.joints).all()


def test_hips_do_not_cross():
    """Though each thigh turns best about a point slightly beyond the middle, where it meets the hip."""
    points, triangles = skinned_shapes.cuboid()
    points = points - 0.5 * (points.min(axis=0) + points.max(axis=0))
    joints = np.array([[-0.01, 0, 0], [0.01, 0, 0]])
    turning = np.diag([0.01, 0.09, 0.09])
    squares = np.zeros((2, 4, 4))
    squares[:, :3, :3] = turning
    squares[:, :3, 3] = squares[:, 3, :3] = -joints @ turning
    squares[:, 3, 3] = np.einsum("ci,ij,cj->c", joints, turning, joints)
    middles = np.array([[0.05, 0, -0.05], [-0.05, 0, -0.05]])
    drawn = into_body(
        PairMotion(squares), joints, joints, middles, np.array([1, 0]), 0.0, BodySurface(points, triangles)
    )
    assert drawn[1, 0] < 0 < drawn[0, 0]
    np.testing.assert_allclose(drawn[1], drawn[0] * [-1, 1, 1])


def test_regions_without_vertices_and_without_triangles():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]])
    regions = [np.array([0]), np.array([], int), np.array([2])]
    detours = BodySurface(points, np.zeros((0, 3), int)).detours(regions)
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
    assert find_joint_hierarchy(*skin, transforms, NO_TRIANGLES).parents.tolist() != [-1, 0, 0]
    assert find_joint_hierarchy(*skin, transforms, triangles).parents.tolist() == [-1, 0, 0]


def test_fingers_that_bend_in_step_hang_from_the_palm():
    """Though they slip little, and move much less, against each other."""
    points, triangles = sheet(19, 9)
    finger = np.where(points[:, 0] > 6, 1 + points[:, 1] // 3, 0).astype(np.int32)
    # What joins the fingers ends at half their length.
    owners = np.where(points[triangles, 0] > 6, finger[triangles], finger[triangles].max(axis=1, keepdims=True))
    triangles = triangles[(points[triangles, 0].max(axis=1) <= 9) | (np.ptp(owners, axis=1) == 0)]
    transforms = np.tile(np.eye(3, 4), (16, 4, 1, 1))
    for frame, angle in enumerate(np.sin(np.arange(16.0))):
        for bone, knuckle in ((1, 0.0), (2, 0.06), (3, 0.0)):
            turned = Rotation.from_rotvec([0, angle * (1 + 0.015 * bone), 0]).as_matrix()
            transforms[frame, bone] = skinned_shapes.about(turned, [6.5, 0, knuckle])
    tree = find_joint_hierarchy(points, finger[:, None], np.ones((len(points), 1)), transforms, triangles)
    assert tree.parents.tolist() == [-1, 0, 0, 0]


def test_a_trunk_in_two_halves_is_between_belly_and_head():
    """These two share vertices and lie in the middle, but no joint between them holds."""
    points, triangles = skinned_shapes.cuboid()
    points = points[:, [1, 2, 0]]
    belly, trunk, head = skinned_shapes.chain_weights(points[:, 2], [1.0, 5.0], reach=0.5)[1].T
    left = 0.5 + points[:, 0]
    weights = np.column_stack([belly + 0.02, trunk * left, trunk * (1 - left), head + 0.02])
    weights /= weights.sum(axis=1, keepdims=True)
    transforms = np.tile(np.eye(3, 4), (16, 4, 1, 1))
    for frame, turns in enumerate(np.random.default_rng(0).normal(size=(16, 4, 3))):
        for bone, size, height in ((0, 0.3, 1.0), (1, 0.03, 3.0), (2, 0.03, 3.0), (3, 0.3, 5.0)):
            turned = Rotation.from_rotvec(size * turns[bone]).as_matrix()
            transforms[frame, bone] = skinned_shapes.about(turned, [0, 0, height])
    tree = find_joint_hierarchy(points, np.tile(np.arange(4), (len(points), 1)), weights, transforms, triangles)
    assert tree.partners is not None
    assert tree.partners.tolist() == [0, 2, 1, 3]
    links = {frozenset(link) for link in enumerate(tree.parents.tolist()) if -1 not in link}
    assert frozenset((1, 2)) in links
    assert frozenset((0, 3)) not in links


def test_the_contact_of_two_regions_is_the_length_of_their_boundary():
    """A strip one unit wide: each boundary across it is two edges and one diagonal."""
    points, triangles = strip([[x, 0, 0] for x in range(9)])
    part = np.where(points[:, 0] < 3, 0, np.where(points[:, 0] < 6, 1, 2))[:, None]
    touching, direct = BodySurface(points, triangles).contacts(part, np.ones((len(points), 1)), 4)
    np.testing.assert_allclose(touching[0, 1], 2 + np.sqrt(2))
    np.testing.assert_allclose(touching, touching.T)
    np.testing.assert_allclose(touching, direct)
    assert touching[0, 2] == touching[0, 3] == 0


def test_loose_pieces_touch_across_bridges_only():
    points, triangles = strip([[x, 0, 0] for x in range(4)])
    both = np.concatenate([points, points + np.array([3.1, 0, 0])])
    part = np.repeat([0, 1], len(points))[:, None]
    surface = BodySurface(both, np.concatenate([triangles, triangles + len(points)]))
    touching, direct = surface.contacts(part, np.ones((len(both), 1)), 2)
    assert touching[0, 1] > 0
    assert direct[0, 1] == 0


def sheet(columns, rows):
    """A grid in the plane, and its triangles."""
    x, y = np.meshgrid(np.arange(float(columns)), np.arange(float(rows)), indexing="ij")
    corner = (np.arange(columns - 1)[:, None] * rows + np.arange(rows - 1)).ravel()
    halves = (corner, corner + rows, corner + 1), (corner + 1, corner + rows, corner + rows + 1)
    points = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1)
    return points, np.concatenate([np.stack(corners, axis=1) for corners in halves])


def test_a_limb_hangs_from_what_it_touches_most():
    """Two limbs side by side on a trunk, joined along one edge: by motion alone, they are the nearest of all."""
    points, triangles = sheet(9, 13)
    # Tilted, so that it is not symmetric: of two limbs that mirror each other, neither hangs from the other.
    points[:, 2] = 0.1 * points[:, 0]
    limb = np.where(points[:, 1] > 6, np.where(points[:, 0] < 4, 1, 2), 0)
    crossing = np.ptp(np.where(limb == 0, 1.5, limb)[triangles], axis=1) == 1
    kept = triangles[~crossing | (points[triangles][:, :, 1].max(axis=1) <= 7)]
    transforms = np.tile(np.eye(3, 4), (12, 3, 1, 1))
    random = np.random.default_rng(0)
    for frame in range(1, 12):
        turn, shift = 0.1 * random.normal(size=3), 0.05 * random.normal(size=3)
        for bone in (1, 2):
            turned = Rotation.from_rotvec(turn + 0.06 * random.normal(size=3)).as_matrix()
            transforms[frame, bone] = skinned_shapes.about(turned, [4, 6.5, 0.4])[:3]
            transforms[frame, bone, :, 3] += shift
    skin = points, limb[:, None].astype(np.int32), np.ones((len(points), 1))
    assert find_joint_hierarchy(*skin, transforms, NO_TRIANGLES).parents.tolist() != [-1, 0, 0]
    assert find_joint_hierarchy(*skin, transforms, kept).parents.tolist() == [-1, 0, 0]


def test_what_hangs_together_has_one_root_and_what_flies_away_its_own():
    points, triangles = strip([[x, 0, 0] for x in range(9)])
    ball, more = strip([[x + 12.0, 0, 0] for x in range(3)])
    random = np.random.default_rng(1)
    transforms = np.tile(np.eye(3, 4), (10, 3, 1, 1))
    transforms[1:, 1:, :, 3] = random.normal(size=(9, 2, 3))
    part = np.concatenate([np.where(points[:, 0] < 5, 0, 1), np.full(len(ball), 2)])[:, None]
    skin = np.concatenate([points, ball]), part, np.ones((len(part), 1))
    assert find_joint_hierarchy(*skin, transforms, NO_TRIANGLES).parents.tolist() == [-1, -1, -1]
    hierarchy = find_joint_hierarchy(*skin, transforms, np.concatenate([triangles, more + len(points)]))
    assert (hierarchy.parents[:2] < 0).sum() == 1
    assert hierarchy.parents[2] == -1
