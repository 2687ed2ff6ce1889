# SPDX-License-Identifier: GPL-3.0-or-later
"""Distances between rotations against scipy's, hinges, and the radial basis over both."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.eigenskin import PoseSpace, hinge_angles, rotation_angles, rotation_distances
from skinning_tools.core.eigenskin.interpolation import automatic_radius, basis_weights, usable_radius
from skinning_tools.core.eigenskin.pose_space import REST, SAME_ROTATION, hinge_axis

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


@given(st.integers(0, 10_000), st.integers(2, 20), st.floats(0.1, 2.0), st.booleans())
def test_interpolation_meets_every_observation(seed, count, radius, hinge):
    vectors = random_turns(seed, count, 3.0)
    if hinge:
        vectors = np.linspace(-2.8, 2.9, count)[:, None] * [0, 0.6, 0.8]
    centers = np.concatenate([REST[None], turns(vectors)])
    axis = np.array([0, 0.6, 0.8]) if hinge else None
    distances = rotation_distances(centers, centers, axis)
    apart = distances[~np.eye(len(distances), dtype=bool)].min()
    if apart <= SAME_ROTATION:
        return
    space = PoseSpace(centers, axis, usable_radius(distances, radius))
    values = np.random.default_rng(seed).normal(size=(len(centers), 3))
    weights = basis_weights(distances, values, space.radius)
    np.testing.assert_allclose(space.features(with_signs(centers, seed)) @ weights, values, atol=1e-9)
    tied = space.tied_features(centers)
    np.testing.assert_allclose(tied[0], 0, atol=1e-15)
    # The same functions: those that are zero at rest.
    values[0] = 0
    weights = basis_weights(distances, values, space.radius)
    more = turns(random_turns(seed + 1, 10, 3.0))
    np.testing.assert_allclose(space.tied_features(more) @ weights[1:], space.features(more) @ weights, atol=1e-9)


def test_a_radius_that_cannot_tell_observations_apart_gives_way():
    """Over all rotations the basis is positive definite for small radii only."""
    corners = np.array(
        [[w, x, y, z] for w in (0, 1) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], float
    )
    corners = corners[np.any(corners != 0, axis=1)]
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    distances = rotation_distances(corners, corners)
    kept = [row for row in range(len(corners)) if not (distances[row, :row] < 1e-6).any()]
    distances = distances[np.ix_(kept, kept)]
    assert np.linalg.eigvalsh(np.exp(-distances / 30.0))[0] < 0
    radius = usable_radius(distances, 30.0)
    assert 0 < radius < 30
    assert np.linalg.eigvalsh(np.exp(-distances / radius))[0] > 0
    assert usable_radius(distances, 1.0) == 1.0


def test_the_automatic_radius_grows_with_the_spacing_up_to_a_bound():
    def spaced(angles):
        return np.abs(np.subtract.outer(angles, angles))

    assert automatic_radius(spaced(np.array([0, 0.2, 0.4]))) == pytest.approx(0.4)
    assert automatic_radius(spaced(np.array([0, 0.2, 0.4])), scattered=True) == pytest.approx(0.8)
    assert automatic_radius(spaced(np.array([0, 3.0]))) == automatic_radius(spaced(np.array([0, 2.0])))
