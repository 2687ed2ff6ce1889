# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links: how many, how they turn, whose weights they take, and that a twisted limb keeps its cross-section."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core import quaternions
from skinning_tools.core.binding.links import (
    joint_radius,
    link_count,
    link_matrices,
    link_shares,
    link_weights,
    range_of_limits,
    range_of_turns,
    shared_rotations,
    swing_and_twist,
    twist_weights,
)
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadSettings

from ..skinned_shapes import about, chain_weights, cuboid, dense, volume
from .twisted_bar import JOINT, X, ring_areas, twist_matrices, twisted


def quaternion(rotation):
    return np.roll(rotation.as_quat(), 1, axis=-1)


@pytest.mark.parametrize(
    ("degrees", "count"), [(0, 0), (60, 0), (61, 2), (90, 2), (120, 2), (121, 3), (180, 3), (270, 3)]
)
def test_the_number_of_links(degrees, count):
    """The chapter's: three for half a turn, at 60°."""
    assert link_count(np.radians(degrees)) == count


def test_no_step_of_the_links_exceeds_the_threshold():
    for threshold in (20, 45, 60, 90):
        for degrees in range(1, 181):
            count = link_count(np.radians(degrees), np.radians(threshold), most=100)
            assert degrees / (count + 1) <= threshold + 1e-6
    assert link_count(np.pi, np.radians(10), most=2) == 2
    with pytest.raises(BadSettings):
        link_count(1.0, 0.0)


def test_the_range_of_an_action_is_between_any_two_poses_and_rest():
    def turned(*degrees):
        return quaternion(Rotation.from_rotvec(np.radians(degrees)[:, None] * [0, 0.6, 0.8]))

    assert range_of_turns(turned(0, 30, -70)) == pytest.approx(np.radians(100))
    assert range_of_turns(turned(20, 50)) == pytest.approx(np.radians(50))
    assert range_of_turns(-turned(20, 250)) == pytest.approx(np.radians(130))
    assert range_of_turns(np.zeros((0, 4))) == 0


def test_the_range_of_limits_is_their_difference():
    def limits(*pairs):
        return range_of_limits(*np.radians([*pairs, *[(0, 0)] * (3 - len(pairs))]).T)

    assert limits((-70, 50)) == pytest.approx(np.radians(120))
    assert limits((0, 0), (-150, 90)) == pytest.approx(np.radians(240))
    assert limits((20, 50)) == pytest.approx(np.radians(50))
    several = np.radians([(-20, 70), (-45, 10), (0, 35)]).T
    angles = np.random.default_rng(0).uniform(*several, (400, 3))
    # The corners, and edges between them.
    angles[:300, :2] = np.where(angles[:300, :2] > several.mean(axis=0)[:2], several[1, :2], several[0, :2])
    angles[:200, 2] = np.where(angles[:200, 2] > several.mean(axis=0)[2], several[1, 2], several[0, 2])
    rotations = Rotation.from_euler("xyz", angles).as_quat()
    sampled = 2 * np.arccos(np.abs(rotations @ rotations.T).min())
    assert sampled - 1e-6 <= range_of_limits(*several) < sampled + 0.05
    assert range_of_limits(*several) > np.radians(91)
    with pytest.raises(BadSettings, match="lowest"):
        range_of_limits([0, 0, 1], [0, 0, 0])


def test_shares_by_bias_and_ease():
    np.testing.assert_allclose(link_shares(3), [0.25, 0.5, 0.75])
    assert (link_shares(5, bias=0.5) > link_shares(5)).all()
    np.testing.assert_allclose(link_shares(5, bias=-0.5), 1 - link_shares(5, bias=0.5)[::-1])
    # Schlick's curves at a quarter: x / ((1 / b - 2)(1 - x) + 1), and half of that at twice x.
    assert link_shares(3, bias=0.5)[0] == pytest.approx(0.25 / ((1 / 0.75 - 2) * 0.75 + 1))
    assert link_shares(3, ease=0.5)[0] == pytest.approx(0.5 * 0.5 / ((1 / 0.25 - 2) * 0.5 + 1))
    steps = np.diff([0.0, *link_shares(6, ease=0.6), 1.0])
    np.testing.assert_allclose(steps, steps[::-1])
    assert (np.diff(steps[:4]) > 0).all()
    for wrong in ({"bias": 1.0}, {"bias": -1.0}, {"ease": 1.0}, {"ease": -0.1}):
        with pytest.raises(BadSettings, match="below 1"):
            link_shares(3, **wrong)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_swing_and_twist(seed):
    random = np.random.default_rng(seed)
    rotations = quaternions.normalized(random.normal(size=(8, 4)))
    axis = random.normal(size=3)
    swing, twist = swing_and_twist(rotations, axis)
    np.testing.assert_allclose(quaternions.product(swing, twist), rotations, atol=1e-12)
    unit = axis / np.linalg.norm(axis)
    np.testing.assert_allclose(np.cross(twist[:, 1:], unit), 0, atol=1e-12)
    np.testing.assert_allclose(swing[:, 1:] @ unit, 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(swing, axis=1), 1, atol=1e-12)


def test_a_half_turn_across_the_axis_has_no_twist():
    swing, twist = swing_and_twist(np.array([0.0, 0.0, 1.0, 0.0]), X)
    np.testing.assert_array_equal(twist, [1, 0, 0, 0])
    np.testing.assert_array_equal(swing, [0, 0, 1, 0])


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_shares_of_a_turn_are_even_steps(seed, count):
    rotations = quaternions.normalized(np.random.default_rng(seed).normal(size=(6, 4)))
    shared = shared_rotations(rotations, link_shares(count))
    steps = np.concatenate([np.tile([1.0, 0, 0, 0], (6, 1, 1)), shared, rotations[:, None]], axis=1)
    between = quaternions.product(quaternions.conjugate(steps[:, :-1]), steps[:, 1:])
    angles = 2 * np.arccos(np.clip(np.abs(between[..., 0]), 0, 1))
    whole = 2 * np.arccos(np.clip(np.abs(rotations[:, 0]), 0, 1))
    np.testing.assert_allclose(angles, np.repeat(whole[:, None] / (count + 1), count + 1, axis=1), atol=1e-6)


def test_links_turn_about_the_joint():
    state = np.random.RandomState(2)
    parent = about(Rotation.random(random_state=state).as_matrix(), [1, 2, 3])
    bend = Rotation.from_rotvec([0.3, 0.9, -1.1])
    turn = parent[:, :3] @ bend.as_matrix()
    at = parent[:, :3] @ JOINT + parent[:, 3]
    child = np.column_stack([turn, at - turn @ JOINT])
    links = link_matrices(parent, child, JOINT, link_shares(3))
    np.testing.assert_allclose(links[..., :3] @ JOINT + links[..., 3], np.tile(at, (3, 1)), atol=1e-12)
    for share, link in zip((0.25, 0.5, 0.75), links, strict=True):
        expected = parent[:, :3] @ Rotation.from_rotvec(share * bend.as_rotvec()).as_matrix()
        np.testing.assert_allclose(link[:, :3], expected, atol=1e-12)
    # Scales go from one to the other, and a child that moves away draws the links after it.
    child[:, :3] *= 3
    child[:, 3] = at + X - child[:, :3] @ JOINT
    middle = link_matrices(parent, child, JOINT, np.array([0.5]))[0]
    np.testing.assert_allclose(np.linalg.det(middle[:, :3]), 8)
    np.testing.assert_allclose(middle[:, :3] @ JOINT + middle[:, 3], at + 0.5 * X)


def test_links_beside_the_joint():
    """Each where parent and child would take its own place, by its share."""
    parent = np.eye(3, 4)
    child = about(Rotation.from_euler("z", 90, degrees=True).as_matrix(), JOINT)
    places = JOINT + np.array([[-1.0, 0, 0], [0, 0.5, 0], [1, 0, 0]])
    links = link_matrices(parent, child, places, link_shares(3))
    at = np.einsum("nij,nj->ni", links[..., :3], places) + links[..., 3]
    # The child takes them to y = -1, x = -0.5, and y = 1.
    expected = JOINT + np.array([[-0.75, -0.25, 0], [-0.25, 0.25, 0], [0.25, 0.75, 0]])
    np.testing.assert_allclose(at, expected, atol=1e-12)
    np.testing.assert_allclose(links[..., :3], link_matrices(parent, child, JOINT, link_shares(3))[..., :3])


def test_links_across_the_limb_make_an_elbow():
    """Toward the inside of the bend, they push its outside out by as much as they are across at half the bend."""
    _, _, even, *_ = twisted(3, degrees=120, axis="z")
    _, _, pointed, *_ = twisted(3, degrees=120, axis="z", across=0.2)
    _, _, flat, *_ = twisted(3, degrees=120, axis="z", across=-0.2)
    outward = np.array([np.cos(np.radians(-30)), np.sin(np.radians(-30)), 0])
    far = [((points - JOINT) @ outward).max() for points in (flat, even, pointed)]
    np.testing.assert_allclose(np.diff(far), 0.2 * (1 - np.cos(np.radians(60))), atol=1e-3)


def test_a_cuboid_twisted_by_half_a_turn_keeps_its_cross_section():
    """Without links it collapses to nothing; with three, four steps of 45° leave cos² 22.5° = 0.854 of it."""
    assert ring_areas(twisted(0)[2]).min() < 1e-6
    for spread in (0.0, 1.0, 2.0):
        areas = ring_areas(twisted(3, spread=spread)[2])
        assert areas.min() >= 0.85
        assert areas.max() <= 1 + 1e-9
    for count in (1, 2, 3, 5):
        least = np.cos(np.pi / (count + 1) / 2) ** 2
        assert ring_areas(twisted(count, spread=2.0)[2]).min() >= least - 1e-6


def test_a_rigid_joint_gets_a_blend_to_twist_in():
    """Where parent and child meet without a blend, links alone change nothing, and the reach makes one."""
    rest, _, before, *_ = twisted(0, reach=1e-6)
    off = np.abs(rest[:, 0] - 3) > 0.01
    np.testing.assert_allclose(twisted(3, reach=1e-6)[2][off], before[off], atol=1e-12)
    points = twisted(3, reach=1e-6, spread=1.5)[2]
    turned = np.degrees(np.unwrap(np.arctan2(points[:-2:48, 2], points[:-2:48, 1])))
    turned -= turned[0]
    share = np.clip((rest[:-2:48, 0] - 1.5) / 3, 0, 1)
    # Even to within what linear blending of 45° steps is.
    np.testing.assert_allclose(np.abs(turned), 180 * share, atol=2)


def test_a_bent_elbow_keeps_more_of_its_volume():
    rest, triangles, collapsed, *_ = twisted(0, degrees=130, axis="z")
    linked = twisted(3, degrees=130, axis="z")[2]
    whole = volume(rest, triangles)
    assert whole - volume(linked, triangles) < 0.7 * (whole - volume(collapsed, triangles))


def test_links_at_rest_change_nothing():
    rest, _, _, bones, weights = twisted(3)
    np.testing.assert_allclose(skin_frame(rest, bones, weights, np.tile(np.eye(3, 4), (5, 1, 1))), rest, atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_weights_of_the_joint_stay_with_its_chain(seed, count):
    """Sums, other bones and the average turn are as before."""
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(5, 3, replace=False) for _ in range(40)], np.int32)
    weights = random.dirichlet(np.ones(3), 40)
    chain = [1, *range(5, 5 + count), 3]
    before = dense(bones, weights, 5)
    after = dense(*link_weights(np.zeros((40, 3)), bones, weights, chain, max_influences=6), 5 + count)
    np.testing.assert_allclose(after[:, [0, 2, 4]], before[:, [0, 2, 4]], atol=1e-12)
    np.testing.assert_allclose(after[:, chain].sum(axis=1), before[:, [1, 3]].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(after[:, chain] @ np.linspace(0, 1, count + 2), before[:, 3], atol=1e-12)
    assert (np.count_nonzero(after[:, chain], axis=1) <= 2).all()
    bones, weights = link_weights(np.zeros((40, 3)), bones, weights, chain, max_influences=3)
    assert bones.shape == (40, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


def test_another_limb_beside_the_joint_is_left_alone():
    rest, _ = cuboid(columns=30, rows=3)
    beside = rest + np.array([0, 4.0, 0])
    both = np.vstack([rest, beside])
    bones, weights = chain_weights(both[:, 0], [3.0], reach=0.1)
    bones[len(rest) :] = 0
    weights[len(rest) :] = [1.0, 0.0]
    radius = joint_radius(both, bones, weights, 1, JOINT, X)
    assert 0.45 < radius < 0.75
    result = dense(
        *link_weights(both, bones, weights, [0, 2, 3, 1], joint=JOINT, direction=X, reach=1.0, radius=radius), 4
    )
    assert result[: len(rest), 2:].max() > 0.9
    np.testing.assert_array_equal(result[len(rest) :], np.tile([1.0, 0, 0, 0], (len(rest), 1)))
    assert joint_radius(both, bones, weights, 9, JOINT, X) == 0


def test_locked_bones_stay():
    bones = np.array([[0, 1, 2, 3], [0, 1, 2, 3]])
    weights = np.array([[0.3, 0.3, 0.35, 0.05], [0.1, 0.2, 0.3, 0.4]])
    locked = np.arange(5) == 3
    result = dense(*link_weights(np.zeros((2, 3)), bones, weights, [0, 4, 1], max_influences=3, locked=locked), 5)
    np.testing.assert_allclose(result[:, 3], [0.05, 0.4])
    with pytest.raises(BadSettings, match="locked"):
        link_weights(np.zeros((2, 3)), bones, weights, [0, 4, 3], locked=locked)
    with pytest.raises(BadSettings, match="locked"):
        twist_weights(np.zeros((2, 3)), bones, weights, [3, 4], [0, 0, 0], [1, 0, 0], locked=locked)


@pytest.mark.parametrize("chain", [[0, 1], [0, 2, 0]])
def test_invalid_chains_are_refused(chain):
    with pytest.raises(BadSettings, match="at least one link"):
        link_weights(np.zeros((1, 3)), np.array([[0]]), np.array([[1.0]]), chain)


def test_wrong_settings_are_refused():
    with pytest.raises(BadSettings, match="position and direction"):
        link_weights(np.zeros((1, 3)), np.array([[0]]), np.array([[1.0]]), [0, 2, 1], reach=1.0)
    with pytest.raises(BadSettings, match="without length"):
        twist_weights(np.zeros((1, 3)), np.array([[0]]), np.array([[1.0]]), [0, 2], [0, 0, 0], [0, 0, 0])


def test_a_forearm_twists_all_along():
    """The hand at x = 5 twists by 160° and bends: the forearm from x = 1 turns evenly, and only about itself."""
    rest, _ = cuboid(columns=60, rows=12)
    bones, weights = chain_weights(rest[:, 0], [1.0, 5.0], reach=0.5)
    elbow, wrist = np.array([1.0, 0, 0]), np.array([5.0, 0, 0])
    hand = Rotation.from_euler("y", 50, degrees=True) * Rotation.from_euler("x", 160, degrees=True)
    matrices = np.stack([np.eye(3, 4), np.eye(3, 4), about(hand.as_matrix(), wrist)])
    links = twist_matrices(matrices[1], matrices[2], wrist, X, link_shares(3))
    for share, link in zip((40, 80, 120), links, strict=True):
        np.testing.assert_allclose(
            link, about(Rotation.from_euler("x", share, degrees=True).as_matrix(), elbow), atol=1e-9
        )
    new = twist_weights(rest, bones, weights, [1, 3, 4, 5], elbow, wrist)
    before, after = dense(bones, weights, 3), dense(*new, 6)
    np.testing.assert_allclose(after[:, [0, 2]], before[:, [0, 2]], atol=1e-12)
    points = skin_frame(rest, *new, np.concatenate([matrices, links]))
    middle = (rest[:-2:48, 0] > 1.5) & (rest[:-2:48, 0] < 4.5)
    turned = np.degrees(np.unwrap(np.arctan2(points[:-2:48, 2], points[:-2:48, 1])))[middle]
    x = rest[:-2:48, 0][middle]
    np.testing.assert_allclose(turned - turned[0], (x - x[0]) / 4 * 120, atol=2)
    # Two steps of 40° next to each other shrink it less than one of 160° does.
    assert ring_areas(points)[:45].min() > np.cos(np.radians(20)) ** 2 - 1e-9
    without = skin_frame(rest, bones, weights, matrices)
    assert ring_areas(without).min() < 0.5
