# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion for given weights: ground truth, fixed joints, given bones, and bad input."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.bone_order import parents_first
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose, skin_frame
from skinning_tools.core.decomposition.partial_transforms import Joints, solve_transforms
from skinning_tools.core.errors import BadAnimation, BadSettings, BadWeights, Cancelled

from .sequences import random_rig, sheet


def e_rms(animation, rest, bones, weights, transforms) -> float:
    meter = ErrorMeter(unit_scale(animation.frames), len(rest))
    for positions, matrices in zip(animation.frames, transforms, strict=True):
        meter.add(positions, skin_frame(rest, bones, weights, matrices))
    return meter.e_rms


@pytest.fixture
def wolf(shared_data):
    """Animation, rest, bones, weights and transforms of exact skinning with rigid bones."""
    data = np.load(shared_data("wolf_ground_truth.npz"))
    weights = data["weights"] / data["weights"].sum(axis=1, keepdims=True)
    bones = np.tile(np.arange(weights.shape[1]), (len(weights), 1))
    return Animation(data["frames"], data["triangles"]), data["rest"], bones, weights, data["transforms"]


def tree(bone_count=8, frames=12, vertex_count=900, noise=0.0):
    """A branched chain whose bones turn about their joints, and a root that moves, too: as ``wolf``, and its Joints."""
    random = np.random.default_rng(1)
    heads = np.column_stack([np.arange(bone_count), np.zeros((bone_count, 2))])
    parents = np.arange(bone_count) - 1
    parents[5] = 2
    rest = np.column_stack([random.uniform(0, bone_count, vertex_count), 0.3 * random.normal(size=(vertex_count, 2))])
    distances = np.abs(rest[:, :1] - (np.arange(bone_count) + 0.5))
    bones = np.argsort(distances, axis=1)[:, :3]
    weights = np.exp(-3 * np.take_along_axis(distances, bones, axis=1))
    weights /= weights.sum(axis=1, keepdims=True)
    angles = np.cumsum(0.25 * random.normal(size=(frames, bone_count, 3)), axis=0)
    transforms = np.zeros((frames, bone_count, 3, 4))
    for frame in range(frames):
        for bone, parent in enumerate(parents):
            turn = Rotation.from_rotvec(angles[frame, bone]).as_matrix()
            above = transforms[frame, parent] if parent >= 0 else np.eye(3, 4)
            joint = above[:, :3] @ heads[bone] + above[:, 3] + (0.3 * random.normal(size=3) if parent < 0 else 0)
            transforms[frame, bone] = np.column_stack([turn, joint - turn @ heads[bone]])
    positions = np.array([skin_frame(rest, bones, weights, matrices) for matrices in transforms])
    positions += noise * random.normal(size=positions.shape)
    return Animation(positions, []), rest, bones, weights, transforms, Joints(heads, parents)


def gaps(transforms, joints: Joints) -> float:
    """The largest distance of a joint from where the bone's parent takes it."""
    places = np.einsum("fpij,pj->fpi", transforms[..., :3], joints.heads) + transforms[..., 3]
    held = np.flatnonzero(joints.parents >= 0)
    above = transforms[:, joints.parents[held]]
    taken = np.einsum("fpij,pj->fpi", above[..., :3], joints.heads[held]) + above[..., 3]
    return float(np.abs(places[:, held] - taken).max())


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_transforms_of_the_wolf_are_recovered(wolf, kind):
    animation, rest, bones, weights, transforms = wolf
    solved = solve_transforms(animation, rest, bones, weights, 21, kind)
    diagonal = np.linalg.norm(np.ptp(rest, axis=0))
    np.testing.assert_allclose(solved[..., :3], transforms[..., :3], atol=1e-4)
    np.testing.assert_allclose(solved[..., 3], transforms[..., 3], atol=1e-4 * diagonal)


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_no_worse_than_the_decomposition_that_the_weights_are_of(shared_data, kind):
    """Its own transforms were fitted to its weights and rest pose already, so there is next to nothing to gain."""
    data = np.load(shared_data("horse_collapse.npz"))
    animation = Animation(data["frames"], data["triangles"])
    result = decompose(animation, Settings(bone_count=6, bone_kind=kind))
    skin = result.rest, result.bones, result.weights
    solved = solve_transforms(animation, *skin, 6, kind, bone_axes=result.bone_axes)
    assert e_rms(animation, *skin, solved) <= 1.002 * result.e_rms


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_motion_about_joints_is_recovered(kind):
    animation, rest, bones, weights, transforms, joints = tree()
    solved = solve_transforms(animation, rest, bones, weights, 8, kind, joints=joints)
    np.testing.assert_allclose(solved, transforms, atol=1e-4)
    assert gaps(solved, joints) < 1e-12


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_joints_hold_where_the_animation_pulls_them_apart(wolf, kind):
    """The bones of the wolf move freely: joints between them cost accuracy, but still hold."""
    animation, rest, bones, weights, _ = wolf
    parents = np.arange(21) // 2 - 1
    shared = np.maximum(weights * weights[:, np.maximum(parents, 0)], 1e-12)
    joints = Joints((shared.T @ rest) / shared.sum(axis=0)[:, None], parents)
    free = solve_transforms(animation, rest, bones, weights, 21, kind)
    solved = solve_transforms(animation, rest, bones, weights, 21, kind, joints=joints)
    assert gaps(free, joints) > 1e-2
    assert gaps(solved, joints) < 1e-12
    # Free bones moved to their joints, from the root to the tips, are far worse than the fit.
    moved = free.copy()
    for bone in parents_first(parents):
        if parents[bone] >= 0:
            above, head = moved[:, parents[bone]], joints.heads[bone]
            moved[:, bone, :, 3] = (above[..., :3] - moved[:, bone, :, :3]) @ head + above[..., 3]
    assert e_rms(animation, rest, bones, weights, solved) < 0.8 * e_rms(animation, rest, bones, weights, moved)
    linear = solved[..., :3]
    if kind == "RIGID":
        np.testing.assert_allclose(
            linear.swapaxes(-1, -2) @ linear, np.broadcast_to(np.eye(3), linear.shape), atol=1e-9
        )


def test_noise_is_left_over_but_not_followed():
    animation, rest, bones, weights, transforms, joints = tree(noise=0.05)
    solved = solve_transforms(animation, rest, bones, weights, 8, "RIGID", joints=joints)
    assert e_rms(animation, rest, bones, weights, solved) <= e_rms(animation, rest, bones, weights, transforms)
    assert np.abs(solved[..., :3] - transforms[..., :3]).max() < 0.1


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_given_bones_stay_and_the_others_are_recovered(wolf, kind):
    animation, rest, bones, weights, transforms = wolf
    fixed = np.arange(21) % 3 == 0
    given = np.where(fixed[None, :, None, None], transforms, 7.0)
    solved = solve_transforms(animation, rest, bones, weights, 21, kind, given=given, fixed=fixed)
    assert np.array_equal(solved[:, fixed], given[:, fixed])
    np.testing.assert_allclose(solved, transforms, atol=1e-4 * np.linalg.norm(np.ptp(rest, axis=0)))


def test_joints_at_given_bones():
    animation, rest, bones, weights, transforms, joints = tree()
    fixed = np.arange(8) < 3
    solved = solve_transforms(animation, rest, bones, weights, 8, "RIGID", joints=joints, given=transforms, fixed=fixed)
    np.testing.assert_allclose(solved, transforms, atol=1e-4)


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_a_bone_without_vertices_stands_still_or_follows_its_joint(kind):
    animation, rest, bones, weights, _, joints = tree()
    heads, parents = np.vstack([joints.heads, [9.0, 0, 0], [5.0, 5, 5]]), np.append(joints.parents, [7, -1])
    solved = solve_transforms(animation, rest, bones, weights, 10, kind, joints=Joints(heads, parents))
    assert np.isfinite(solved).all()
    assert gaps(solved, Joints(heads, parents)) < 1e-12
    alone = solve_transforms(animation, rest, bones, weights, 10, kind)
    np.testing.assert_allclose(alone[:, 9], np.broadcast_to(np.eye(3, 4), (12, 3, 4)), atol=1e-9)


def test_vertices_without_weights_do_not_count():
    animation, rest, bones, weights, transforms, joints = tree()
    frames = animation.frames.copy()
    frames[:, :100] += 3.0
    weights = weights.copy()
    weights[:100] = 0.0
    solved = solve_transforms(Animation(frames, []), rest, bones, weights, 8, "RIGID", joints=joints)
    np.testing.assert_allclose(solved, transforms, atol=1e-4)


def test_the_same_in_every_run(wolf):
    animation, rest, bones, weights, _ = wolf
    first, second = (solve_transforms(animation, rest, bones, weights, 21, "RIGID") for _ in range(2))
    assert np.array_equal(first, second)


def test_bad_input(wolf):
    animation, rest, bones, weights, _ = wolf
    with pytest.raises(BadSettings, match="Bone kind must be one of"):
        solve_transforms(animation, rest, bones, weights, 21, "SOFT")
    with pytest.raises(BadSettings, match="5 vertices"):
        solve_transforms(animation, rest[:5], bones, weights, 21)
    with pytest.raises(BadWeights, match="do not fit"):
        solve_transforms(animation, rest, bones[:9], weights[:9], 21)
    with pytest.raises(BadWeights, match="not among the armature's 20"):
        solve_transforms(animation, rest, bones, weights, 20)
    with pytest.raises(BadWeights, match="has weights"):
        solve_transforms(animation, rest, bones, 0 * weights, 21)
    with pytest.raises(BadAnimation, match="1 frame"):
        solve_transforms(Animation(animation.frames[:1], animation.triangles), rest, bones, weights, 21)
    with pytest.raises(BadSettings, match="its own ancestor"):
        solve_transforms(
            animation, rest, bones, weights, 21, "RIGID", joints=Joints(np.zeros((21, 3)), (np.arange(21) + 1) % 21)
        )


def test_cancelled(wolf):
    animation, rest, bones, weights, _ = wolf
    for kind in BONE_KINDS:
        with pytest.raises(Cancelled):
            solve_transforms(
                animation, rest, bones, weights, 21, kind, progress=lambda fraction, stage: fraction < 0.31
            )


RIGS = st.tuples(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 40), st.integers(2, 6), st.booleans())


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(rig=RIGS, noise=st.sampled_from([0.0, 1e-3, 1.0]))
def test_no_affine_motion_is_better(rig, noise):
    """Not the one that the animation was made by, either."""
    rest, bones, weights, transforms = random_rig(*rig)
    frames = np.array([skin_frame(rest, bones, weights, matrices) for matrices in transforms])
    animation = Animation(frames + noise * np.random.default_rng(0).normal(size=frames.shape), [])
    solved = solve_transforms(animation, rest, bones, weights, bones.shape[1])
    true = e_rms(animation, rest, bones, weights, transforms)
    # The error allowed for damping directions that the vertices do not determine.
    assert e_rms(animation, rest, bones, weights, solved) <= true * (1 + 1e-6) + 0.1


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(rig=RIGS, kind=st.sampled_from(BONE_KINDS))
def test_bones_that_share_no_vertex_are_exact(rig, kind):
    rest, bones, weights, transforms = random_rig(*rig)
    weights = (weights == weights.max(axis=1, keepdims=True)).astype(float)
    animation = Animation([skin_frame(rest, bones, weights, matrices) for matrices in transforms], [])
    solved = solve_transforms(animation, rest, bones, weights, bones.shape[1], kind)
    assert e_rms(animation, rest, bones, weights, solved) < 1e-2


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_far_from_the_origin_as_at_it(kind):
    """A flat sheet in steps that single precision holds at both places."""
    frames = np.round(64 * sheet()[0]) / 8
    rest, weights = frames[0], np.linspace([0, 1], [1, 0], frames.shape[1])
    bones, errors = np.tile([0, 1], (len(rest), 1)), []
    for offset in (0.0, 2.0**20):
        animation = Animation(frames + offset, [])
        solved = solve_transforms(animation, rest + offset, bones, weights, 2, kind)
        errors.append(e_rms(animation, rest + offset, bones, weights, solved))
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)
