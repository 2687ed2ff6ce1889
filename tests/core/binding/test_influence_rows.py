# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of influences: no bone twice, at most K, sums of 1, locked bones as they were."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skinning_tools.core.binding.influence_rows import matrix_influences, tidy_influences
from skinning_tools.core.errors import BadSettings

from ..skinned_shapes import dense


def rows(seed, count=40, bone_count=6, slots=5):
    random = np.random.default_rng(seed)
    bones = random.integers(0, bone_count, (count, slots))
    weights = random.dirichlet(np.ones(slots), count) * (random.random((count, slots)) < 0.8)
    weights[:, 0] += 0.01
    return bones, weights / weights.sum(axis=1, keepdims=True)


def assert_tidy(bones, weights, most):
    assert bones.dtype == np.int32
    assert bones.shape[1] <= most
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    assert (np.diff(weights, axis=1) <= 0).all()
    for row, values in zip(bones, weights, strict=True):
        used = row[values > 0]
        assert len(set(used)) == len(used)
        assert set(row[values == 0]) <= {row[0]}


@given(st.integers(0, 10_000), st.integers(1, 7))
@settings(deadline=None, max_examples=40)
def test_the_strongest_stay(seed, most):
    bones, weights = rows(seed)
    result = tidy_influences(bones, weights, most)
    assert_tidy(*result, most)
    whole = dense(bones, weights, 6)
    cut = np.where(np.argsort(np.argsort(-whole, axis=1), axis=1) < most, whole, 0)
    np.testing.assert_allclose(dense(*result, 6), cut / cut.sum(axis=1, keepdims=True), atol=1e-12)
    same = matrix_influences(sparse.csr_matrix(whole), most)
    np.testing.assert_allclose(dense(*same, 6), dense(*result, 6), atol=1e-12)
    assert same[0].shape == (40, min(most, 6))


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_locked_bones_keep_their_weights(seed):
    bones, weights = rows(seed, slots=4)
    locked = np.array([True, False, False, True, False, False])
    whole = dense(bones, weights, 6)
    bones, weights = tidy_influences(bones, weights, 3, locked)
    assert_tidy(bones, weights, 3)
    result = dense(bones, weights, 6)
    has_others = (whole[:, ~locked] > 0).any(axis=1)
    np.testing.assert_allclose(result[has_others][:, locked], whole[has_others][:, locked], atol=1e-12)


def test_where_all_are_locked_and_too_many_the_weakest_goes():
    bones, weights = tidy_influences([[0, 1, 2]], [[0.2, 0.5, 0.3]], 2, np.ones(3, bool))
    np.testing.assert_array_equal(bones, [[1, 2]])
    np.testing.assert_allclose(weights, [[0.625, 0.375]])


def test_rows_without_weights_stay_empty():
    bones, weights = tidy_influences([[3, 1]], [[0.0, 0.0]], 4)
    assert not weights.any()
    assert bones.shape == (1, 2)
    bones, weights = matrix_influences(sparse.csr_matrix((2, 5)), 3)
    assert bones.shape == weights.shape == (2, 3)
    assert not weights.any()


def test_ties_are_decided_by_bone_not_by_slot():
    """The two sides of a seam may name the same bones in another order."""
    first = tidy_influences([[4, 2, 7]], [[1 / 3] * 3], 2)
    second = tidy_influences([[7, 4, 2]], [[1 / 3] * 3], 2)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[0], [[2, 4]])


def test_no_vertices():
    bones, weights = tidy_influences(np.zeros((0, 4), int), np.zeros((0, 4)), 2)
    assert bones.shape == weights.shape == (0, 2)


def test_a_limit_below_one_is_refused():
    with pytest.raises(BadSettings, match="at least 1"):
        tidy_influences([[0]], [[1.0]], 0)
