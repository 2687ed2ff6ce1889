# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons that were edited: weights to start from, and weights that hold when they are posed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition.again import EditedSkeleton, solve_again
from skinning_tools.core.decomposition.first_weights import first_weights
from skinning_tools.core.decomposition.partial import Given
from skinning_tools.core.decomposition.partial_transforms import Joints
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import Cancelled
from skinning_tools.core.strongest import strongest_bones
from tests.core import skinned_shapes

REST = np.stack([np.arange(9.0), np.zeros(9), np.zeros(9)], axis=1)
EDGES = np.stack([np.arange(8), np.arange(1, 9)], axis=1)
PARENTS = np.array([-1, 0, 1])
NO_EDGES = np.zeros((0, 2), int)


def ends(*bounds):
    return np.array([[[start, 0, 0], [end, 0, 0]] for start, end in bounds], float)


def edited(heads, motion, parents=PARENTS):
    """A skeleton of bones that nobody has touched, with their joints at ``heads``."""
    none, bone_ends = np.zeros(len(heads), bool), np.stack([heads, heads + np.array([1.0, 0, 0])], axis=1)
    return EditedSkeleton(Joints(heads, parents), parents, bone_ends, motion, none, none, ~none)


def test_vertices_of_a_removed_bone_go_to_their_neighbors():
    bones = np.array([[0]] * 3 + [[0]] * 3 + [[2]] * 3)
    weights = np.array([[1.0]] * 3 + [[0.0], [0.1], [0.0]] + [[1.0]] * 3)
    found = first_weights(REST, EDGES, bones, weights, ends((0, 2), (40, 41), (6, 8)), PARENTS)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    assert strongest_bones(found.bones, found.weights)[[0, 3, 4, 5, 8]].tolist() == [0, 0, 0, 2, 2]
    assert np.flatnonzero(found.lost).tolist() == [3, 4, 5]
    # Merged with it: bone 0 runs past two of them now.
    merged = first_weights(REST, EDGES, bones, weights, ends((0, 4.5), (40, 41), (6, 8)), PARENTS)
    assert np.flatnonzero(merged.lost).tolist() == [5]


def test_a_new_bone_takes_the_nearest_vertices_of_the_bones_beside_it():
    bones, weights = np.array([[0]] * 7 + [[2]] * 2), np.ones((9, 1))
    # Bone 0 was cut in two, of which bone 1 is the end; bone 2 lies on it but hangs elsewhere.
    parents = np.array([-1, 0, -1])
    found = first_weights(REST, EDGES, bones, weights, ends((0, 3), (3, 8), (50, 51)), parents)
    assert found.bones[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2]
    np.testing.assert_array_equal(found.weights[:, 0], 1)
    assert found.new.tolist() == [False, True, False]
    assert not found.lost.any()


@pytest.mark.parametrize("locked", [0, 1])
def test_new_bones_and_locked_ones_take_nothing_from_each_other(locked):
    given = REST, EDGES, np.zeros((9, 1), int), np.ones((9, 1)), ends((0, 3), (3, 8)), np.array([-1, 0])
    found = first_weights(*given, locked=np.arange(2) == locked)
    np.testing.assert_array_equal(strongest_bones(found.bones, found.weights), 0)


def test_a_new_bone_leaves_weaker_influences_of_locked_bones():
    bones, weights = np.tile([0, 2], (9, 1)), np.tile([0.8, 0.2], (9, 1))
    given = REST, EDGES, bones, weights, ends((0, 3), (3, 8), (50, 51)), np.array([-1, 0, -1])
    found = first_weights(*given, locked=np.arange(3) == 2)
    shares = skinned_shapes.dense(found.bones, found.weights, 3)
    np.testing.assert_allclose(shares[:, 2], 0.2)
    np.testing.assert_allclose(shares[:, 1], 0.8 * (REST[:, 0] > 3))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


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
    stored = Given(bones, weights, np.array([False, False, locked]), np.zeros(len(rest), bool))
    animation = Animation(frames.astype(np.float32), triangles)
    found = solve_again(animation, rest, NO_EDGES, stored, edited(heads, motion), 2)
    last = np.where(found.bones == 2, found.weights, 0.0).sum(axis=1)
    turned = 2 * np.sin(np.pi / 8) * last * np.linalg.norm(rest - heads[2], axis=1)
    if locked:
        np.testing.assert_allclose(last[near], 0.05)
    else:
        assert turned[near].max() <= 0.02 * np.linalg.norm(np.ptp(rest, axis=0))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)


def bending_bar():
    """Rest pose, triangles, bones, weights, heads, motion and frames of a bar that bends in its middle."""
    rest, triangles = skinned_shapes.cuboid()
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], [3.0], reach=0.4)
    heads, motion = np.array([[0.0, 0, 0], [3.0, 0, 0]]), np.tile(np.eye(3, 4), (6, 2, 1, 1))
    for frame, angle in enumerate(np.linspace(0, 0.6, 6)):
        motion[frame, 1] = skinned_shapes.about(Rotation.from_rotvec([0, 0, angle]).as_matrix(), heads[1])
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    return rest, triangles, bones, weights, heads, motion, frames


def test_each_step_of_joints_can_be_cancelled():
    rest, triangles, bones, weights, heads, motion, frames = bending_bar()
    stored = Given(bones, weights, np.zeros(2, bool), np.zeros(len(rest), bool))
    skeleton = replace(edited(heads, motion, np.array([-1, 0])), movable=np.array([False, True]))
    given, stages = (Animation(frames.astype(np.float32), triangles), rest, NO_EDGES, stored, skeleton, 2), []

    def progress(_, stage):
        stages.append(stage)
        return stages.count("Joints") < 2

    with pytest.raises(Cancelled):
        solve_again(*given, progress)
    assert stages.count("Joints") == 2


def test_what_counts_more_is_closer():
    """Rigid bones cannot follow a bar of which one half grows."""
    rest, triangles, bones, weights, heads, motion, frames = bending_bar()
    frames += 0.2 * np.arange(6)[:, None, None] * rest * (rest[:, 1:2] > rest[:, 1].mean())
    counted = rest[:, 1] > rest[:, 1].mean()
    stored = Given(bones, weights, np.zeros(2, bool), np.zeros(len(rest), bool))
    animation, skeleton = Animation(frames.astype(np.float32), triangles), edited(heads, motion, np.array([-1, 0]))
    errors = []
    for importance in (None, np.where(counted, 10.0, 1.0)):
        found = solve_again(animation, rest, triangles[:, [0, 1]], stored, skeleton, 2, importance=importance)
        shown = np.array([skin_frame(rest, found.bones, found.weights, each) for each in found.transforms])
        errors.append(np.square(shown - frames).sum(axis=(0, 2)))
    plain, weighed = errors
    assert weighed[counted].sum() < 0.8 * plain[counted].sum()
    assert np.where(counted, 10.0, 1.0) @ weighed < np.where(counted, 10.0, 1.0) @ plain


def test_what_lies_on_a_body_does_not_take_it_over_when_the_bone_of_that_is_gone():
    """A pouch moves exactly like the part that has lost its bone; at its ends are two others, which turn."""
    rest, triangles = skinned_shapes.cuboid()
    heads = np.array([[0.0, 0, 0], [4.0, 0, 0], [3.0, 0, 0]])
    bones = np.where(rest[:, :1] < 2.0, 0, 1)
    weights = np.where((rest[:, :1] > 2.0) & (rest[:, :1] < 4.0), 0.0, 1.0)
    pouch = np.argsort(np.linalg.norm(rest - [3.0, 0, 0], axis=1))[:2]
    bones[pouch], weights[pouch] = 2, 1.0
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    shown = np.where(weights > 0, bones, 2)
    for frame, angle in enumerate(np.linspace(0, 0.3, 6)):
        motion[frame, 0] = skinned_shapes.about(Rotation.from_rotvec([angle, 0, 0]).as_matrix(), heads[0])
        motion[frame, 1] = skinned_shapes.about(Rotation.from_rotvec([0, angle, 0]).as_matrix(), heads[1])
        motion[frame, 2, :, 3] = [0, 0, angle]
    frames = np.array([skin_frame(rest, shown, np.ones_like(weights), each) for each in motion])
    stored = Given(bones, weights, np.zeros(3, bool), np.zeros(len(rest), bool))
    animation, skeleton = Animation(frames.astype(np.float32), triangles), edited(heads, motion, np.full(3, -1))
    fractions = []
    found = solve_again(
        animation, rest, triangles[:, [0, 1]], stored, skeleton, 2, lambda done, _: fractions.append(done)
    )
    assert fractions == sorted(fractions), "nor does the progress go back where weights are solved once more"
    assert found.kept_small.tolist() == [False, False, True]
    owners = strongest_bones(found.bones, found.weights)
    assert np.flatnonzero(owners == 2).tolist() == sorted(pouch.tolist())
    kept = weights[:, 0] > 0
    np.testing.assert_array_equal(owners[kept], bones[kept, 0])
    np.testing.assert_array_equal(found.lost, ~kept)
    # Solved once more, nothing changes hands, either.
    stored = replace(stored, bones=found.bones, weights=found.weights)
    skeleton = replace(skeleton, motion=found.transforms)
    found = solve_again(animation, rest, triangles[:, [0, 1]], stored, skeleton, 2, lost=found.lost)
    owners = strongest_bones(found.bones, found.weights)
    np.testing.assert_array_equal(owners[kept], bones[kept, 0])


def test_new_bones_that_move_alike_keep_to_their_vertices():
    """One bone has led both legs, and each gets one of its own: the motion does not tell them apart."""
    body, triangles = skinned_shapes.cuboid(columns=12, rows=6, length=2.0)
    places = np.array([[0.0, 0, 3.0], [0.0, 2.0, 0.0], [0.0, -2.0, 0.0]])
    rest = np.concatenate([body + place for place in places])
    faces = np.concatenate([triangles + number * len(body) for number in range(3)])
    part = np.repeat(np.arange(3), len(body))
    bones, weights = np.minimum(part, 1)[:, None].astype(np.int32), np.ones((len(rest), 1))
    heads = np.array([[0.0, 0.0, 3.0], [1.0, 0.0, 1.0], [0.0, 2.0, 0.5], [0.0, -2.0, 0.5]])
    motion = np.tile(np.eye(3, 4), (8, 4, 1, 1))
    for frame, angle in enumerate(np.linspace(0.0, 0.8, 8)):
        motion[frame, 1:] = skinned_shapes.about(Rotation.from_rotvec([0, angle, 0]).as_matrix(), heads[1])
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    frames += np.random.default_rng(5).normal(scale=0.01, size=frames.shape)
    parents, known = np.array([-1, 0, 1, 1]), np.array([True, True, False, False])
    bone_ends = np.stack([heads, heads + np.array([2.0, 0, 0])], axis=1)
    none = np.zeros(4, bool)
    skeleton = EditedSkeleton(Joints(heads, parents), parents, bone_ends, motion, none, none, known)
    stored = Given(bones, weights, none, np.zeros(len(rest), bool))
    found = solve_again(Animation(frames.astype(np.float32), faces), rest, NO_EDGES, stored, skeleton, 4)
    shares = skinned_shapes.dense(found.bones, found.weights, 4)
    np.testing.assert_array_equal(shares[part == 1, 3], 0.0)
    np.testing.assert_array_equal(shares[part == 2, 2], 0.0)


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("noted", [False, True])
def test_vertices_of_a_removed_bone_do_not_follow_one_elsewhere_that_moves_alike(locked, noted):
    """A bar without the bone of one end: the other end moves like it, and the middle two do not.

    ``locked``: the bone around the lost end; the next one on the surface takes it then. ``noted``: in an earlier solve,
    the other end had it.
    """
    rest, triangles = skinned_shapes.cuboid()
    owners = np.digitize(rest[:, 0], [1.5, 3.0, 4.5]) - 1
    lost, heads = owners < 0, np.array([[1.5, 0, 0], [3.0, 0, 0], [4.5, 0, 0]])
    bones = np.where(lost, 2 if noted else 0, owners)[:, None]
    weights = np.where(lost & (not noted), 0.0, 1.0)[:, None]
    if not noted:
        bones, weights = np.column_stack([bones, np.full(len(rest), 2)]), np.column_stack([weights, 0.3 * lost])
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    for frame, angle in enumerate(np.linspace(0, 0.6, 6)):
        motion[frame, 1] = skinned_shapes.about(Rotation.from_rotvec([angle, 0, 0]).as_matrix(), heads[1])
        motion[frame, 2, :, 3] = [0, 0, angle]
    shown = np.where(lost, 2, owners)[:, None]
    frames = np.array([skin_frame(rest, shown, np.ones(shown.shape), each) for each in motion])
    stored = Given(bones, weights, np.array([locked, False, False]), np.zeros(len(rest), bool))
    animation, skeleton = Animation(frames.astype(np.float32), triangles), edited(heads, motion, PARENTS)
    found = solve_again(
        animation, rest, triangles[:, [0, 1]], stored, skeleton, 2, lost=lost if noted else None, smoothness=0.1
    )
    np.testing.assert_array_equal(found.lost, lost)
    taken = np.where(found.bones == int(locked), found.weights, 0.0).sum(axis=1)
    np.testing.assert_allclose(taken[lost], 1.0)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("other", [0, 1])
def test_a_bone_that_moves_as_another_keeps_its_weights(locked, other):
    """Its parent, or the other end, would explain them as well; where the other bones are locked, nothing else is left
    to solve."""
    rest, triangles = skinned_shapes.cuboid(30, 6)
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], [2.5, 4.0], reach=0.4)
    heads, random = np.array([[0.0, 0, 0], [2.5, 0, 0], [4, 0, 0]]), np.random.default_rng(6)
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    motion[:, 1] = [
        skinned_shapes.about(turn, heads[1]) for turn in Rotation.from_rotvec(random.normal(size=(6, 3))).as_matrix()
    ]
    motion[:, 2] = motion[:, other]
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    frames += random.normal(scale=1e-3, size=frames.shape)
    stored = Given(bones, weights, np.array([locked, locked, False]), np.zeros(len(rest), bool))
    skeleton = edited(heads, motion, np.array([-1, 0, other]))
    given = Animation(frames.astype(np.float32), triangles), rest, triangles[:, [0, 1]], stored, skeleton
    found = solve_again(*given, 3, smoothness=0.3)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    if not locked:
        now = skinned_shapes.dense(found.bones, found.weights, 3)
        smaller = min(other, 2, key=lambda bone: weights[:, bone].sum())
        np.testing.assert_allclose(now[:, smaller], weights[:, smaller], atol=1e-12)
        # The noise moves weights of others a little.
        np.testing.assert_allclose(now, weights, atol=0.01)


@pytest.mark.parametrize("locks", [False, True])
def test_solving_again_and_again_never_raises_the_error(locks):
    """``locks``: of every third vertex, which has more influences than the others may have."""
    rest, triangles = skinned_shapes.cuboid(30, 6)
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], [2.0, 4.0], reach=1.0)
    locked = np.zeros(len(rest), bool)
    if locks:
        locked[::3], weights = True, 0.8 * weights + 0.2 / 3
    heads = np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]])
    random = np.random.default_rng(4)
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    for frame, bone in np.ndindex(6, 3):
        turned = skinned_shapes.about(Rotation.from_rotvec(0.5 * random.normal(size=3)).as_matrix(), heads[bone])
        above = np.vstack([motion[frame, max(bone - 1, 0)], [0, 0, 0, 1]]) if bone else np.eye(4)
        motion[frame, bone] = above[:3] @ np.vstack([turned, [0, 0, 0, 1]])
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    frames += random.normal(scale=0.05, size=frames.shape)
    animation = Animation(frames.astype(np.float32), triangles)
    errors = []
    for _ in range(4):
        stored, skeleton = Given(bones, weights, np.zeros(3, bool), locked), edited(heads, motion)
        found = solve_again(animation, rest, triangles[:, [0, 1]], stored, skeleton, 2, smoothness=0.3)
        bones, weights, motion = found.bones, found.weights, found.transforms
        assert (weights[~locked] > 0).sum(axis=1).max() <= 2
        errors.append(np.square(np.array([skin_frame(rest, bones, weights, each) for each in motion]) - frames).mean())
    assert (np.diff(errors) <= 1e-9 * errors[0]).all(), errors
