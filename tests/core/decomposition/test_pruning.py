# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones that are not needed go; those of parts that move on their own stay."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Settings, decompose
from skinning_tools.core.decomposition.bone_kinds import StiffBones
from skinning_tools.core.decomposition.bone_model import homogeneous
from skinning_tools.core.decomposition.prepared import Prepared
from skinning_tools.core.decomposition.pruning import prune_bones
from skinning_tools.core.decomposition.reduction import AnimationMatrix, reduce_animation
from skinning_tools.core.decomposition.skin import Skin
from skinning_tools.core.decomposition.transforms import to_rows
from skinning_tools.core.decomposition.vertex_step import VertexState
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadSettings
from skinning_tools.core.progress import ignore
from skinning_tools.core.solve_effort import Effort
from skinning_tools.core.strongest import strongest_bones, strongest_first
from tests.core import skinned_shapes

FRAMES = 12


def bar(joints, turn=0.5, noise=0.0):
    """An animation of a bar that bends sharply at each of ``joints``, in all directions."""
    rest, triangles = skinned_shapes.cuboid()
    part = np.searchsorted(joints, rest[:, 0])
    random = np.random.default_rng(4)
    turns = np.concatenate([np.zeros((1, len(joints), 3)), turn * random.normal(size=(FRAMES - 1, len(joints), 3))])
    frames = []
    for rotations in turns:
        whole, placed = np.eye(4), rest.copy()
        for number, (joint, rotation) in enumerate(zip(joints, rotations, strict=True), start=1):
            step = skinned_shapes.about(Rotation.from_rotvec(rotation).as_matrix(), [joint, 0, 0])
            whole = whole @ np.vstack([step, [0, 0, 0, 1]])
            mine = part == number
            placed[mine] = rest[mine] @ whole[:3, :3].T + whole[:3, 3]
        frames.append(placed + noise * random.normal(size=rest.shape))
    return Animation(np.array(frames, np.float32), triangles)


def along_y(animation):
    """Each part of a bar then mirrors itself in x."""
    return Animation(animation.frames[..., [2, 0, 1]], animation.triangles)


def pruned(matrix, motion, state, triangles, optimize_rest_pose=True):
    """The Skin that is left of bones with the motion (F, P, 3, 4) and the vertices ``state``."""
    reduction = reduce_animation(matrix, 1e-6)
    skin = Skin(StiffBones(matrix, reduction, scaled=False), to_rows(motion), state)
    skin = replace(skin, errors=(skin.squared_error(),))
    return prune_bones(skin, Prepared(triangles, matrix, reduction), optimize_rest_pose, ignore)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_as_many_bones_as_parts(noise):
    animation = bar((2.0, 4.0), noise=noise)
    result = decompose(animation, Settings(bone_count=12, bone_kind="RIGID", prune=True))
    assert result.bone_count == 3
    assert set(np.unique(result.bones[result.weights > 0])) == {0, 1, 2}
    strongest = result.bones[np.arange(len(result.bones)), result.weights.argmax(axis=1)]
    part = np.searchsorted((2.0, 4.0), animation.frames[0, :, 0])
    clear = np.abs(animation.frames[0, :, 0][:, None] - (2.0, 4.0)).min(axis=1) > 0.3
    assert all(len(np.unique(strongest[clear & (part == number)])) == 1 for number in range(3))
    assert result.e_rms < 1.0 + 300 * noise


def test_a_small_part_keeps_its_bone():
    assert decompose(along_y(bar((5.6,))), Settings(bone_count=10, bone_kind="RIGID", prune=True)).bone_count == 2


@pytest.mark.parametrize("sample", [0, 800])
def test_a_part_that_turns_little_stays_if_the_other_side_has_it(sample):
    """The bar is symmetric about its middle, x = 3; one end turns less than what a bone is worth alone."""
    animation = bar((1.2, 4.8), turn=np.array([[0.006], [0.5]]), noise=0.0005)
    effort = Effort(sweeps=6, held=2, sample=sample, sample_sweeps=15) if sample else None
    settings = Settings(bone_count=10, bone_kind="RIGID", prune=True, effort=effort)
    mirrored, alone = decompose(animation, settings), decompose(along_y(animation), settings)
    assert (mirrored.bone_count, alone.bone_count) == (3, 2)
    assert mirrored.e_rms < 0.5 * alone.e_rms
    x, strongest = animation.frames[0, :, 0], strongest_bones(mirrored.bones, mirrored.weights)
    sides = [np.unique(strongest[part]) for part in (x < 0.8, (x > 1.6) & (x < 4.4), x > 5.2)]
    assert sorted(np.concatenate(sides)) == [0, 1, 2]
    settings = replace(settings, bone_count=2)
    assert decompose(animation, settings).bone_count == 2


def test_what_stands_still_gets_no_bone():
    """Its weights would be arbitrary."""
    assert decompose(bar((4.8,)), Settings(bone_count=10, bone_kind="RIGID", prune=True)).bone_count == 2


def test_a_part_that_turns_in_few_frames_keeps_its_bone():
    animation = bar((2.0, 4.0))
    still = np.repeat(animation.frames[:1], 28, axis=0)
    animation = Animation(np.concatenate([still, animation.frames[:4]]), animation.triangles)
    assert decompose(animation, Settings(bone_count=9, bone_kind="RIGID", prune=True)).bone_count == 3


@pytest.mark.parametrize(("noise", "count"), [(0.0, 6), (0.01, 5)])
def test_a_part_that_turns_little_keeps_its_bone_where_all_else_is_explained(noise, count):
    """The error is many times as large without it; among noise, nobody could tell."""
    animation = along_y(bar((1.0, 2.0, 3.0, 4.0, 5.0), np.array([[0.5], [0.5], [0.01], [0.5], [0.5]]), noise))
    assert decompose(animation, Settings(bone_count=16, bone_kind="RIGID", prune=True)).bone_count == count


def test_parts_whose_motion_nobody_sees_get_no_bones():
    animation = along_y(bar((1.0, 2.0, 3.0, 4.0, 5.0), np.array([[0.5], [0.001], [0.5], [0.001], [0.5]])))
    assert decompose(animation, Settings(bone_count=12, bone_kind="RIGID", prune=True)).bone_count == 4


def test_nothing_changes_if_all_bones_are_needed():
    animation = bar((2.0, 4.0))
    plain = decompose(animation, Settings(bone_count=3, bone_kind="RIGID"))
    pruned = decompose(animation, Settings(bone_count=3, bone_kind="RIGID", prune=True))
    np.testing.assert_array_equal(pruned.transforms, plain.transforms)
    np.testing.assert_array_equal(pruned.weights, plain.weights)


def test_bones_without_vertices_and_copies_of_a_bone_go():
    animation = bar((3.0,))
    matrix = AnimationMatrix(animation.frames)
    solved = decompose(animation, Settings(bone_count=2, bone_kind="RIGID"))
    rest, transforms = matrix.from_object_space(solved.rest, solved.transforms)
    # Bones 2 and 3 are copies of 0 and 1, which share the vertices with them; 4 has none.
    copied = transforms[:, [0, 1, 0, 1, 0]]
    even = np.arange(len(rest))[:, None] % 2 == 0
    state = VertexState(
        np.column_stack([rest, np.ones(len(rest))]),
        np.where(even, solved.bones, solved.bones + 2).astype(np.int32),
        solved.weights,
    )
    found = pruned(matrix, copied, state, animation.triangles)
    assert found.bone_count == 2
    assert found.state.bones.max() == 1
    assert np.sqrt(max(found.errors[-1] + matrix.squared_norm, 0.0) / (matrix.height * len(rest))) < 1e-3


def test_bones_are_not_fitted_before_all_vertices_have_their_weights():
    """The bones are right, and only one is a copy: the first sweep after its removal leaves hardly an error."""
    rest, triangles = skinned_shapes.cuboid(columns=40, rows=6)
    joints, random = (1.2, 2.4, 3.6, 4.8), np.random.default_rng(4)
    own, weights = skinned_shapes.chain_weights(rest[:, 0], joints, reach=1.2)
    motion = np.tile(np.eye(4), (FRAMES, 5, 1, 1))
    for frame in range(1, FRAMES):
        for bone, joint in enumerate(joints, start=1):
            turn = Rotation.from_rotvec(0.6 * random.normal(size=3)).as_matrix()
            motion[frame, bone, :3] = motion[frame, bone - 1, :3] @ np.vstack(
                [skinned_shapes.about(turn, [joint, 0, 0]), [0, 0, 0, 1]]
            )
    animation = Animation(np.array([skin_frame(rest, own, weights, each[:, :3]) for each in motion]), triangles)
    matrix = AnimationMatrix(animation.frames)
    points, transforms = matrix.from_object_space(rest, motion[:, :, :3])
    bones, weights = strongest_first(own, weights, 4)
    even = np.arange(len(rest))[:, None] % 2 == 0
    bones = np.where((bones == 2) & even, 5, bones).astype(np.int32)
    state = VertexState(homogeneous(points), bones, weights)
    found = pruned(matrix, transforms[:, [0, 1, 2, 3, 4, 2]], state, triangles)
    assert found.bone_count == 5
    # The first one is of the skin as it was.
    assert np.sqrt(max(found.errors[1] + matrix.squared_norm, 0.0) / (FRAMES * len(rest))) < 1e-5


@pytest.mark.parametrize("reach", [0.01, 0.8])
def test_bones_whose_blend_moves_a_rigid_part_become_its_bone(reach):
    """None of four can go alone: each is off the part's motion, and only their weighted mean is not."""
    rest, triangles = skinned_shapes.cuboid(columns=40, rows=6)
    bones, share = skinned_shapes.chain_weights(rest[:, 0], [3.0], reach)
    turns = Rotation.from_rotvec(0.5 * np.random.default_rng(6).normal(size=(FRAMES, 3))).as_matrix()
    still = np.tile(np.eye(3, 4), (FRAMES, 1, 1))
    turning = np.array([skinned_shapes.about(turn, [3.0, 0, 0]) for turn in turns])
    pair = np.stack([still, turning], axis=1)
    matrix = AnimationMatrix(np.array([skin_frame(rest, bones, share, each) for each in pair]))
    offsets = 0.3 * np.array([[0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    off = np.repeat(turning[:, None], 4, axis=1)
    off[..., 3] += offsets
    # Half of the part follows the first two most, the other half the others.
    mine = np.where(rest[:, [0]] > 4.5, [0.3, 0.3, 0.2, 0.2], [0.2, 0.2, 0.3, 0.3])
    points, motion = matrix.from_object_space(rest, np.concatenate([still[:, None], off], axis=1))
    own = np.tile(np.arange(5, dtype=np.int32), (len(rest), 1))
    state = VertexState(homogeneous(points), *strongest_first(own, np.hstack([share[:, :1], share[:, 1:] * mine]), 5))
    found = pruned(matrix, motion, state, triangles, optimize_rest_pose=False)
    assert found.bone_count == 2
    assert np.sqrt(max(found.errors[-1] + matrix.squared_norm, 0.0) / (matrix.height * len(rest))) < 1e-3


@pytest.mark.parametrize(("count", "scattered", "kept"), [(16, False, True), (16, True, False), (2, False, False)])
def test_a_bone_of_scattered_or_very_few_vertices_is_no_part(count, scattered, kept):
    animation = bar((3.0,))
    solved = decompose(animation, Settings(bone_count=2, bone_kind="RIGID"))
    rest, transforms, bones = solved.rest, solved.transforms, strongest_bones(solved.bones, solved.weights)
    # Some vertices turn a little on their own, in one place or all over the bar.
    near = np.argsort(np.linalg.norm(rest - rest[0], axis=1))
    chosen = near[:: len(near) // count] if scattered else near[:count]
    under = transforms[:, bones[0], None]
    bones[chosen] = 2
    turns = np.random.default_rng(2).normal(scale=0.02 / rest[chosen].std(), size=(FRAMES, 3))
    about = [skinned_shapes.about(turn, rest[chosen].mean(axis=0)) for turn in Rotation.from_rotvec(turns).as_matrix()]
    own = under[..., :3] @ np.array(about)[:, None]
    own[..., 3] += under[..., 3]
    transforms = np.concatenate([transforms, own], axis=1)
    points = np.column_stack([rest, np.ones(len(rest))])
    matrix = AnimationMatrix(np.einsum("fnij,nj->fni", transforms[:, bones], points))
    points[:, :3], motion = matrix.from_object_space(rest, transforms)
    state = VertexState(points, bones[:, None].astype(np.int32), np.ones((len(rest), 1)))
    found = pruned(matrix, motion, state, animation.triangles, optimize_rest_pose=False)
    assert found.bone_count == (3 if kept else 2)


@pytest.mark.parametrize("given", [{"bone_kind": "AFFINE"}, {"bone_kind": "RIGID", "target_error": 1.0}])
def test_only_rigid_bones_without_a_target_error(given):
    with pytest.raises(BadSettings, match="rigid"):
        Settings(prune=True, **given)
