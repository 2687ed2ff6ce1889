# SPDX-License-Identifier: GPL-3.0-or-later
"""Gauss-Newton steps of bones on joints."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core import solve_memory
from skinning_tools.core.body_surface import BodySurface
from skinning_tools.core.decomposition.joint_steps import JointSteps
from skinning_tools.core.decomposition.jointed_bones import JointedBones, joined
from skinning_tools.core.decomposition.moving_joints import MovingJoints
from skinning_tools.core.decomposition.transforms import NormalEquations, design_matrix, to_rows
from tests.core import skinned_shapes

PARENTS = np.array([1, -1, 1, 2, -1])
COUNT, FRAMES = len(PARENTS), 5


def posed(heads, size=0.7):
    """Bones (F, P, 3, 4) on their joints that turn by about ``size`` radians, the roots elsewhere."""
    random = np.random.default_rng(1)
    motion = np.zeros((FRAMES, COUNT, 3, 4))
    motion[..., :3] = (
        Rotation.from_rotvec(size * random.normal(size=(FRAMES * COUNT, 3))).as_matrix().reshape(FRAMES, COUNT, 3, 3)
    )
    motion[..., 3] = random.normal(size=(FRAMES, COUNT, 3))
    return joined(motion, heads, PARENTS)


def equations_of(motion, noise=0.0):
    """Of 60 vertices with two bones each that move like that."""
    random = np.random.default_rng(2)
    points = np.concatenate([random.normal(size=(60, 3)), np.ones((60, 1))], axis=1)
    bones = np.stack([np.arange(60) % COUNT, random.integers(COUNT, size=60)], axis=1)
    weights = random.uniform(0.2, 1.0, size=(60, 2))
    design = design_matrix(points, bones, weights / weights.sum(axis=1, keepdims=True), COUNT)
    data = design @ to_rows(motion)
    data = data + noise * random.normal(size=data.shape)
    equations = NormalEquations(COUNT, data.shape[1])
    equations.add(design, data)
    return equations, float(np.square(data).sum())


HEADS = np.random.default_rng(3).normal(size=(COUNT, 3))


def test_few_steps_find_the_motion_that_many_sweeps_find():
    wanted = posed(HEADS)
    equations, squared_norm = equations_of(wanted, noise=0.1)
    start = posed(HEADS, size=0.0)
    start[..., 3] = wanted[..., 3]
    swept = JointedBones(equations, HEADS, PARENTS).solve(wanted, squared_norm, lambda *_: True)
    motion = MovingJoints(HEADS, PARENTS).moved(equations, start, 12, joints=False)
    turns = motion[..., :3]
    np.testing.assert_allclose(turns @ np.swapaxes(turns, -1, -2), np.broadcast_to(np.eye(3), turns.shape), atol=1e-9)
    np.testing.assert_allclose(motion, joined(motion, HEADS, PARENTS), atol=1e-12)
    least = equations.squared_error(to_rows(swept)) + squared_norm
    assert equations.squared_error(to_rows(motion)) + squared_norm < 1.001 * least


def test_joints_and_motion_are_found_together():
    equations, squared_norm = equations_of(posed(HEADS))
    near = HEADS + np.random.default_rng(4).normal(scale=0.04, size=HEADS.shape)
    skeleton = MovingJoints(near, PARENTS)
    motion = skeleton.moved(equations, joined(posed(HEADS), near, PARENTS), 12)
    linked = PARENTS >= 0
    assert np.abs(skeleton.heads - HEADS)[linked].max() < 0.1 * np.abs(near - HEADS)[linked].max()
    assert equations.squared_error(to_rows(motion)) + squared_norm < 1e-4 * squared_norm


def test_bones_whose_motion_is_given_keep_it():
    # All that is free hangs from them.
    parents, free = np.array([1, -1, 1, 2, -1]), np.array([True, False, True, True, False])
    wanted = posed(HEADS)
    equations, squared_norm = equations_of(wanted)
    start = wanted.copy()
    start[:, free, :, :3] = np.eye(3)
    motion = MovingJoints(HEADS, parents, free=free).moved(equations, start, 12, joints=False)
    np.testing.assert_array_equal(motion[:, ~free], start[:, ~free])
    assert equations.squared_error(to_rows(motion)) + squared_norm < 1e-9 * squared_norm


def test_the_errors_of_frames_are_those_of_the_equations():
    equations, _ = equations_of(posed(HEADS), noise=0.1)
    bones = JointSteps(equations, PARENTS, np.ones(COUNT, bool))
    motion, errors = bones.settled(posed(HEADS, size=0.5), HEADS)
    np.testing.assert_allclose(errors.sum(), equations.squared_error(to_rows(motion)), rtol=1e-9)


def test_roots_that_share_all_vertices_alike():
    # Shifts of both that cancel each other change nothing.
    random = np.random.default_rng(5)
    points = np.concatenate([random.normal(size=(20, 3)), np.ones((20, 1))], axis=1)
    design = design_matrix(points, np.tile([0, 1], (20, 1)), np.full((20, 2), 0.5), 2)
    start = np.tile(np.eye(3, 4), (FRAMES, 2, 1, 1))
    turned = start.copy()
    turned[..., :3] = Rotation.from_rotvec(0.3 * random.normal(size=(FRAMES, 3))).as_matrix()[:, None]
    equations = NormalEquations(2, 3 * FRAMES)
    equations.add(design, design @ to_rows(turned))
    motion = MovingJoints(np.zeros((2, 3)), np.array([-1, -1])).moved(equations, start, 12)
    np.testing.assert_allclose(motion, turned, atol=1e-6)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_the_result_does_not_depend_on_blocks_of_frames(monkeypatch, kept):
    equations, _ = equations_of(posed(HEADS), noise=0.1)

    def solved():
        skeleton = MovingJoints(HEADS, PARENTS)
        return skeleton.moved(equations, posed(HEADS, size=0.5), 2), skeleton.heads

    whole = solved()
    factor_bytes = 8 * (3 * COUNT) ** 2
    # Two frames at once; factors are kept of none, two and four of the five.
    monkeypatch.setattr(solve_memory, "JOINT_BLOCK_BYTES", 2 * factor_bytes)
    blocks = solved()
    monkeypatch.setattr(solve_memory, "JOINT_KEPT_BYTES", kept * 2 * factor_bytes)
    for wanted, in_blocks, made_again in zip(whole, blocks, solved(), strict=True):
        np.testing.assert_allclose(in_blocks, wanted, atol=1e-9)
        np.testing.assert_array_equal(made_again, in_blocks)


def test_memory_of_a_step_stays_within_its_estimate(monkeypatch):
    frames, count = 600, 40
    factor_bytes = 8 * (3 * count) ** 2
    monkeypatch.setattr(solve_memory, "JOINT_BLOCK_BYTES", 2 * factor_bytes)
    monkeypatch.setattr(solve_memory, "JOINT_KEPT_BYTES", 100 * factor_bytes)
    random = np.random.default_rng(5)
    parents, heads = np.arange(count) - 1, random.normal(size=(count, 3))
    motion = np.zeros((frames, count, 3, 4))
    motion[..., :3] = np.eye(3)
    motion = joined(motion, heads, parents)
    equations = NormalEquations(count, 3 * frames)
    points = np.concatenate([random.normal(size=(4 * count, 3)), np.ones((4 * count, 1))], axis=1)
    design = design_matrix(points, np.arange(4 * count)[:, None] % count, np.ones((4 * count, 1)), count)
    equations.add(design, design @ to_rows(motion) + 0.01 * random.normal(size=(4 * count, 3 * frames)))
    tracemalloc.start()
    MovingJoints(heads, parents).moved(equations, motion, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= solve_memory.joint_memory(frames, count)
    # Factors of all frames would not fit.
    assert solve_memory.joint_memory(frames, count) < frames * factor_bytes


@pytest.mark.parametrize("axes", [[0, 1, 0], [1, 1, 1]])
def test_a_joint_outside_goes_into_the_body_along_directions_that_the_motion_does_not_tell(axes):
    # A bar, 0.3 thick, whose far half turns about a place beside it, about one axis through it or about all.
    rest, triangles = skinned_shapes.cuboid(length=6.0)
    rest, inside, outside = 0.3 * rest, np.array([0.9, 0.1, 0.0]), np.array([0.9, 0.2, 0.0])
    turns = np.random.default_rng(6).normal(size=(FRAMES, 3)) * axes
    motion = np.tile(np.eye(3, 4), (FRAMES, 2, 1, 1))
    motion[:, 1] = [skinned_shapes.about(Rotation.from_rotvec(turn).as_matrix(), outside) for turn in turns]
    points = np.concatenate([rest, np.ones((len(rest), 1))], axis=1)
    design = design_matrix(points, (rest[:, :1] > inside[0]).astype(int), np.ones((len(rest), 1)), 2)
    data = design @ to_rows(motion)
    equations = NormalEquations(2, data.shape[1])
    equations.add(design, data)
    skeleton = MovingJoints(np.array([inside, outside]), np.array([-1, 0]), np.array([inside, inside]))
    surface, most = BodySurface(rest, triangles), 1e-4 * float(np.square(data).sum())
    moved = skeleton.draw_into_body(equations, motion, surface, most)
    told = axes == [1, 1, 1]
    assert surface.inside(skeleton.heads[1:])[0] != told
    assert equations.squared_error(to_rows(moved)) + float(np.square(data).sum()) <= most
    if told:
        np.testing.assert_array_equal(skeleton.heads[1], outside)
    else:
        # It stays there.
        drawn = skeleton.heads.copy()
        skeleton.moved(equations, moved, 3)
        np.testing.assert_array_equal(skeleton.heads, drawn)
