# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights from posed positions, and the region that a vertex can reach."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.fit import bone_predictions, fit_weights, reachable_hull
from skinning_tools.core.binding.influence_rows import tidy_influences
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadSettings, BadWeights, Cancelled

from ..skinned_shapes import about, chain_weights, cuboid, dense


def posed(random, bone_count, frames=1):
    """(F, P, 3, 4) rotations about points of their own."""
    return np.array(
        [
            [about(Rotation.random(random_state=random).as_matrix(), random.normal(size=3)) for _ in range(bone_count)]
            for _ in range(frames)
        ]
    )


def problem(seed, frames, count=30, bone_count=6, influences=4):
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(count)], np.int32)
    weights = random.dirichlet(np.full(influences, 0.7), count)
    weights[random.random(weights.shape) < 0.3] = 0
    weights[:, 0] += 1e-3
    weights /= weights.sum(axis=1, keepdims=True)
    state = np.random.RandomState(seed)
    matrices = posed(state, bone_count, frames)
    rest = random.normal(size=(count, 3))
    return random, rest, bones, weights, matrices, np.array([skin_frame(rest, bones, weights, m) for m in matrices])


def assert_convex(result, most):
    assert result.bones.dtype == np.int32
    assert result.bones.shape == result.weights.shape
    assert result.weights.shape[1] <= most
    assert result.weights.min() >= 0
    np.testing.assert_allclose(result.weights.sum(axis=1), 1, atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 4))
@example(1362, 1)  # predictions of four bones that lie nearly in one plane
@settings(deadline=None, max_examples=30)
def test_positions_of_known_weights_return(seed, frames):
    """From other weights of the same bones, and from one bone with all of them to choose from."""
    random, rest, bones, weights, matrices, targets = problem(seed, frames)
    start = random.dirichlet(np.ones(4), len(rest))
    result = fit_weights(rest, bones, start, matrices, targets)
    assert_convex(result, 4)
    assert result.residuals.shape == (frames, len(rest))
    assert result.residuals.max() < 1e-4
    np.testing.assert_allclose(result.residuals, np.linalg.norm(result.positions - targets, axis=-1))
    again = np.array([skin_frame(rest, result.bones, result.weights, frame) for frame in matrices])
    np.testing.assert_allclose(result.positions, again, atol=1e-9)
    if frames >= 2:
        # Six numbers settle four weights.
        np.testing.assert_allclose(dense(result.bones, result.weights, 6), dense(bones, weights, 6), atol=1e-3)
    rigid = np.zeros((len(rest), 1), np.int32), np.ones((len(rest), 1))
    result = fit_weights(rest, *rigid, matrices, targets, candidates=np.arange(6))
    assert_convex(result, 4)
    assert result.residuals.max() < 1e-4


def test_the_human_rig_from_all_of_its_bones(shared_data):
    """One pose of the walk: of 163 bones, four are found that bring each vertex where it was."""
    data = np.load(shared_data("human_rig.npz"))
    rest = data["rest"].astype(float)
    chosen = np.random.default_rng(0).choice(len(rest), 300, replace=False)
    bones, weights = tidy_influences(
        data["influence_bones"][chosen], data["influence_weights"][chosen].astype(float), 4
    )
    pose = data["walk_matrices"][5].astype(float)
    targets = skin_frame(rest[chosen], bones, weights, pose)
    rigid = bones[:, :1], np.ones((300, 1))
    result = fit_weights(rest[chosen], *rigid, pose, targets, candidates=np.arange(163))
    assert_convex(result, 4)
    assert result.residuals.max() < 1e-4 * np.linalg.norm(np.ptp(rest, axis=0))


@given(st.integers(0, 10_000), st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_an_unreachable_target_is_approached_as_closely_as_possible(seed, frames):
    """As close as non-negative least squares with a heavy row for the sum."""
    random, rest, bones, _, matrices, _ = problem(seed, frames)
    targets = random.normal(size=(frames, len(rest), 3)) * 2
    result = fit_weights(rest, bones, np.full(bones.shape, 0.25), matrices, targets)
    for vertex in range(len(rest)):
        columns = np.concatenate([bone_predictions(rest[vertex], bones[vertex], frame) for frame in matrices], axis=1).T
        best, _ = nnls(np.vstack([columns, np.full(4, 1e4)]), np.append(targets[:, vertex].ravel(), 1e4))
        least = np.linalg.norm(columns @ (best / best.sum()) - targets[:, vertex].ravel())
        assert np.linalg.norm(result.residuals[:, vertex]) < least + 1e-4


def test_weights_that_the_pose_does_not_determine_stay():
    """Two bones that move alike keep their shares of what they have together."""
    rest = np.random.default_rng(1).normal(size=(20, 3)) + 3
    matrices = np.stack([np.eye(3, 4), np.eye(3, 4), about(Rotation.from_euler("z", 1.0).as_matrix(), [0, 0, 0])])
    bones = np.tile(np.arange(3), (20, 1))
    targets = skin_frame(rest, bones, np.tile([0.3, 0.3, 0.4], (20, 1)), matrices)
    result = fit_weights(rest, bones, np.tile([0.15, 0.25, 0.6], (20, 1)), matrices, targets)
    np.testing.assert_allclose(dense(result.bones, result.weights, 3), np.tile([0.25, 0.35, 0.4], (20, 1)), atol=1e-4)


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_a_pose_that_moves_no_bone_changes_nothing(noise):
    """Not even where single precision makes tiny differences, and the targets are elsewhere."""
    random, rest, bones, weights, _, _ = problem(4, 1)
    matrices = np.tile(np.eye(3, 4), (6, 1, 1)) + noise * random.normal(size=(6, 3, 4))
    result = fit_weights(rest, bones, weights, matrices, rest + 0.01 * random.normal(size=rest.shape))
    if noise:
        assert np.abs(dense(result.bones, result.weights, 6) - dense(bones, weights, 6)).max() < 0.05
    else:
        np.testing.assert_allclose(dense(result.bones, result.weights, 6), dense(bones, weights, 6), atol=1e-6)


def test_vertices_at_their_target_keep_their_weights():
    _, rest, bones, weights, matrices, targets = problem(6, 1)
    result = fit_weights(rest, bones, weights, matrices, targets)
    np.testing.assert_allclose(dense(result.bones, result.weights, 6), dense(bones, weights, 6), atol=1e-5)


def test_only_the_chosen_bones_and_locked_ones_as_they_were():
    random, rest, bones, weights, matrices, _ = problem(7, 1)
    locked = np.arange(6) == 2
    targets = rest + 0.2 * random.normal(size=rest.shape)
    result = fit_weights(rest, bones, weights, matrices, targets, candidates=[0, 1, 2, 3], locked=locked)
    before, after = dense(bones, weights, 6), dense(result.bones, result.weights, 6)
    fitted = before[:, 2] < 1 - 1e-6
    np.testing.assert_allclose(after[:, 2], before[:, 2], atol=1e-12)
    assert (after[fitted][:, 4:] == 0).all()
    # What the open bones take is the best for what the locked one leaves.
    share = before[:, 2]
    rest_of_it = (targets - share[:, None] * bone_predictions(rest, np.full((len(rest), 1), 2), matrices[0])[:, 0])[
        fitted
    ]
    rest_of_it /= (1 - share[fitted])[:, None]
    alone = np.zeros((fitted.sum(), 1), np.int32), np.ones((fitted.sum(), 1))
    plain = fit_weights(rest[fitted], *alone, matrices, rest_of_it, candidates=[0, 1, 3])
    np.testing.assert_allclose(plain.residuals[0] * (1 - share[fitted]), result.residuals[0][fitted], atol=1e-4)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_fewer_influences_are_the_best_of_their_number(most):
    """As close as the best choice of that number of bones, or nearly: the weakest bone is removed first."""
    _, rest, _, _, matrices, targets = problem(8, 2, count=40, bone_count=5)
    everything = np.tile(np.arange(5), (40, 1))
    result = fit_weights(rest, everything, np.full((40, 5), 0.2), matrices, targets, max_influences=most)
    assert_convex(result, most)
    found = np.linalg.norm(result.residuals, axis=0)
    best = np.full(40, np.inf)
    for some in combinations(range(5), most):
        chosen = np.tile(some, (40, 1))
        one = fit_weights(rest, chosen, np.full((40, most), 1 / most), matrices, targets)
        best = np.minimum(best, np.linalg.norm(one.residuals, axis=0))
    assert (found >= best - 1e-4).all()
    assert np.mean(found) < 1.1 * np.mean(best) + 1e-4


def test_vertices_without_weights_get_some_only_from_chosen_bones():
    _, rest, bones, weights, matrices, targets = problem(9, 1)
    none = np.zeros_like(weights)
    assert not fit_weights(rest, bones, none, matrices, targets).weights.any()
    assert_convex(fit_weights(rest, bones, none, matrices, targets, candidates=np.arange(6)), 4)


def test_wrong_input_is_refused():
    _, rest, bones, weights, matrices, targets = problem(10, 1)
    with pytest.raises(BadWeights, match="do not fit"):
        fit_weights(rest, bones, weights, matrices, targets[:, 1:])
    with pytest.raises(BadWeights, match="not a number"):
        fit_weights(rest, bones, weights, matrices * np.nan, targets)
    with pytest.raises(BadSettings, match="not locked"):
        fit_weights(rest, bones, weights, matrices, targets, candidates=[1], locked=np.ones(6, bool))
    with pytest.raises(BadSettings, match="at least 1"):
        fit_weights(rest, bones, weights, matrices, targets, max_influences=0)
    with pytest.raises(Cancelled):
        fit_weights(rest, bones, weights, matrices, targets, progress=lambda share, stage: False)


def lengths(corners, edges):
    return sorted(np.round(np.linalg.norm(corners[edges[:, 0]] - corners[edges[:, 1]], axis=1), 6).tolist())


def turned(points, offset=(5.0, -3.0, 40.0)):
    return points @ Rotation.from_euler("xyz", [0.4, 1.1, -0.7]).as_matrix().T + offset


CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
HULLS = {
    "one point": (np.zeros((1, 3)), 1, []),
    "three at one place": (np.full((3, 3), 7.0), 1, []),
    "two points": (np.array([[0, 0, 0], [0, 3, 0.0]]), 2, [3.0]),
    "four in a line": (np.array([[1, 0, 0], [0, 0, 0], [3, 0, 0], [2, 0, 0.0]]), 2, [3.0]),
    "triangle": (np.array([[0, 0, 0], [3, 0, 0], [0, 4, 0.0]]), 3, [3.0, 4.0, 5.0]),
    "square with a point inside": (np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.4, 0.6, 0]]), 4, [1.0] * 4),
    "tetrahedron": (np.vstack([np.zeros(3), np.eye(3)]), 4, [1.0] * 3 + [1.414214] * 3),
    "cube": (CUBE, 8, [1.0] * 12),
    "cube with points inside and on its sides": (np.vstack([CUBE, CUBE * 0.5 + 0.25, [[0.5, 0.5, 1]]]), 8, [1.0] * 12),
    "flat cube": (CUBE * [1, 1, 1e-9], 4, [1.0] * 4),
    "thin cube": (CUBE * [1, 1, 1e-3], 8, [0.001] * 4 + [1.0] * 8),
}


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("name", HULLS)
def test_edges_of_the_region(name, size):
    points, corner_count, expected = HULLS[name]
    corners, edges = reachable_hull(turned(points * size, np.array([5.0, -3.0, 40.0]) * size))
    assert edges.shape == (len(expected), 2)
    np.testing.assert_allclose(np.array(lengths(corners / size, edges)), expected, atol=2e-5)
    assert len(corners) == corner_count


def test_the_region_is_what_fits_can_reach():
    _, rest, bones, _, matrices, _ = problem(11, 1)
    for vertex in range(5):
        one = rest[vertex, None], bones[vertex, None], np.full((1, 4), 0.25), matrices
        corners, edges = reachable_hull(bone_predictions(rest[vertex], bones[vertex], matrices[0]))
        assert len(corners) == 4
        for target in np.vstack([corners, corners[edges].mean(axis=1)]):
            assert fit_weights(*one, target[None]).residuals.max() < 1e-4
            # A little farther out is out of reach.
            outside = corners.mean(axis=0) + 1.1 * (target - corners.mean(axis=0))
            assert fit_weights(*one, outside[None]).residuals.max() > 1e-3


def test_a_bent_bar():
    """An artist pulls the inner side of a bent elbow out; weights change there and nowhere else."""
    rest, _ = cuboid(columns=40, rows=4)
    bones, weights = chain_weights(rest[:, 0], [3.0])
    matrices = np.stack([np.eye(3, 4), about(Rotation.from_euler("z", 1.5).as_matrix(), [3, 0, 0])])
    now = skin_frame(rest, bones, weights, matrices)
    other = chain_weights(rest[:, 0], [3.0], reach=0.4)
    wanted = skin_frame(rest, *other, matrices)
    moved = np.linalg.norm(wanted - now, axis=1) > 1e-6
    result = fit_weights(rest[moved], bones[moved], weights[moved], matrices, wanted[moved])
    assert result.residuals.max() < 1e-4
