# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core import quaternions


def random_rotations(seed, shape):
    """(*shape, 3, 3)."""
    return Rotation.random(int(np.prod(shape)), random_state=seed).as_matrix().reshape(*shape, 3, 3)


@given(st.integers(0, 10_000))
def test_matrices_come_back(seed):
    matrices = random_rotations(seed, (5, 4))
    result = quaternions.from_matrices(matrices)
    assert np.allclose(np.linalg.norm(result, axis=-1), 1, atol=1e-15)
    assert np.allclose(quaternions.to_matrices(result), matrices, atol=1e-14)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8), (0.36, 0.48, 0.8)])
def test_half_turns_and_nearly_half_turns(axis):
    for angle in (np.pi, np.pi - 1e-9, np.pi + 1e-9):
        matrix = Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
        assert np.allclose(quaternions.to_matrices(quaternions.from_matrices(matrix)), matrix, atol=1e-15)


def test_the_product_is_the_product_of_the_matrices():
    a, b = random_rotations(0, (20,)), random_rotations(1, (20,))
    product = quaternions.product(quaternions.from_matrices(a), quaternions.from_matrices(b))
    assert np.allclose(quaternions.to_matrices(product), a @ b, atol=1e-14)
    inverse = quaternions.conjugate(quaternions.from_matrices(a))
    assert np.allclose(quaternions.to_matrices(inverse), a.swapaxes(-1, -2), atol=1e-14)


def test_hemispheres_follow_a_turn_beyond_one_revolution():
    angles = np.linspace(0, 6 * np.pi, 60)
    turning = quaternions.from_matrices(Rotation.from_rotvec(angles[:, None] * [0, 0.6, 0.8]).as_matrix())
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(60, 1))
    result = quaternions.same_hemisphere(turning * signs)
    assert result[0, 0] > 0
    assert np.all(np.einsum("fi,fi->f", result[1:], result[:-1]) > 0.9)
    assert np.allclose(result[:, 0], np.cos(angles / 2), atol=1e-14)


def test_halfway_goes_the_shorter_way():
    quarter = quaternions.from_matrices(Rotation.from_rotvec([0, 0, np.pi / 2]).as_matrix())
    eighth = quaternions.from_matrices(Rotation.from_rotvec([0, 0, np.pi / 4]).as_matrix())
    still = np.array([1.0, 0, 0, 0])
    for sign in (1, -1):
        assert np.allclose(quaternions.halfway(still, sign * quarter), eighth, atol=1e-15)
