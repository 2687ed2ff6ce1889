# SPDX-License-Identifier: GPL-3.0-or-later
"""A dragged vertex goes where its bones can take it, and those around it follow."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.drag import DraggedVertices, vertices_around
from skinning_tools.core.binding.fit import bone_predictions
from skinning_tools.core.deform import skin_frame

from ..skinned_shapes import about

BONES = 4


@pytest.fixture
def strip():
    """Points along a line with the edges between them, and a loose point above it."""
    points = np.array([[x, 0.0, 0.0] for x in range(9)] + [[4.0, 0.5, 0.0]])
    return points, np.array([[x, x + 1] for x in range(8)])


def dragged(seed=0, count=1, **given) -> DraggedVertices:
    """``count`` vertices that several bones move apart."""
    random, state = np.random.default_rng(seed), np.random.RandomState(seed)
    turns = Rotation.random(BONES, random_state=state).as_matrix()
    matrices = np.array([about(turn, random.normal(size=3)) for turn in turns])
    rest = random.normal(size=(count, 3))
    bones, weights = np.tile(np.arange(BONES), (count, 1)), random.dirichlet(np.ones(BONES), count)
    start = skin_frame(rest, bones, weights, matrices)
    shares = np.linspace(1, 0.2, count)
    return DraggedVertices(rest, start, bones, weights, matrices, shares, **given)


def test_followers_are_near_along_the_edges(strip):
    points, edges = strip
    vertices, shares = vertices_around(points, edges, 4, 2.5)
    assert vertices[0] == 4
    assert sorted(vertices) == [2, 3, 4, 5, 6]
    assert shares[0] == 1
    by_vertex = dict(zip(vertices.tolist(), shares.tolist(), strict=True))
    # 3 s² − 2 s³ of the share s of the radius that is left.
    assert by_vertex[3] == by_vertex[5] == pytest.approx(3 * 0.6**2 - 2 * 0.6**3)
    assert by_vertex[2] == by_vertex[6] == pytest.approx(3 * 0.2**2 - 2 * 0.2**3)


@pytest.mark.parametrize(("vertex", "radius"), [(4, 0.0), (4, 1.0), (9, 5.0)])
def test_a_vertex_alone(strip, vertex, radius):
    vertices, shares = vertices_around(*strip, vertex, radius)
    assert vertices.tolist() == [vertex]
    assert shares.tolist() == [1.0]


def test_vertices_at_one_place_follow_alike(strip):
    points, edges = strip
    points[5] = points[4]
    vertices, shares = vertices_around(points, edges, 4, 0.5)
    assert vertices.tolist() == [4, 5]
    assert shares == pytest.approx([1.0, 1.0])


def test_a_target_inside_the_region_is_reached():
    problem = dragged()
    single = bone_predictions(problem.rest[0], np.arange(BONES), problem.matrices)
    target = np.array([0.1, 0.2, 0.3, 0.4]) @ single
    found = problem.to(target)
    # Weights are held to the former ones by 1e-4 of the region's size, which costs half of that at most.
    assert np.abs(found.positions[0, 0] - target).max() < 1e-4 * np.ptp(single, axis=0).max()
    assert found.weights.min() >= 0
    assert found.weights.sum(axis=1) == pytest.approx(1.0)


def test_a_target_outside_is_held_at_the_closest_place():
    problem = dragged(3)
    single = bone_predictions(problem.rest[0], np.arange(BONES), problem.matrices)
    target = single.mean(axis=0) + 3 * (single[0] - single.mean(axis=0))
    found = problem.to(target)
    closest = _closest(single, target, np.eye(3))
    assert np.linalg.norm(found.positions[0, 0] - target) == pytest.approx(np.linalg.norm(closest - target), rel=1e-5)
    assert found.residuals[0, 0] == pytest.approx(np.linalg.norm(found.positions[0, 0] - target))


def test_along_the_line_of_sight_distance_counts_little():
    """Beside the closest place as by another solver, in a space that is flat along the line."""
    problem = dragged(3)
    single = bone_predictions(problem.rest[0], np.arange(BONES), problem.matrices)
    sight = np.array([0.6, 0.0, 0.8])
    target = single.mean(axis=0) + 2 * (single[0] - single.mean(axis=0)) + 1.5 * sight
    flat = np.eye(3) - (1 - 3e-3) * np.outer(sight, sight)
    found, plain = problem.to(target, sight), problem.to(target)
    closest = _closest(single, target, flat)
    assert np.linalg.norm(flat @ (found.positions[0, 0] - target)) == pytest.approx(
        np.linalg.norm(flat @ (closest - target)), rel=1e-5
    )
    across = np.eye(3) - np.outer(sight, sight)
    seen = [np.linalg.norm(across @ (each.positions[0, 0] - target)) for each in (found, plain)]
    assert seen[0] < seen[1]


@pytest.mark.parametrize("degrees", [3, 10, 45])
def test_a_vertex_that_moves_nearly_along_the_line_of_sight_goes_where_it_is_dragged(degrees):
    """It could be brought there by bones that move it far along the line."""
    angle = np.radians(degrees)
    matrices = np.tile(np.eye(3, 4), (2, 1, 1))
    matrices[:, :, 3] = 5 * np.array([[-1.0], [1.0]]) * (np.sin(angle), 0.0, np.cos(angle))
    start = np.zeros((1, 3))
    problem = DraggedVertices(start, start, np.array([[0, 1]]), np.full((1, 2), 0.5), matrices, np.ones(1))
    found = problem.to(np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]))
    assert found.positions[0, 0, 0] == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize("candidates", [None, np.array([0, 1])])
def test_a_small_share_is_a_small_motion(candidates):
    """Also of vertices with other bones than those that the dragged one may get."""
    matrices = np.tile(np.eye(3, 4), (3, 1, 1))
    matrices[1, 2, 3], matrices[2, 0, 3] = 1.0, -2.0
    rest = np.array([[0.0, 0, 0], [0.1, 0, 0], [0.9, 0, 0]])
    bones, weights = np.array([[0, 1], [1, 2], [1, 2]]), np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    start = skin_frame(rest, bones, weights, matrices)
    problem = DraggedVertices(rest, start, bones, weights, matrices, np.array([1.0, 0.5, 1e-6]), candidates)
    moved = np.linalg.norm(problem.to(start[0] + (0, 0, 0.01)).positions[0] - start, axis=1)
    assert moved[1] < 0.0051
    assert moved[2] < 1e-4


def _closest(single, target, flat) -> np.ndarray:
    """The convex combination of ``single`` (M, 3) that is closest to ``target`` after ``flat`` (3, 3)."""
    found = minimize(
        lambda weights: np.sum((flat @ (weights @ single - target)) ** 2),
        np.full(len(single), 1 / len(single)),
        jac=lambda weights: 2 * single @ flat.T @ flat @ (weights @ single - target),
        bounds=[(0, 1)] * len(single),
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x @ single


def test_the_way_does_not_matter():
    problem = dragged(1, 5)
    target, elsewhere = problem.start[0] + (0.1, 0.0, 0.1), problem.start[0] - 3.0
    first = problem.to(target)
    problem.to(elsewhere)
    again = problem.to(target)
    assert np.array_equal(first.weights, again.weights)
    assert np.array_equal(first.bones, again.bones)


def test_followers_go_their_share_of_the_way_that_the_vertex_goes():
    problem = dragged(2, 6)
    far = problem.start[0] + 50.0
    found = problem.to(far)
    motion = found.positions[0, 0] - problem.start[0]
    assert np.linalg.norm(motion) < 20
    for index in range(1, 6):
        single = bone_predictions(problem.rest[index], np.arange(BONES), problem.matrices)
        target = problem.start[index] + problem.shares[index] * motion
        closest = _closest(single, target, np.eye(3))
        left = np.linalg.norm(closest - target)
        size = np.ptp(single, axis=0).max()
        assert np.linalg.norm(found.positions[0, index] - target) == pytest.approx(left, abs=1e-4 * size)


def test_locked_bones_keep_their_weights():
    locked = np.array([False, True, False, False])
    problem = dragged(4, 3, locked=locked)
    found = problem.to(problem.start[0] + 1.0)
    kept = np.where(found.bones == 1, found.weights, 0.0).sum(axis=1)
    assert kept == pytest.approx(problem.weights[:, 1], abs=1e-12)
    assert not np.allclose(found.positions[0, 0], problem.start[0])
