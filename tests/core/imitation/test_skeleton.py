# SPDX-License-Identifier: GPL-3.0-or-later
"""Random poses of a skeleton: repeatable, within their ranges, and composed as Blender composes them."""

import numpy as np
import pytest

from skinning_tools.core.errors import BadSettings
from skinning_tools.core.imitation.joined_limbs import joined_by_skin
from skinning_tools.core.imitation.skeleton import (
    Ranges,
    Skeleton,
    of_vectors,
    posed,
    random_turns,
    scaled,
    to_vectors,
    usual_ranges,
)
from skinning_tools.core.quaternions import to_matrices


def chain(count=4) -> Skeleton:
    """Bones of length 1 along x, turned differently about it."""
    rest = np.tile(np.eye(4), (count, 1, 1))
    for bone in range(count):
        turn = to_matrices(of_vectors(np.array([0.4 * bone, 0.0, 0.0])))
        rest[bone, :3, :3] = turn @ to_matrices(of_vectors(np.array([0.0, 0.0, -np.pi / 2])))
        rest[bone, 0, 3] = bone
    return Skeleton(np.arange(count) - 1, rest)


def test_the_same_seed_makes_the_same_turns():
    ranges = Ranges(np.full((5, 3), -1.0), np.full((5, 3), 0.5), np.zeros(5, bool))
    first, again, other = (random_turns(ranges, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("euler", [False, True])
def test_turns_stay_within_their_ranges_even_if_these_exclude_rest(euler):
    low, high = np.array([[-0.4, 0.0, -0.1], [0.2, -0.3, 0.5]]), np.array([[1.0, 0.2, 0.0], [0.6, 0.3, 0.5]])
    ranges = Ranges(low, high, np.full(2, euler))
    rng = np.random.default_rng(0)
    turns = np.array([random_turns(ranges, rng) for _ in range(200)])
    angles = _euler(to_matrices(turns)) if euler else to_vectors(turns)
    assert (angles >= low - 1e-9).all()
    assert (angles <= high + 1e-9).all()
    # Rest is not within the second.
    assert np.linalg.norm(angles[:, 1], axis=1).min() > 0.5


@pytest.mark.parametrize("above", [-1, 0])
@pytest.mark.parametrize("stretched", [False, True])
def test_a_foot_hangs_from_the_bone_that_it_stays_at(above, stretched):
    """Of a chain of bones with two vertices each, the last is a foot that follows a control beside the chain."""
    whole = chain()
    cut = Skeleton(np.array([-1, 0, 1, above]), whole.rest)
    points = np.repeat(whole.rest[:, :3, 3], 2, axis=0) + np.tile([[0.1, 0, 0], [0.9, 0, 0]], (4, 1))
    bones = np.array([[0, 0], [0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2], [3, 3]])
    skin = points, bones, np.tile([0.7, 0.3], (8, 1))
    motion = posed(whole, of_vectors(np.random.default_rng(1).uniform(-0.8, 0.8, (9, 4, 3))))
    if stretched:
        # The foot goes where no bone of the chain carries it.
        motion[:, 3, :, 3] += np.random.default_rng(2).normal(size=(9, 3))
    joined = joined_by_skin(cut, *skin, motion).parents
    assert joined.tolist() == [-1, 0, 1, 0 if stretched and above == 0 else 2]
    # Without actions, only what hangs from nothing is joined.
    assert joined_by_skin(cut, *skin, motion[:0]).parents[3] == (2 if above < 0 else 0)
    # And without common skin, nothing.
    assert joined_by_skin(cut, points, np.arange(8)[:, None] // 2, np.ones((8, 1)), motion).parents[3] == above


def _euler(matrices: np.ndarray) -> np.ndarray:
    """XYZ angles, X first, of rotations without a pitch near 90°."""
    return np.stack(
        [
            np.arctan2(matrices[..., 2, 1], matrices[..., 2, 2]),
            -np.arcsin(matrices[..., 2, 0]),
            np.arctan2(matrices[..., 1, 0], matrices[..., 0, 0]),
        ],
        axis=-1,
    )


def test_vectors_and_quaternions_invert_each_other():
    vectors = 0.6 * np.random.default_rng(1).normal(size=(50, 3))
    vectors[0] = 0.0
    assert np.allclose(to_vectors(of_vectors(vectors)), vectors, atol=1e-12)
    assert np.allclose(to_vectors(-of_vectors(vectors)), vectors, atol=1e-12)
    assert np.allclose(to_vectors(scaled(of_vectors(vectors), 0.3)), 0.3 * vectors, atol=1e-12)


def test_a_joint_turns_about_its_origin_and_carries_its_children():
    skeleton = chain()
    turns = of_vectors(np.zeros((1, 4, 3)))
    turns[0, 1] = of_vectors(np.array([0.0, 0.0, 0.7]))
    motion = posed(skeleton, turns)[0]
    assert np.allclose(motion[0], np.eye(4)[:3])
    assert np.allclose(motion[2], motion[1])
    origin = skeleton.rest[1, :3, 3]
    assert np.allclose(motion[1] @ [*origin, 1.0], origin)
    axes = skeleton.rest[1, :3, :3]
    assert np.allclose(axes.T @ motion[1][:, :3] @ axes, to_matrices(turns[0, 1]))


def test_turns_of_another_skeleton_are_refused():
    with pytest.raises(BadSettings, match="3 bones for a skeleton of 4"):
        posed(chain(), np.ones((1, 3, 4)))


def test_a_thin_branch_turns_farther_than_a_thick_one():
    skeleton = Skeleton(np.array([-1, 0, 0]), np.tile(np.eye(4), (3, 1, 1)))
    rng = np.random.default_rng(0)
    thick, thin = (rng.uniform(-1, 1, (300, 3)) * half for half in ([1.0, 0.9, 0.9], [1.0, 0.1, 0.1]))
    bones, weights = np.repeat([1, 2], 300)[:, None], np.ones((600, 1))
    ranges = usual_ranges(skeleton, np.vstack([thick, thin]), bones, weights)
    assert ranges.high[2, 0] > 1.5 * ranges.high[1, 0]
    assert np.array_equal(ranges.low, -ranges.high)


def test_neighbors_are_joints_only():
    assert chain(6).neighbors(2, 2) == [2, 1, 3, 4]
