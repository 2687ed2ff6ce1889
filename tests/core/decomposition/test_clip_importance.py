# SPDX-License-Identifier: GPL-3.0-or-later
"""Solves over several clips: how much each counts, the pull to present weights, and a rest shape that may move."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import skin_frame, solve_weights
from skinning_tools.core.decomposition.clip_importance import clip_errors, importance_of, mixed_poses
from skinning_tools.core.decomposition.helper_bones import add_helper_bones
from skinning_tools.core.decomposition.partial import Given, Joints, solve_skin
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.errors import BadSettings

from .sequences import random_rig

BONES, LENGTHS = 5, (6, 3, 15)
# Bones of ``random_rig`` are where they like.
JOINTS = Joints(np.zeros((BONES, 3)), np.full(BONES, -1))


@pytest.fixture(scope="module")
def rig():
    """Three clips whose target no weights reach: frames, rest, transforms, and present bones and weights (N, P)."""
    rest, bones, weights, transforms = random_rig(3, BONES, 60, sum(LENGTHS))
    random = np.random.default_rng(0)
    frames = np.array([skin_frame(rest, bones, weights, each) for each in transforms])
    sizes = np.repeat([0.02, 0.2, 0.5], LENGTHS)
    frames += sizes[:, None, None] * random.normal(size=frames.shape)
    present = random.dirichlet(np.full(BONES, 0.5), len(rest))
    return Animation(frames, []), rest, transforms, bones, present


def given(bones, weights) -> Given:
    return Given(bones, weights, np.zeros(BONES, bool), np.zeros(len(bones), bool))


def errors(rig, bones, weights, rest=None):
    animation, own, transforms = rig[:3]
    return clip_errors(animation.frames, own if rest is None else rest, transforms, bones, weights, LENGTHS)


def dense(bones, weights) -> np.ndarray:
    return weight_matrix(bones, weights, BONES).toarray()


def test_the_importance_of_frames():
    found = importance_of([2.0, 0.5], [4, 9])
    expected = np.repeat([1 / (2 * 2), 1 / (0.5 * 3)], [4, 9])
    np.testing.assert_allclose(found, expected * (found[0] / expected[0]))
    assert np.mean(found**2) == pytest.approx(1)
    # A clip without error does not outweigh all others, and without any error all count alike.
    few = importance_of([1.0, 0.0], [5, 5])
    assert few[-1] == pytest.approx(20 * few[0])
    np.testing.assert_allclose(importance_of([0.0, 0.0], [1, 4]) ** 2, [2.5, *[0.625] * 4])


def test_the_sum_over_clips_falls_most_if_their_importance_counts(rig):
    animation, rest, transforms, bones, present = rig
    before = errors(rig, bones, present)
    # With all bones allowed the fit is convex, so its optimum is the least of all.
    options = {"max_influences": BONES, "given": given(bones, present)}
    plain = solve_weights(animation, rest, transforms, **options)
    weighed = solve_weights(animation, rest, transforms, **options, importance=importance_of(before, LENGTHS))
    sums = [np.square(errors(rig, *each) / before).sum() for each in (plain, weighed)]
    assert sums[1] < 0.999 * sums[0]
    alike = solve_weights(animation, rest, transforms, **options, importance=np.full(sum(LENGTHS), 3.0))
    np.testing.assert_allclose(dense(*alike), dense(*plain), atol=1e-6)


def test_hold_pulls_to_the_present_weights(rig):
    animation, rest, transforms, bones, present = rig
    held = {"given": given(bones, present), "joints": JOINTS}
    changes, left = [], []
    for hold in (0.0, 0.3, 0.7, 0.95):
        found = solve_weights(animation, rest, transforms, 3, **held, hold=hold)
        assert np.count_nonzero(found[1], axis=1).max() <= 3
        changes.append(np.linalg.norm(dense(*found) - dense(bones, present)))
        left.append(np.linalg.norm(errors(rig, *found)))
    assert np.all(np.diff(changes) < 0)
    assert np.all(np.diff(left) > 0)
    kept = solve_weights(animation, rest, transforms, BONES, **held, hold=1.0)
    np.testing.assert_allclose(dense(*kept), dense(bones, present), atol=1e-4)
    with pytest.raises(BadSettings, match="Hold"):
        solve_weights(animation, rest, transforms, hold=-0.1)


def test_hold_means_the_same_in_any_unit(rig):
    animation, rest, transforms, bones, present = rig
    large = transforms.copy()
    large[..., 3] *= 1000
    held = {"given": given(bones, present), "joints": JOINTS, "hold": 0.5}
    small = solve_weights(animation, rest, transforms, BONES, **held)
    other = solve_weights(Animation(1000 * animation.frames, []), 1000 * rest, large, BONES, **held)
    np.testing.assert_allclose(dense(*small), dense(*other), atol=1e-4)


def test_hold_counts_with_smoothness_too(rig):
    animation, rest, transforms, bones, present = rig
    edges = np.column_stack([np.arange(59), np.arange(1, 60)])
    options = {"given": given(bones, present), "joints": JOINTS, "smoothness": 0.3, "edges": edges}
    free, held = (solve_weights(animation, rest, transforms, BONES, **options, hold=hold) for hold in (0.0, 0.99))
    change = [np.linalg.norm(dense(*each) - dense(bones, present)) for each in (free, held)]
    assert change[1] < 0.8 * change[0]


def chain_turns(joints: Joints, turned: list[int], count: int) -> np.ndarray:
    """(F, P, 3, 4) of the chain in which the joints ``turned`` turn at random."""
    random, found = np.random.default_rng(len(turned)), []
    for _ in range(count):
        pose = np.tile(np.eye(4), (BONES, 1, 1))
        for joint in turned:
            turn = np.eye(4)
            turn[:3, :3] = Rotation.from_rotvec(random.normal(scale=0.5, size=3)).as_matrix()
            turn[:3, 3] = joints.heads[joint] - turn[:3, :3] @ joints.heads[joint]
            pose[joint:] = pose[joint] @ turn
        found.append(pose[:, :3])
    return np.array(found)


def test_joints_that_stand_still_keep_their_weights():
    """Frames that bend one joint say nothing about the others, so an animation of these must not get worse."""
    joints = Joints(np.arange(BONES)[:, None] * [0.0, 0.0, 1.0], np.arange(BONES) - 1)
    random = np.random.default_rng(4)
    rest = random.uniform([-0.3, -0.3, 0], [0.3, 0.3, BONES], (200, 3))
    bones = np.tile(np.arange(BONES), (200, 1))
    soft, sharp = (np.exp(-((rest[:, 2:] - np.arange(BONES) - 0.5) ** 2) / width) for width in (0.4, 0.2))
    weights, wanted = soft / soft.sum(axis=1, keepdims=True), sharp / sharp.sum(axis=1, keepdims=True)

    def target(transforms):
        return np.array([skin_frame(rest, bones, wanted, each) for each in transforms])

    used, other = (chain_turns(joints, turned, 8) for turned in ([1], [2, 3]))
    animation, present = Animation(target(used), []), given(bones, weights)
    found = {kept: solve_weights(animation, rest, used, BONES, given=present, joints=kept) for kept in (joints, None)}

    def left(transforms, bones, weights):
        return clip_errors(target(transforms), rest, transforms, bones, weights, [len(transforms)])[0]

    before = {which: left(each, bones, weights) for which, each in (("used", used), ("other", other))}
    assert left(used, *found[joints]) < 0.1 * before["used"]
    assert left(other, *found[joints]) < 1.02 * before["other"]
    # Without the joints' turns it does get worse.
    assert left(other, *found[None]) > 2 * before["other"]


def test_vertices_without_weights_follow_the_motion_alone(rig):
    animation, rest, transforms, bones, present = rig
    loose = np.arange(len(rest)) < 20
    unbound = np.where(loose[:, None], 0.0, present)
    options = {"max_influences": BONES, "given": given(bones, unbound)}
    held = solve_weights(animation, rest, transforms, **options, joints=JOINTS, hold=0.9)
    free = solve_weights(animation, rest, transforms, **options)
    np.testing.assert_allclose(dense(*held)[loose], dense(*free)[loose], atol=1e-6)
    assert np.abs(dense(*held)[~loose] - present[~loose]).max() < np.abs(dense(*free)[~loose] - present[~loose]).max()


def test_the_rest_shape_that_was_moved_comes_back():
    rest, bones, weights, transforms = random_rig(5, BONES, 80, 12)
    frames = np.array([skin_frame(rest, bones, weights, each) for each in transforms])
    random = np.random.default_rng(1)
    size = np.linalg.norm(np.ptp(rest, axis=0))
    step = random.normal(size=rest.shape)
    step *= 0.004 * size / np.linalg.norm(step, axis=1, keepdims=True)
    locked = np.arange(80) < 10
    held = Given(bones, weights, np.zeros(BONES, bool), locked)
    solved = solve_skin(Animation(frames, []), rest + step, transforms, BONES, given=held, most_shift=0.005)
    np.testing.assert_array_equal(solved.rest[locked], (rest + step)[locked])
    left = np.linalg.norm(solved.rest - rest, axis=1)[~locked]
    assert left.max() < 0.25 * 0.004 * size
    shift = np.linalg.norm(solved.rest - rest - step, axis=1)
    assert 0 < shift.max() <= 0.005 * size * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["RIGID", "SCALED", "AFFINE"])
def test_helper_bones_stay_what_they_are_with_any_importance(rig, kind):
    animation, rest, transforms, bones, present = rig
    importance = importance_of(errors(rig, bones, present), LENGTHS)
    found = add_helper_bones(
        animation, rest, transforms, bones, present, 2, bone_kind=kind, max_influences=8, importance=importance
    )
    weighed = [
        np.linalg.norm(errors(rig, bones, present) / errors(rig, bones, present)),
        np.linalg.norm(_with_helpers(rig, found) / errors(rig, bones, present)),
    ]
    assert weighed[1] < weighed[0]
    linear = found.transforms[..., :3]
    if kind == "RIGID":
        np.testing.assert_allclose(linear @ linear.swapaxes(2, 3), np.broadcast_to(np.eye(3), linear.shape), atol=1e-9)
    if kind == "SCALED":
        along = linear @ found.bone_axes
        np.testing.assert_allclose(_off_diagonal(along.swapaxes(2, 3) @ along), 0.0, atol=1e-9)


def _off_diagonal(products):
    return products * (1 - np.eye(3))


def _with_helpers(rig, found):
    animation, rest, transforms = rig[:3]
    every = np.concatenate([transforms, found.transforms], axis=1)
    return clip_errors(animation.frames, rest, every, found.bones, found.weights, LENGTHS)


def test_mixed_poses_take_each_bone_from_one_of_two_frames():
    poses = np.arange(7.0)[:, None, None, None] * np.ones((1, 9, 4, 4))
    found = mixed_poses(poses, 20)
    np.testing.assert_array_equal(found, mixed_poses(poses, 20))
    kinds = [len(np.unique(pose[:, 0, 0])) for pose in found]
    assert max(kinds) == 2
    assert {*np.unique(found)} <= set(range(7))
