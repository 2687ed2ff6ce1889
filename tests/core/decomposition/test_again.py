# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons that were edited: weights to start from, and weights that hold when they are posed."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition.again import first_weights, solve_again
from skinning_tools.core.decomposition.partial import Given
from skinning_tools.core.decomposition.partial_transforms import Joints
from skinning_tools.core.deform import skin_frame
from tests.core import skinned_shapes

REST = np.stack([np.arange(9.0), np.zeros(9), np.zeros(9)], axis=1)
EDGES = np.stack([np.arange(8), np.arange(1, 9)], axis=1)
PARENTS = np.array([-1, 0, 1])


def ends(*bounds):
    return np.array([[[start, 0, 0], [end, 0, 0]] for start, end in bounds], float)


def test_vertices_of_a_removed_bone_go_to_their_neighbors():
    bones = np.array([[0]] * 3 + [[0]] * 3 + [[2]] * 3)
    weights = np.array([[1.0]] * 3 + [[0.0], [0.1], [0.0]] + [[1.0]] * 3)
    found, shares = first_weights(REST, EDGES, bones, weights, ends((0, 2), (40, 41), (6, 8)), PARENTS)
    np.testing.assert_array_equal(shares, 1)
    assert found[[0, 3, 5, 8], 0].tolist() == [0, 0, 2, 2]


def test_a_new_bone_takes_the_nearest_vertices_of_the_bones_beside_it():
    bones, weights = np.array([[0]] * 7 + [[2]] * 2), np.ones((9, 1))
    # Bone 0 was cut in two, of which bone 1 is the end; bone 2 lies on it but hangs elsewhere.
    parents = np.array([-1, 0, -1])
    found, shares = first_weights(REST, EDGES, bones, weights, ends((0, 3), (3, 8), (50, 51)), parents)
    assert found[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2]
    np.testing.assert_array_equal(shares.sum(axis=1), 1)


@pytest.mark.parametrize("locked", [False, True])
def test_weights_hold_when_the_skeleton_is_posed(locked):
    """One end of a bar follows the other end a little, by less than the noise."""
    rest, triangles = skinned_shapes.cuboid()
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], [2.0, 4.0], reach=0.4)
    near, heads = rest[:, 0] < 1.0, np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]])
    bones[near, :2], weights[near, :2] = [0, 2], [0.95, 0.05]
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    motion[:, 1, :, :3] = Rotation.from_rotvec(np.outer(np.linspace(0, 1.5, 6), [1, 0, 0])).as_matrix()
    for frame, angle in enumerate(np.linspace(0, 0.3, 6)):
        motion[frame, 2] = skinned_shapes.about(Rotation.from_rotvec([0, 0, angle]).as_matrix(), heads[2])
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    frames += np.random.default_rng(2).normal(scale=0.03, size=frames.shape)
    start = Given(bones, weights, np.array([False, False, locked]), np.zeros(len(rest), bool))
    found = solve_again(
        Animation(frames.astype(np.float32), triangles),
        rest,
        start,
        Joints(heads, np.array([-1, 0, 1])),
        2,
        parents=np.array([-1, 0, 1]),
        given=motion,
        fixed=np.zeros(3, bool),
    )
    last = np.where(found[1] == 2, found[2], 0.0).sum(axis=1)
    turned = 2 * np.sin(np.pi / 8) * last * np.linalg.norm(rest - heads[2], axis=1)
    if locked:
        np.testing.assert_allclose(last[near], 0.05)
    else:
        assert turned[near].max() <= 0.02 * np.linalg.norm(np.ptp(rest, axis=0))
    np.testing.assert_allclose(found[2].sum(axis=1), 1.0)


def test_solving_again_and_again_never_raises_the_error():
    rest, triangles = skinned_shapes.cuboid()
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], [2.0, 4.0], reach=1.0)
    heads, parents = np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]]), np.array([-1, 0, 1])
    random = np.random.default_rng(4)
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    for frame, bone in np.ndindex(6, 3):
        turned = skinned_shapes.about(Rotation.from_rotvec(0.5 * random.normal(size=3)).as_matrix(), heads[bone])
        above = np.vstack([motion[frame, max(bone - 1, 0)], [0, 0, 0, 1]]) if bone else np.eye(4)
        motion[frame, bone] = above[:3] @ np.vstack([turned, [0, 0, 0, 1]])
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    frames += random.normal(scale=0.05, size=frames.shape)
    animation, given = Animation(frames.astype(np.float32), triangles), motion
    errors = []
    for _ in range(4):
        start = Given(bones, weights, np.zeros(3, bool), np.zeros(len(rest), bool))
        given, bones, weights, _ = solve_again(
            animation,
            rest,
            start,
            Joints(heads, parents),
            2,
            parents=parents,
            given=given,
            fixed=np.zeros(3, bool),
            smoothness=0.3,
        )
        made = np.array([skin_frame(rest, bones, weights, each) for each in given])
        errors.append(np.square(made - frames).mean())
    assert (np.diff(errors) <= 1e-9 * errors[0]).all(), errors
