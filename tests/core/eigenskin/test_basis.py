# SPDX-License-Identifier: GPL-3.0-or-later
"""Eigendisplacements against numpy's singular value decomposition, and how many each support keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.eigenskin.basis import component_counts, eigendisplacements


def observations(seed, count, vertices, rank):
    random = np.random.default_rng(seed)
    shapes = random.normal(size=(rank, vertices * 3)) * 10.0 ** -np.arange(rank)[:, None]
    return (random.normal(size=(count, rank)) @ shapes).reshape(count, vertices, 3)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 30), st.integers(1, 4))
@settings(deadline=None)
def test_an_orthonormal_basis_that_is_the_best_of_its_size(seed, count, vertices, rank):
    displacements = observations(seed, count, vertices, rank)
    basis = eigendisplacements(displacements)
    rows = displacements.reshape(count, -1)
    vectors = basis.vectors.reshape(len(basis.singular_values), -1)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-12)
    # The Gram matrix' rounding, magnified by the square of the smallest value that is kept.
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(vectors)), atol=1e-5)
    expected = np.linalg.svd(rows, compute_uv=False)
    np.testing.assert_allclose(
        basis.singular_values, expected[: len(vectors)], rtol=1e-6, atol=1e-7 * max(expected[0], 1e-300)
    )
    for kept in range(len(vectors) + 1):
        left = rows - basis.coordinates[:, :kept] @ vectors[:kept]
        optimum = np.linalg.norm(expected[kept:])
        assert np.linalg.norm(left) <= optimum * (1 + 1e-6) + 1e-5 * expected[0]
    np.testing.assert_allclose(basis.coordinates, rows @ vectors.T, atol=1e-6 * expected[0])


def test_predictions_in_place_of_the_observations():
    displacements = observations(3, 6, 20, 4)
    prediction = np.random.default_rng(4).normal(size=(200, 6))
    basis = eigendisplacements(displacements, prediction)
    predicted = np.tensordot(prediction, displacements, axes=1).reshape(200, -1)
    expected = np.linalg.svd(predicted, compute_uv=False)[:4] * np.sqrt(6 / 200)
    np.testing.assert_allclose(basis.singular_values, expected, rtol=1e-6)
    vectors = basis.vectors.reshape(4, -1)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-8)
    left = predicted - predicted @ vectors[:2].T @ vectors[:2]
    assert np.linalg.norm(left) * np.sqrt(6 / 200) == pytest.approx(np.linalg.norm(expected[2:]), rel=1e-6)
    np.testing.assert_allclose(basis.coordinates, displacements.reshape(6, -1) @ vectors.T, atol=1e-9)


def test_the_largest_observation_of_a_component_is_positive():
    displacements = observations(3, 8, 20, 4)
    for sign in (1, -1):
        coordinates = eigendisplacements(sign * displacements).coordinates
        assert np.all(coordinates.max(axis=0) >= -coordinates.min(axis=0))


@pytest.mark.parametrize("shape", [(3, 0, 3), (3, 5, 3)])
def test_nothing_to_decompose(shape):
    basis = eigendisplacements(np.zeros(shape))
    assert basis.singular_values.shape == (0,)
    assert basis.vectors.shape == (0, shape[1], 3)
    assert basis.coordinates.shape == (shape[0], 0)


def test_equally_many_components_or_the_largest_within_a_budget():
    values = [np.array([9.0, 3, 1]), np.array([8.0]), np.array([4.0, 3.5, 3.4, 0.1])]
    np.testing.assert_array_equal(component_counts(values, 2), [2, 1, 2])
    np.testing.assert_array_equal(component_counts(values, 2, budget=4), [1, 1, 2])
    np.testing.assert_array_equal(component_counts(values, 2, budget=100), [3, 1, 4])
    np.testing.assert_array_equal(component_counts([], 2, budget=4), [])
