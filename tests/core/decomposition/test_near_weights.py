# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of posing, and what they may cost."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.decomposition.bone_model import BoneModel, homogeneous
from skinning_tools.core.decomposition.near_weights import PoseLimits, all_errors
from skinning_tools.core.decomposition.reduction import AnimationMatrix
from skinning_tools.core.decomposition.transforms import to_rows
from skinning_tools.core.decomposition.vertex_step import VertexState
from skinning_tools.core.deform import skin_frame
from tests.core import skinned_shapes

HEADS = np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]])
# The squared error may grow by a factor of 1.2² where it is seen.
SHARE = 0.44


def stray(angle, noise=0.0, frames=8):
    """A bar of three stiff parts, of which the last turns by ``angle`` at most, and takes the first along a little. The
    middle one moves otherwise, so that it cannot take that over."""
    rest, _ = skinned_shapes.cuboid(30, 6)
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], HEADS[1:, 0], reach=0.01)
    near = rest[:, 0] < 1.5
    share = np.linspace(0.1, 0.3, near.sum())
    weights[near] = np.column_stack([1.0 - share, 0.0 * share, share])
    motion = np.tile(np.eye(3, 4), (frames, 3, 1, 1))
    for frame, turn in enumerate(np.linspace(0.0, angle, frames)):
        motion[frame, 1] = skinned_shapes.about(Rotation.from_rotvec([0.5 * frame, 0, 0.1]).as_matrix(), HEADS[1])
        motion[frame, 2] = skinned_shapes.about(Rotation.from_rotvec([0, 0, turn]).as_matrix(), HEADS[2])
    positions = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    positions += np.random.default_rng(1).normal(scale=noise, size=positions.shape)
    matrix = AnimationMatrix(positions)
    points, motion = matrix.from_object_space(rest, motion)
    limits = PoseLimits(np.array([-1, 0, 1]), matrix.points_from_object_space(HEADS), frames)
    state = VertexState(homogeneous(points), bones, weights)
    np.testing.assert_array_equal(limits.broken(state), near)
    return limits, BoneModel(to_rows(motion)), state, matrix


def test_limits_that_nobody_sees_are_kept_by_all():
    # The error is 0, so that no share of it would do.
    limits, model, state, matrix = stray(angle=0.0003)
    before = all_errors(model, state, matrix)
    limits.keep(model, state, matrix, optimize_rest_pose=False)
    after = all_errors(model, state, matrix)
    assert after.sum() > 10 * before.sum()
    assert after.max() < limits.unseen
    assert not limits.broken(state).any()


def test_what_others_do_not_use_pays_for_no_vertex():
    # On average over all vertices, nobody would see it.
    limits, model, state, matrix = stray(angle=0.004)
    free = state.copy()
    limits.keep(model, free, matrix, optimize_rest_pose=False, at_any_cost=True)
    cost = all_errors(model, free, matrix)
    assert cost.mean() < limits.unseen < cost.max()
    near = limits.broken(state)
    limits.keep(model, state, matrix, optimize_rest_pose=False)
    np.testing.assert_array_equal(limits.broken(state), near & (cost > limits.unseen))


@pytest.mark.parametrize("rounds", [1, 3])
def test_what_is_seen_stays_within_a_share_of_the_error(rounds):
    limits, model, state, matrix = stray(angle=0.05, noise=0.004)
    count, before = limits.broken(state).sum(), all_errors(model, state, matrix)
    for _ in range(rounds):
        limits.keep(model, state, matrix, optimize_rest_pose=False, given=before)
        assert 0 < limits.broken(state).sum() < count
        seen = np.maximum(all_errors(model, state, matrix) - before - limits.unseen, 0.0)
        assert 0.8 * SHARE * before.sum() < seen.sum() <= SHARE * before.sum()
