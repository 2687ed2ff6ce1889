# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights in whole steps: exact sums, bounded errors, and their effect on an animation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.binding.compression import STEPS, bytes_per_vertex, compress_weights, positional_error
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadSettings, Cancelled

from ..skinned_shapes import dense


def rows(seed, count=200, bone_count=9, influences=5):
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(count)], np.int32)
    weights = random.dirichlet(np.full(influences, 0.6), count)
    weights[random.random(weights.shape) < 0.2] = 0
    weights[:, 0] += 1e-3
    return bones, weights / weights.sum(axis=1, keepdims=True)


@given(st.integers(0, 10_000), st.sampled_from([8, 16]), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_sums_are_exact_and_weights_within_their_bound(seed, bits, influences):
    bones, weights = rows(seed, influences=influences)
    result = compress_weights(bones, weights, bits=bits, max_influences=5)
    assert result.steps.dtype == (np.uint8 if bits == 8 else np.uint16)
    np.testing.assert_array_equal(result.steps.sum(axis=1, dtype=int), STEPS[bits])
    assert (result.weights.sum(axis=1) == 1).all() or np.abs(result.weights.sum(axis=1) - 1).max() < 1e-15
    errors = np.abs(dense(result.bones, result.weights, 9) - dense(bones, weights, 9)).max(axis=1)
    used = np.count_nonzero(weights, axis=1)
    assert (errors <= (1 - 1 / used) / STEPS[bits] + 1e-12).all()
    assert result.largest_error == pytest.approx(errors.max(), abs=1e-12)
    assert (np.diff(result.steps.astype(int), axis=1) <= 0).all()
    for row, steps in zip(result.bones, result.steps, strict=True):
        assert len(set(row[steps > 0])) == (steps > 0).sum()
        assert set(row[steps == 0]) <= {row[0]}


def test_two_influences_are_within_the_chapters_two_thousandths():
    """0.5/256 = 0.00195; the weights of vertices with at most two bones, 95 % of a character, are."""
    first = np.linspace(0, 1, 20_001)
    bones = np.tile(np.array([[0, 1]]), (len(first), 1))
    result = compress_weights(bones, np.column_stack([first, 1 - first]))
    assert result.largest_error <= 0.5 / 255 + 1e-12


def test_the_bound_of_more_influences_is_reached():
    """With exact sums, the remainders of an even split cannot be placed better."""
    for influences in (2, 3, 4):
        start = np.floor(255 / influences) + 1 / influences
        weights = np.full(influences, start)
        weights[0] += 255 - weights.sum()
        result = compress_weights(np.arange(influences)[None], weights[None] / 255)
        assert result.largest_error <= (1 - 1 / influences) / 255 + 1e-12
        if influences > 2:
            assert result.largest_error > 0.5 / 255


def test_weights_below_the_threshold_are_removed_except_the_strongest():
    bones = np.array([[0, 1, 2], [3, 4, 5]])
    weights = np.array([[0.9, 0.06, 0.04], [0.4, 0.3, 0.3]])
    result = compress_weights(bones, weights, threshold=0.05)
    assert set(result.bones[0][result.steps[0] > 0]) == {0, 1}
    result = compress_weights(bones, weights, threshold=0.5)
    np.testing.assert_array_equal(result.steps[:, 0], 255)
    np.testing.assert_array_equal(result.bones[:, 0], [0, 3])


def test_the_limit_keeps_the_strongest():
    bones, weights = rows(3)
    result = compress_weights(bones, weights, max_influences=2)
    assert result.bones.shape == (200, 2)
    np.testing.assert_array_equal(result.bones[:, 0], bones[np.arange(200), np.argmax(weights, axis=1)])


def test_rounding_is_the_same_on_both_sides_of_a_seam():
    bones, weights = rows(5)
    turned = compress_weights(bones[:, ::-1], weights[:, ::-1])
    result = compress_weights(bones, weights)
    np.testing.assert_array_equal(turned.steps, result.steps)
    np.testing.assert_array_equal(turned.bones, result.bones)


def test_rows_without_weights_stay_empty():
    result = compress_weights(np.array([[0, 1], [0, 1]]), np.array([[0.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_array_equal(result.steps.sum(axis=1, dtype=int), [0, 255])


def test_compressed_once_is_compressed():
    bones, weights = rows(8)
    once = compress_weights(bones, weights)
    twice = compress_weights(once.bones, once.weights)
    np.testing.assert_array_equal(twice.steps, once.steps)
    np.testing.assert_array_equal(twice.bones, once.bones)


def test_bytes_are_those_of_the_chapter():
    assert bytes_per_vertex(4, 8, 163) == 7
    assert bytes_per_vertex(4, 8, 257) == 11
    assert bytes_per_vertex(4, 16, 163) == 10
    assert bytes_per_vertex(1, 8, 20) == 1


def test_the_positional_error_is_that_of_skinning():
    random = np.random.default_rng(2)
    bones, weights = rows(2)
    rest, matrices = random.normal(size=(200, 3)), random.normal(size=(3, 9, 3, 4))
    result = compress_weights(bones, weights)
    distances = np.array(
        [
            np.linalg.norm(
                skin_frame(rest, bones, weights, frame) - skin_frame(rest, result.bones, result.weights, frame), axis=1
            )
            for frame in matrices
        ]
    )
    error = positional_error(rest, (bones, weights), (result.bones, result.weights), matrices)
    assert error.largest == pytest.approx(distances.max())
    assert (error.frame, error.vertex) == np.unravel_index(np.argmax(distances), distances.shape)
    assert error.mean == pytest.approx(distances.mean())
    with pytest.raises(Cancelled):
        positional_error(rest, (bones, weights), (bones, weights), matrices, lambda share, stage: False)


def test_the_human_rig(shared_data):
    """Over its walk 8 bits move no vertex by more than two thousandths of the diagonal, and 16 bits 100 times less."""
    data = np.load(shared_data("human_rig.npz"))
    bones = data["influence_bones"].astype(np.int32)
    weights = data["influence_weights"].astype(float)
    weights /= weights.sum(axis=1, keepdims=True)
    rest = data["rest"].astype(float)
    errors = {}
    for bits in STEPS:
        result = compress_weights(bones, weights, bits=bits, max_influences=9)
        assert result.largest_error <= (1 - 1 / 9) / STEPS[bits] + 1e-12
        after = result.bones, result.weights
        errors[bits] = positional_error(rest, (bones, weights), after, data["walk_matrices"]).largest
    assert 0 < errors[8] < 0.002 * np.linalg.norm(np.ptp(rest, axis=0))
    assert errors[16] < errors[8] / 100


@pytest.mark.parametrize("wrong", [{"bits": 12}, {"threshold": 1.0}, {"threshold": -0.1}, {"max_influences": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(BadSettings):
        compress_weights(np.array([[0]]), np.array([[1.0]]), **wrong)
