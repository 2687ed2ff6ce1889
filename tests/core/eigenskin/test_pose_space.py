# SPDX-License-Identifier: GPL-3.0-or-later
"""Distances between rotations against scipy's, hinges, and the functions over both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.eigenskin import PoseSpace, hinge_angles, rotation_angles, rotation_distances, shell_turns
from skinning_tools.core.eigenskin.interpolation import RADIUS
from skinning_tools.core.eigenskin.pose_space import REST, hinge_axis

from .posed_rigs import quaternion, random_turns


def with_signs(quaternions, seed=0):
    return quaternions * np.random.default_rng(seed).choice([-1, 1], (len(quaternions), 1))


def turns(vectors):
    return np.array([quaternion(vector) for vector in vectors])


@given(st.integers(0, 10_000))
def test_distances_are_the_angles_of_the_rotations_between(seed):
    one, other = (Rotation.random(5, random_state=seed + offset) for offset in (0, 20_000))
    found = rotation_distances(
        with_signs(np.roll(one.as_quat(), 1, axis=1), seed), with_signs(np.roll(other.as_quat(), 1, axis=1), seed + 1)
    )
    expected = [[(second.inv() * first).magnitude() for second in other] for first in one]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-7, 1e-3, np.pi - 1e-3, np.pi - 1e-7, np.pi])
def test_small_and_half_turns_are_exact(angle):
    base = Rotation.random(random_state=3)
    axis = np.array([2.0, -1, 2]) / 3
    first, second = (np.roll(part.as_quat(), 1)[None] for part in (base, base * Rotation.from_rotvec(angle * axis)))
    assert rotation_angles(quaternion(angle * axis)) == pytest.approx(angle, rel=1e-12, abs=1e-15)
    for sign in (1, -1):
        assert rotation_distances(first, sign * second)[0, 0] == pytest.approx(angle, abs=4e-16 + 1e-12 * angle)


@given(st.floats(-np.pi + 1e-6, np.pi - 1e-6), st.floats(-np.pi + 1e-6, np.pi - 1e-6), st.sampled_from([-1, 1]))
def test_a_hinge_compares_angles_and_does_not_go_the_other_way_round(one, other, sign):
    axis = np.array([2.0, -1, 2]) / 3
    first, second = sign * turns([one * axis]), turns([other * axis])
    assert hinge_angles(first, axis)[0] == pytest.approx(one, abs=1e-12)
    observed = np.concatenate([REST[None], second, first])
    apart = rotation_distances(first, observed, axis)[0]
    np.testing.assert_allclose(apart, [abs(one), abs(one - other), 0], atol=1e-12)


@pytest.mark.parametrize(
    ("observed", "angle", "expected"),
    [
        ((-100, 100), 100, (100, 200, 0)),
        ((-100, 100), -100, (100, 0, 200)),
        ((-100, 100), 179, (179, 279, 79)),
        ((-100, 100), -179, (179, 79, 279)),
        ((170,), 185, (185, 15)),
        ((170,), 264, (264, 94)),
        ((170,), 266, (94, 264)),
        ((-150, -40), -200, (200, 50, 160)),
        ((90, 180, -90), 200, (200, 110, 20, 290)),
        ((), 179, (179,)),
        ((), -179, (179,)),
    ],
)
def test_the_ends_of_a_hinge_are_far_from_what_is_observed(observed, angle, expected):
    axis = np.array([0.6, 0.0, -0.8])
    centers = turns(np.radians([0, *observed])[:, None] * axis)
    found = rotation_distances(turns([np.radians(angle) * axis]), centers, axis)[0]
    np.testing.assert_allclose(np.degrees(found), expected, atol=1e-9)


def test_a_turn_about_another_axis_is_no_angle_of_the_hinge():
    axis = np.array([0.0, 0, 1])
    np.testing.assert_allclose(hinge_angles(turns([[1, 0, 0], [0, -2, 0]]), axis), 0, atol=1e-15)


@given(st.integers(0, 10_000))
def test_hinges_are_recognised(seed):
    random = np.random.default_rng(seed)
    axis = random_turns(seed, 1, 1)[0]
    axis /= np.linalg.norm(axis)
    angles = random.uniform(0.01, 3.1, 6) * random.choice([-1, 1], 6)
    found = hinge_axis(with_signs(turns(angles[:, None] * axis), seed))
    np.testing.assert_allclose(np.abs(found @ axis), 1, atol=1e-12)
    strayed = angles[:, None] * axis
    strayed[2] = Rotation.from_rotvec(0.05 * np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])).apply(1.5 * axis)
    assert hinge_axis(turns(strayed)) is None


def test_one_rotation_is_a_hinge_whichever_sign():
    for sign in (1, -1):
        np.testing.assert_allclose(np.abs(hinge_axis(sign * turns([[0, 0, 2.5]]))), [0, 0, 1], atol=1e-15)


def space_of(vectors, axis=None, radius=RADIUS):
    return PoseSpace(np.concatenate([REST[None], turns(vectors)]), axis, radius)


HINGE = np.array([0, 0.6, 0.8])


@pytest.mark.parametrize("hinge", [True, False])
def test_interpolation_meets_every_observation_and_rest(hinge):
    vectors = np.linspace(-2.8, 2.9, 6)[:, None] * HINGE if hinge else random_turns(3, 12, 2.5)
    space = space_of(vectors, HINGE if hinge else None)
    turned = space.centers[1:, 1:]
    values = np.column_stack([np.sin(turned @ [1, 2, 3]), turned[:, 1] * turned[:, 2], np.ones(len(turned))])
    weights = space.weights(values)
    signed = with_signs(space.centers, 1)
    np.testing.assert_allclose(space.features(signed)[1:] @ weights, values, atol=2e-3)
    np.testing.assert_allclose(space.features(signed)[0] @ weights, 0, atol=1e-8)
    # The same functions: those that are zero at rest.
    more = turns(random_turns(4, 10, 3.0))
    np.testing.assert_allclose(space.tied_features(more) @ weights[1:], space.features(more) @ weights, atol=1e-8)


@pytest.mark.parametrize("hinge", [True, False])
def test_quadratic_functions_are_met_at_unseen_rotations(hinge):
    """Two functions of a hinge, nine of a ball are zero at rest."""
    vectors = np.radians([-100, 100, 50])[:, None] * HINGE if hinge else shell_turns(24, -np.ones(3), np.ones(3))
    space = space_of(vectors, HINGE if hinge else None)

    def quadratic(quaternions):
        w, x, y, z = quaternions.T
        return np.column_stack([w * y, x * x + z * z - 2 * y * y, y * z + w * z])

    unseen = turns(np.linspace(-1.4, 1.7, 9)[:, None] * HINGE if hinge else random_turns(6, 40, 0.9))
    found = space.features(unseen) @ space.weights(quadratic(space.centers[1:]))
    expected = quadratic(unseen)
    assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)


@given(st.integers(0, 10_000), st.integers(1, 40), st.floats(0.05, 100.0))
@settings(deadline=None)
def test_the_covariance_is_positive_definite_whatever_the_radius(seed, count, radius):
    """Also with examples at one place, and half turns."""
    vectors = random_turns(seed, count, np.pi)
    space = space_of(np.concatenate([vectors, vectors[:1], np.pi * np.eye(3)]), None, radius)
    assert np.linalg.eigvalsh(space.covariance()).min() > 0
    hinge = space_of(np.linspace(-3, 3, count)[:, None] * HINGE, HINGE, radius)
    assert np.linalg.eigvalsh(hinge.covariance()).min() > 0


@pytest.mark.parametrize(("kind", "dimension", "count"), [("hinge", 1, 3), ("two axes", 2, 6), ("ball", 3, 10)])
def test_the_number_of_components_follows_from_how_a_joint_turns(kind, dimension, count):
    vectors = random_turns(7, 12, 2.0) * {"hinge": (1, 0, 0), "two axes": (1, 0, 1), "ball": (1, 1, 1)}[kind]
    space = space_of(vectors, np.array([1.0, 0, 0]) if kind == "hinge" else None)
    assert (space.dimension, space.natural_count) == (dimension, count)


def test_samples_are_all_over_the_range():
    hinge = space_of(np.array([[-0.5], [1.5]]) * HINGE, HINGE)
    np.testing.assert_allclose(np.sort(hinge_angles(hinge.samples(5), HINGE)), np.linspace(-0.5, 1.5, 5), atol=1e-12)
    beyond = hinge_angles(hinge.samples(5, 0.5), HINGE)
    np.testing.assert_allclose(np.sort(beyond), np.linspace(-1, 2, 5), atol=1e-12)
    ball = space_of(np.concatenate([1.6 * np.eye(3), -1.6 * np.eye(3)]))
    samples = ball.samples(2000)
    np.testing.assert_allclose(np.linalg.norm(samples, axis=1), 1)
    assert rotation_angles(samples).max() <= 1.6 + 1e-12
    # In all directions.
    assert np.all(np.sign(samples[:, 1:]).mean(axis=0) < 0.1)
    assert rotation_angles(ball.samples(2000, 0.3)).max() > 1.7
    np.testing.assert_array_equal(ball.samples(10, seed=1), ball.samples(10, seed=1))
