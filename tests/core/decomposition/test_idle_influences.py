# SPDX-License-Identifier: GPL-3.0-or-later
"""Influences that hardly move their vertex in the animation, and those that do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.decomposition.bone_model import BoneModel, homogeneous
from skinning_tools.core.decomposition.idle_influences import LOSS, SMALL, without_idle_influences
from skinning_tools.core.decomposition.near_weights import PoseLimits, all_errors, squared_error
from skinning_tools.core.decomposition.reduction import AnimationMatrix
from skinning_tools.core.decomposition.transforms import to_rows
from skinning_tools.core.decomposition.vertex_step import VertexState
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.strongest import strongest_first
from tests.core import skinned_shapes

HEADS = np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]])
PARENTS = np.array([-1, 0, 1])


def planted(small, noise, angle=0.4, frames=8, shown=1.0):
    """A bar whose vertices follow a third bone by ``small`` (N,), of which the animation shows the share ``shown`` with
    ``noise``, or (N,): arguments of ``without_idle_influences``."""
    rest, _ = skinned_shapes.cuboid(30, 6)
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], HEADS[1:, 0], reach=0.8)
    third = np.eye(3)[np.where(rest[:, 0] < 3.0, 2, 0)]
    played, weights = (weights + share * small[:, None] * (third - weights) for share in (shown, 1.0))
    random, motion = np.random.default_rng(3), np.tile(np.eye(3, 4), (frames, 3, 1, 1))
    for frame, bone in np.ndindex(frames, 3):
        turned = Rotation.from_rotvec(angle * random.normal(size=3)).as_matrix()
        motion[frame, bone] = skinned_shapes.about(turned, HEADS[bone])
    positions = np.array([skin_frame(rest, bones, played, each) for each in motion])
    positions += np.broadcast_to(noise, len(rest))[:, None] * random.normal(size=positions.shape)
    matrix = AnimationMatrix(positions.astype(np.float32))
    points, motion = matrix.from_object_space(rest, motion)
    state = VertexState(homogeneous(points), *strongest_first(bones, weights))
    limits = PoseLimits(PARENTS, matrix.points_from_object_space(HEADS), frames)
    return BoneModel(to_rows(motion)), state, matrix, limits


def counts(state):
    return (state.weights > 0).sum(axis=1)


VERTICES = len(skinned_shapes.cuboid(30, 6)[0])


@pytest.mark.parametrize("optimize", [False, True])
def test_planted_influences_go(optimize):
    given = planted(np.full(VERTICES, 2e-4), noise=5e-4, shown=0.0)
    result = without_idle_influences(*given, optimize_rest_pose=optimize)
    clean = planted(np.zeros(VERTICES), noise=5e-4)[1]
    assert (counts(result) <= counts(clean)).all()
    # What the joints blend stays.
    blended = clean.weights[:, 1] > SMALL
    assert (counts(result)[blended] >= 2).all()
    assert (result.points != given[1].points).any() == optimize
    np.testing.assert_allclose(result.weights.sum(axis=1), 1.0)
    assert (result.weights >= 0).all()


@pytest.mark.parametrize(("parents", "stays"), [((-1, 0, 1, 2), False), ((-1, 0, 1, 1), True)])
def test_a_bone_that_moves_alike_keeps_no_weight_far_from_its_neighbors(parents, stays):
    """A vertex follows bones 0 and 3, which move as one, by half each."""
    rest, _ = skinned_shapes.cuboid(30, 6)
    bones, weights = np.tile(np.array([0, 3], np.int32), (len(rest), 1)), np.tile([0.6, 0.4], (len(rest), 1))
    if stays:
        bones[:, 0] = 1
    motion = np.tile(np.eye(3, 4), (6, 4, 1, 1))
    turns = Rotation.from_rotvec(0.4 * np.random.default_rng(5).normal(size=(6, 3))).as_matrix()
    motion[:] = np.array([skinned_shapes.about(turn, [0, 0, 0]) for turn in turns])[:, None]
    matrix = AnimationMatrix(np.array([skin_frame(rest, bones, weights, each) for each in motion], np.float32))
    points, motion = matrix.from_object_space(rest, motion)
    # Their joints are near all of it, so that no limit breaks.
    limits = PoseLimits(np.array(parents), np.tile(points.mean(axis=0), (4, 1)), 6)
    given = BoneModel(to_rows(motion)), VertexState(homogeneous(points), bones, weights), matrix, limits
    result = without_idle_influences(*given, optimize_rest_pose=False)
    np.testing.assert_array_equal(counts(result), 2 if stays else 1)
    np.testing.assert_array_equal(result.bones[:, 0], bones[:, 0])


def test_a_slot_before_that_of_a_far_bone_stays_unused():
    """Vertices follow bones 0 and 1, and hardly a far one. Which of two slots a bone gets in a fit, rounding tells."""
    random, motion = np.random.default_rng(1), np.tile(np.eye(3, 4), (6, 4, 1, 1))
    rest = random.uniform(0.0, 4.0, (5000, 3))
    for frame, bone in np.ndindex(6, 4):
        turned = Rotation.from_rotvec(0.4 * random.normal(size=3)).as_matrix()
        motion[frame, bone] = skinned_shapes.about(turned, [bone, 0, 0])
    first = random.uniform(0.4, 0.9, len(rest))
    weights = np.stack([first, 0.995 - first, np.full(len(rest), 0.005), np.zeros(len(rest))], axis=1)
    bones = np.tile(np.array([0, 1, 3, 0], np.int32), (len(rest), 1))
    positions = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    matrix = AnimationMatrix((positions + 0.02 * random.normal(size=positions.shape)).astype(np.float32))
    points, motion = matrix.from_object_space(rest, motion)
    limits = PoseLimits(np.array([-1, 0, 1, 2]), np.tile(points.mean(axis=0), (4, 1)), 6)
    given = BoneModel(to_rows(motion)), VertexState(homogeneous(points), bones, weights), matrix, limits
    result = without_idle_influences(*given, optimize_rest_pose=False)
    used = np.where(result.weights > 0, result.bones, -1 - np.arange(4))
    assert (np.diff(np.sort(used, axis=1), axis=1) > 0).all()


def test_a_small_influence_that_is_seen_stays():
    """Its loss would be a small share of the error of all vertices."""
    first = np.arange(VERTICES) < 3
    given = planted(0.9 * SMALL * first, noise=np.where(first, 0.0, 0.05))
    state, limits = given[1], given[3]
    added = all_errors(given[0], replace(state, weights=np.eye(3)[np.zeros(VERTICES, int)]), given[2])
    added -= all_errors(*given[:3])
    assert (added[:3] > limits.unseen).all()
    assert added[:3].sum() < LOSS * squared_error(*given[:3])
    result = without_idle_influences(*given, optimize_rest_pose=False)
    np.testing.assert_allclose(result.weights[:3], state.weights[:3])


@pytest.mark.parametrize("noise", [0.0002, 0.002])
def test_the_error_grows_within_the_budget(noise):
    given = planted(np.linspace(0.0, SMALL, VERTICES), noise)
    model, state, matrix, limits = given
    result = without_idle_influences(*given, optimize_rest_pose=False)
    before, after = all_errors(model, state, matrix), all_errors(model, result, matrix)
    fewer = counts(result) < counts(state)
    assert 0 < fewer.sum() < VERTICES
    assert after.sum() <= (1.0 + LOSS) * before.sum()
    assert (after - before).max() <= 1.000001 * limits.unseen
    np.testing.assert_array_equal(result.weights[~fewer], state.weights[~fewer])


def test_no_weight_makes_a_visible_step():
    # Rest positions and weights are off the best ones, so that the fit would like to change them much.
    given = planted(np.full(VERTICES, 0.5 * SMALL), noise=0.2)
    state = given[1]
    result = without_idle_influences(*given, optimize_rest_pose=True)
    lost = counts(state) - counts(result)
    assert lost.sum() > 0.5 * VERTICES
    change = np.abs(dense(result) - dense(state)).max(axis=1)
    assert (change <= 2.0 * SMALL * lost + 1e-12).all()


def dense(state):
    return skinned_shapes.dense(state.bones, state.weights, 3)


def test_larger_weights_stay_though_no_motion_tells_them():
    model, state, matrix, limits = planted(np.zeros(VERTICES), noise=0.01)
    still = replace(state, weights=np.tile([0.9, 0.1 - 0.5 * SMALL, 0.5 * SMALL], (VERTICES, 1)))
    still.bones = np.tile([0, 1, 2], (VERTICES, 1))
    # All bones move alike.
    model = BoneModel(np.tile(model.transforms[:4], (3, 1)))
    result = without_idle_influences(model, still, matrix, limits, optimize_rest_pose=False)
    np.testing.assert_array_equal(counts(result), 2)
    assert (result.weights[:, 1] > SMALL).all()


@pytest.mark.parametrize("optimize", [False, True])
def test_vertices_stay_within_the_limits(optimize):
    # Near the limit, which the noise would have them cross.
    small = np.full(VERTICES, 0.3)
    model, state, matrix, limits = planted(small, noise=0.05, angle=0.05)
    state.weights = limits.capped(state)
    assert not limits.broken(state).any()
    state.bones, state.weights = strongest_first(state.bones, state.weights)
    given = model, state, matrix, limits
    result = without_idle_influences(*given, optimize_rest_pose=optimize)
    assert (counts(result) < counts(state)).sum() > 20
    assert not limits.broken(result).any()


def test_weights_without_idle_influences_are_left_alone():
    model, state, matrix, limits = planted(np.zeros(VERTICES), noise=0.01)
    alone = replace(state, weights=np.tile([1.0, 0, 0], (VERTICES, 1)), bones=np.tile(state.bones[:, :1], (1, 3)))
    assert without_idle_influences(model, alone, matrix, limits, optimize_rest_pose=True) is alone
    one = replace(alone, bones=alone.bones[:, :1], weights=alone.weights[:, :1])
    assert without_idle_influences(model, one, matrix, limits, optimize_rest_pose=True) is one


def test_important_vertices_lose_less():
    model, state, matrix, limits = planted(np.full(VERTICES, 3e-4), noise=3e-4)
    half = np.arange(VERTICES) % 2 == 0
    state.importance = np.where(half, 1.9, 0.1)
    result = without_idle_influences(model, state, matrix, limits, optimize_rest_pose=False)
    fewer = counts(result) < counts(state)
    assert fewer[~half].sum() > 2 * fewer[half].sum()
    assert squared_error(model, result, matrix) <= (1.0 + LOSS) * squared_error(model, state, matrix)
