# SPDX-License-Identifier: GPL-3.0-or-later
"""Dimensionality reduction: Algorithm 1 of Kavan et al. 2010 and the exact one."""

import numpy as np
import pytest

from skinning_tools.core.decomposition.reduction import STRATEGIES, AnimationMatrix, reduce_animation
from skinning_tools.core.errors import BadSettings, Cancelled

from .sequences import boxes


@pytest.fixture(scope="module")
def matrix():
    return AnimationMatrix(boxes(count=12, frames=14, motion="affine")[0].astype(np.float32))


@pytest.fixture
def long_matrix(monkeypatch):
    monkeypatch.setattr("skinning_tools.core.decomposition.reduction.LARGEST_GRAM", 10)
    return AnimationMatrix(boxes(count=60, frames=40, motion="affine")[0].astype(np.float32))


def residual(matrix, reduction):
    return np.linalg.norm(matrix.rows(slice(None)) - reduction.coefficients @ reduction.basis.T)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("per_element", [0.05, 0.0005])
def test_error_is_within_epsilon_and_the_basis_orthonormal(matrix, strategy, per_element):
    reduction = reduce_animation(matrix, per_element, strategy)
    epsilon = per_element * np.sqrt(matrix.height * matrix.vertex_count)
    assert residual(matrix, reduction) <= epsilon * (1 + 1e-9)
    # The stabilisation step keeps it this orthogonal (figure 4 of the paper, right).
    np.testing.assert_allclose(reduction.basis.T @ reduction.basis, np.eye(reduction.dimension), atol=1e-14)
    assert reduction.lost == pytest.approx(residual(matrix, reduction) ** 2, rel=1e-6, abs=1e-12)


def test_without_line_5_the_basis_is_less_orthogonal(matrix):
    """Figure 4 of the paper."""
    errors = []
    for stabilize in (True, False):
        basis = reduce_animation(matrix, 5e-4, "MAXIMUM_NORM", stabilize=stabilize).basis
        errors.append(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max())
    assert errors[0] < 1e-14
    assert errors[1] > 10 * errors[0]


def test_dimensions_are_ordered_as_in_table_1(matrix):
    d = {strategy: reduce_animation(matrix, 0.01, strategy).dimension for strategy in STRATEGIES}
    assert d["EXACT"] <= d["POWER_2"] <= d["POWER_1"] <= d["MAXIMUM_NORM"] <= d["GRAM_SCHMIDT"]


def test_exact_is_the_truncated_singular_value_decomposition(matrix):
    values = np.linalg.svd(matrix.rows(slice(None)), compute_uv=False)
    epsilon = 0.01 * np.sqrt(matrix.height * matrix.vertex_count)
    smallest = next(d for d in range(len(values)) if np.sqrt(np.sum(values[d:] ** 2)) <= epsilon)
    assert reduce_animation(matrix, 0.01).dimension == smallest


@pytest.mark.parametrize("per_element", [0.05, 0.0005])
@pytest.mark.parametrize("few", [0, 5, 120])
def test_long_animations_take_the_range_finder_and_keep_the_bound(long_matrix, per_element, few, monkeypatch):
    """Whether or not a few vertices, which its basis starts with, move in all directions of the others."""
    size = 4 * long_matrix.height * few
    monkeypatch.setattr("skinning_tools.core.decomposition.reduction._SAMPLE_BYTES", size)
    reduction = reduce_animation(long_matrix, per_element)
    epsilon = per_element * np.sqrt(long_matrix.height * long_matrix.vertex_count)
    assert residual(long_matrix, reduction) <= epsilon * (1 + 1e-9)
    np.testing.assert_allclose(reduction.basis.T @ reduction.basis, np.eye(reduction.dimension), atol=1e-12)
    values = np.linalg.svd(long_matrix.rows(slice(None)), compute_uv=False)
    smallest = next(d for d in range(len(values)) if np.sqrt(np.sum(values[d:] ** 2)) <= epsilon)
    assert smallest <= reduction.dimension <= smallest + 3


def test_few_vertices_that_all_lie_in_one_place_give_no_directions(monkeypatch, capfd):
    """The two that move are not among them; BLAS would complain of products without columns."""
    monkeypatch.setattr("skinning_tools.core.decomposition.reduction.LARGEST_GRAM", 10)
    monkeypatch.setattr("skinning_tools.core.decomposition.reduction._SAMPLE_BYTES", 4 * 3 * 20 * 5)
    frames = np.zeros((20, 100, 3))
    frames[:, :2] = np.random.default_rng(0).normal(size=(20, 1, 3)) * [[[1.0], [-1.0]]]
    matrix = AnimationMatrix(frames)
    reduction = reduce_animation(matrix, 5e-4)
    assert reduction.dimension == 1
    assert residual(matrix, reduction) < 1e-12
    assert capfd.readouterr() == ("", "")


def test_animation_of_low_rank_is_reduced_to_it():
    frames = boxes(count=1, frames=12)[0].astype(np.float32)
    # One rigid box moves in the span of its three axes.
    assert reduce_animation(AnimationMatrix(frames), 1e-5).dimension == 3


def test_solver_units_and_back():
    frames = boxes(count=3, frames=4)[0].astype(np.float32) + np.float32(50)
    matrix = AnimationMatrix(frames)
    random = np.random.default_rng(0)
    rest, transforms = random.normal(size=(24, 3)), random.normal(size=(4, 5, 3, 4))
    inside = matrix.from_object_space(rest, transforms)
    back = matrix.to_object_space(*inside)
    np.testing.assert_allclose(back[0], rest, atol=1e-12)
    np.testing.assert_allclose(back[1], transforms, atol=1e-12)
    # Both sides say the same: a bone moves a point alike in either space.
    moved = transforms[2, 1] @ [*rest[7], 1]
    moved_inside = inside[1][2, 1] @ [*inside[0][7], 1]
    np.testing.assert_allclose(moved_inside * matrix.radius + matrix.means[2], moved, atol=1e-12)


def test_place_and_motion_of_the_whole_do_not_matter():
    # Rounded so that float32 holds the moved positions exactly.
    frames = np.round(boxes(count=3, frames=4)[0] * 1024) / 1024
    rows = AnimationMatrix(frames.astype(np.float32)).rows(slice(None))
    moved = frames + 1024 + 32.0 * np.arange(4)[:, None, None]
    np.testing.assert_allclose(AnimationMatrix(moved.astype(np.float32)).rows(slice(None)), rows, atol=1e-12)


def test_rows_are_the_columns_of_the_matrix_in_blocks(monkeypatch):
    frames = boxes(count=3, frames=4)[0].astype(np.float32)
    matrix = AnimationMatrix(frames)
    monkeypatch.setattr("skinning_tools.core.decomposition.reduction._BLOCK_BYTES", 1000)
    gathered = np.vstack([rows for _, rows in matrix.blocks()])
    expected = ((frames - matrix.means[:, None]) / matrix.radius).transpose(1, 0, 2).reshape(24, 12)
    np.testing.assert_allclose(gathered, expected)
    assert matrix.squared_norm == pytest.approx(np.sum(expected**2))


def test_unknown_strategy_is_refused(matrix):
    with pytest.raises(BadSettings, match="MAXIMUM_NORM"):
        reduce_animation(matrix, 0.1, "BEST")


@pytest.mark.parametrize("strategy", ["EXACT", "MAXIMUM_NORM"])
def test_cancel(matrix, strategy):
    with pytest.raises(Cancelled):
        reduce_animation(matrix, 1e-4, strategy, progress=lambda fraction, stage: False)
