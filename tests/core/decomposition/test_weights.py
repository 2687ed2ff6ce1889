# SPDX-License-Identifier: GPL-3.0-or-later
"""The convex fit, against the conditions that only its optimum fulfils."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.decomposition.weights import (
    closest_on_simplex,
    descend,
    fit_convex,
    fit_convex_general,
    solve_small,
)


def problem(size, dimension, count, seed, kind="random"):
    """Points (n, m, d) and data (n, d) and what the solvers take of them."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, size, dimension))
    if kind == "flat" and size > 2:
        points[:, -1] = 0.3 * points[:, 0] + 0.7 * points[:, 1]
    if kind == "twins" and size > 1:
        points[:, -1] = points[:, 0]
    if kind == "all one":
        points[:] = points[:, :1]
    data = random.normal(size=(count, dimension)) * random.choice([0.1, 1, 10])
    gram = np.einsum("nid,njd->ijn", points, points)
    return points, data, np.ascontiguousarray(gram), np.einsum("nid,nd->in", points, data)


def assert_optimal(points, data, weights):
    """Convex, and no bone would lower the error: the gradient of each is at least that of the blend (KKT)."""
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-12)
    blend = np.einsum("nid,in->nd", points, weights)
    gradient = np.einsum("nid,nd->ni", points, blend - data)
    level = np.einsum("in,ni->n", weights, gradient)
    size = np.einsum("nid,nid->n", points, points) + np.einsum("nd,nd->n", data, data)
    assert np.min((gradient - level[:, None]) / size[:, None]) > -1e-6


def assert_fits(fit, points, data, gram, products) -> None:
    """The weights that ``fit`` finds are the best, and its cost is what they leave but for a constant."""
    weights, cost = fit(gram, products)
    assert_optimal(points, data, weights)
    blend = np.einsum("nid,in->nd", points, weights)
    expected = np.sum((blend - data) ** 2, axis=1) - np.sum(data**2, axis=1)
    np.testing.assert_allclose(cost, expected, atol=1e-9 * (1 + np.abs(expected).max()))


kinds = st.sampled_from(["random", "flat", "twins", "all one"])


@given(st.integers(1, 4), st.integers(1, 7), st.integers(0, 10_000), kinds)
@settings(deadline=None, max_examples=150)
def test_closest_point_on_a_simplex_is_the_optimum(size, dimension, seed, kind):
    assert_fits(closest_on_simplex, *problem(size, dimension, 40, seed, kind))


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 10_000), kinds)
@settings(deadline=None, max_examples=100)
def test_general_fit_is_the_optimum(size, dimension, seed, kind):
    assert_fits(fit_convex_general, *problem(size, dimension, 40, seed, kind))


@given(st.integers(2, 4), st.integers(3, 9), st.integers(0, 10_000))
@settings(deadline=None, max_examples=50)
def test_both_solvers_agree(size, dimension, seed):
    _, _, gram, products = problem(size, dimension, 30, seed)
    np.testing.assert_allclose(closest_on_simplex(gram, products)[1], fit_convex_general(gram, products)[1], atol=1e-7)


def test_data_inside_the_simplex_gives_its_coordinates_back():
    points, _, gram, _ = problem(4, 6, 50, 5)
    given_weights = np.random.default_rng(6).dirichlet(np.ones(4), size=50)
    data = np.einsum("nid,ni->nd", points, given_weights)
    weights, _ = fit_convex(gram, np.einsum("nid,nd->in", points, data))
    np.testing.assert_allclose(weights.T, given_weights, atol=1e-8)


def test_a_redundant_bone_gets_no_weight():
    points, data, gram, products = problem(4, 6, 50, 7, "twins")
    weights, _ = fit_convex(gram, products)
    assert_optimal(points, data, weights)
    assert np.all(np.minimum(weights[0], weights[3]) == 0)


def test_edges_as_short_as_rounding_hide_no_better_face():
    """Two pairs of bones that predict almost the same: what is left of their edges has any sign."""
    points, data, _, _ = problem(4, 6, 5000, 9)
    points[:, 2:] = points[:, :2] + 1e-9 * points[:, 2:]
    gram = np.ascontiguousarray(np.einsum("nid,njd->ijn", points, points))
    assert_fits(closest_on_simplex, points, data, gram, np.einsum("nid,nd->in", points, data))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_bone_that_has_run_away_hides_no_better_face(size):
    points, data, _, _ = problem(size, 6, 1000, 10)
    points[:, 0] *= 1e4
    gram = np.ascontiguousarray(np.einsum("nid,njd->ijn", points, points))
    found, _ = closest_on_simplex(gram, np.einsum("nid,nd->in", points, data))
    near = np.roll(points, -1, axis=1)
    gram = np.ascontiguousarray(np.einsum("nid,njd->ijn", near, near))
    best, _ = closest_on_simplex(gram, np.einsum("nid,nd->in", near, data))
    missed = [
        np.linalg.norm(np.einsum("in,nid->nd", weights, corners) - data, axis=1)
        for weights, corners in ((found, points), (best, near))
    ]
    np.testing.assert_allclose(*missed, atol=1e-5)


def test_descent_stays_convex_and_never_raises_the_error():
    points, data, gram, products = problem(8, 10, 60, 8)
    weights = np.full((8, 60), 1 / 8)
    last = np.full(60, np.inf)
    for _ in range(20):
        weights = descend(gram, products, weights, 1)
        error = np.sum((np.einsum("nid,in->nd", points, weights) - data) ** 2, axis=1)
        assert np.all(error <= last * (1 + 1e-12))
        last = error
        assert weights.min() >= 0
        np.testing.assert_allclose(weights.sum(axis=0), 1)
    exact = fit_convex_general(gram, products)[1] + np.sum(data**2, axis=1)
    assert np.median(last / exact) == pytest.approx(1, abs=0.05)


@pytest.mark.filterwarnings("error")
def test_a_length_that_rounding_made_negative_is_no_solution():
    """Two bones that predict the same: the square of their edge is what rounding leaves, of either sign."""
    matrices = np.zeros((3, 3, 2))
    matrices[0, 0] = -1e-18, 1e-18
    matrices[1:, 1:] = 1.0
    _, solid = solve_small(matrices, np.ones((3, 2)), 1e-10)
    assert not solid.any()
    _, solid = solve_small(np.array([[[-1e-18], [0.0]], [[0.0], [-1e-18]]]), np.ones((2, 1)), 2.0)
    assert not solid.any()
