# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.rotations import nearest_rotations, polar_decomposition, right_handed


def assert_polar(linear, rotations, stretches):
    size = max(np.abs(linear).max(), 1e-30)
    np.testing.assert_allclose(rotations @ stretches, linear, atol=1e-12 * size)
    np.testing.assert_allclose(stretches, np.swapaxes(stretches, -1, -2), atol=1e-12 * size)
    np.testing.assert_allclose(
        rotations @ np.swapaxes(rotations, -1, -2), np.broadcast_to(np.eye(3), linear.shape), atol=1e-12
    )
    assert np.linalg.det(rotations).min() > 0


@given(st.integers(0, 10_000), st.floats(-6, 6))
@settings(deadline=None, max_examples=60)
def test_factors_are_a_rotation_and_a_positive_stretch(seed, magnitude):
    linear = np.random.default_rng(seed).normal(size=(20, 3, 3)) * 10.0**magnitude
    rotations, stretches = polar_decomposition(linear)
    assert_polar(linear, rotations, stretches)
    signs = np.linalg.eigvalsh(stretches) * np.sign(np.linalg.det(linear))[:, None]
    assert signs.min() > 0


def test_rotations_are_kept():
    turns = Rotation.random(50, random_state=0).as_matrix()
    rotations, stretches = polar_decomposition(turns)
    np.testing.assert_allclose(rotations, turns, atol=1e-14)
    np.testing.assert_allclose(stretches, np.tile(np.eye(3), (50, 1, 1)), atol=1e-14)


@pytest.mark.parametrize("scale", [(1, 1, 0), (0, 2, 2), (1, 0, 0), (0, 0, 0), (1, -1, 0)])
def test_flattening_maps(scale):
    turns = Rotation.random(20, random_state=1).as_matrix()
    linear = turns @ np.diag(np.array(scale, float))
    rotations, stretches = polar_decomposition(linear)
    assert_polar(linear, rotations, stretches)
    if scale == (1, 1, 0):
        np.testing.assert_allclose(rotations, turns, atol=1e-12)


def test_flattened_bones_in_single_precision_do_not_mirror():
    turns = Rotation.random(200, random_state=2).as_matrix()
    linear = (turns @ np.diag([1.0, 2.0, 0.0])).astype(np.float32)
    rotations, _ = polar_decomposition(linear)
    np.testing.assert_allclose(rotations, turns, atol=1e-5)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_no_rotation_is_nearer_than_the_nearest(seed):
    linear = np.random.default_rng(seed).normal(size=(8, 3, 3))
    nearest = nearest_rotations(linear)
    np.testing.assert_allclose(
        nearest @ np.swapaxes(nearest, -1, -2), np.broadcast_to(np.eye(3), linear.shape), atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(nearest), 1.0)
    small_turns = Rotation.from_rotvec(np.random.default_rng(seed).normal(scale=0.1, size=(30, 3))).as_matrix()
    others = np.concatenate(
        [Rotation.random(30, random_state=seed).as_matrix()[:, None] @ nearest, small_turns[:, None] @ nearest]
    )
    distance = np.linalg.norm(nearest - linear, axis=(-2, -1))
    assert (np.linalg.norm(others - linear, axis=(-2, -1)) >= distance - 1e-12).all()


@pytest.mark.parametrize(
    "scale",
    [
        *((3, 2, 1), (1, 1, 1), (1, 0.1, 0.02), (1, 1e-3, 1e-4), (1, 0.5, 0), (1, 0.5, -0.2)),
        *((1e-9, 2e-9, 1e-9), (1e-160, 2e-160, 1e-160)),
    ],
)
def test_many_are_as_near_as_few(scale):
    """A closed form for many, singular values where it is not exact and for few."""
    left, right = (Rotation.random(100, random_state=seed).as_matrix() for seed in (3, 4))
    linear = left @ (np.array(scale, float)[:, None] * right)
    few = np.concatenate([nearest_rotations(part) for part in np.split(linear, 10)])
    np.testing.assert_allclose(nearest_rotations(linear), few, atol=1e-8)


def test_many_that_leave_the_rotation_open():
    rotations = nearest_rotations(np.zeros((100, 3, 3)))
    np.testing.assert_allclose(rotations @ np.swapaxes(rotations, 1, 2), np.tile(np.eye(3), (100, 1, 1)), atol=1e-12)


def test_left_handed_axes_lose_the_sign_of_the_last():
    axes = Rotation.random(5, random_state=3).as_matrix()
    np.testing.assert_array_equal(right_handed(axes), axes)
    np.testing.assert_array_equal(right_handed(axes * [1, 1, -1]), axes)
