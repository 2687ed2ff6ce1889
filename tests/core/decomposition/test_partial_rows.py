# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial solves take rows of weights as Blender does: divided by their sum, and ignored if the sum is almost zero."""

import numpy as np
import pytest

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition.helper_bones import add_helper_bones
from skinning_tools.core.decomposition.partial import Given, solve_weights
from skinning_tools.core.decomposition.partial_transforms import solve_transforms
from skinning_tools.core.deform import skin_frames
from skinning_tools.core.errors import BadWeights

BONES, LOCKED = 4, 1
# What the weights of a row are multiplied by; sums of up to 1e-4 move nothing.
ROWS = {
    "half": lambda random, count: np.full(count, 0.5),
    "tenth": lambda random, count: np.full(count, 0.1),
    "double": lambda random, count: np.full(count, 2.0),
    "thousandfold": lambda random, count: np.full(count, 1000.0),
    "above the least": lambda random, count: np.full(count, 1.2e-4),
    "each its own": lambda random, count: random.uniform(0.05, 5, count),
    "some too small": lambda random, count: np.where(random.random(count) < 0.2, 0.9e-4, random.uniform(0.3, 2, count)),
}


def rig(seed=0, count=120, frames=6):
    """Animation, rest, rows (N, 3) that sum to 1, and the matrices (F, P, 3, 4) that it is made with."""
    random = np.random.default_rng(seed)
    rest = random.normal(size=(count, 3))
    bones = np.array([random.permutation(BONES)[:3] for _ in range(count)])
    weights = random.dirichlet(np.ones(3), count)
    matrices = np.tile(np.eye(3, 4), (frames, BONES, 1, 1))
    matrices[1:] += 0.3 * random.normal(size=(frames - 1, BONES, 3, 4))
    positions = skin_frames(rest, bones, weights, matrices)
    positions[1:] += 0.02 * random.normal(size=positions[1:].shape)
    return Animation(positions, []), rest, bones, weights, matrices


def motion(animation, rest, bones, weights, matrices):
    return (solve_transforms(animation, rest, bones, weights, BONES),)


def rigid_motion(animation, rest, bones, weights, matrices):
    return (solve_transforms(animation, rest, bones, weights, BONES, "RIGID"),)


def weights_beside_locked_ones(animation, rest, bones, weights, matrices):
    locked = np.arange(BONES) == LOCKED, np.arange(len(rest)) % 5 == 0
    solved = solve_weights(animation, rest, matrices, 4, given=Given(bones, weights, *locked))
    dense = np.zeros((len(rest), BONES))
    np.add.at(dense, (np.arange(len(rest))[:, None], solved[0]), solved[1])
    return (dense,)


def helpers(animation, rest, bones, weights, matrices):
    still = np.tile(np.eye(3, 4), (*matrices.shape[:2], 1, 1))
    result = add_helper_bones(animation, rest, still, bones, weights, 1, iterations=3)
    return result.transforms, result.weights, np.array([result.e_rms, result.e_rms_before])


SOLVES = [motion, rigid_motion, weights_beside_locked_ones, helpers]


@pytest.mark.parametrize("solve", SOLVES, ids=lambda solve: solve.__name__)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_divided_by_their_sum(solve, rows):
    animation, rest, bones, weights, matrices = rig()
    factors = ROWS[rows](np.random.default_rng(1), len(rest))
    alike = np.where(factors[:, None] > 1e-4, weights, 0.0)
    expected = solve(animation, rest, bones, alike, matrices)
    found = solve(animation, rest, bones, weights * factors[:, None], matrices)
    for values, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(values, wanted, atol=1e-6)


@pytest.mark.parametrize("solve", SOLVES, ids=lambda solve: solve.__name__)
@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_rows_that_are_not_weights(solve, wrong):
    animation, rest, bones, weights, matrices = rig()
    weights[7, 1] = wrong
    with pytest.raises(BadWeights, match="Vertex 7 of the animation"):
        solve(animation, rest, bones, weights, matrices)
