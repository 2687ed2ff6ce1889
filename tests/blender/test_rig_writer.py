# SPDX-License-Identifier: GPL-3.0-or-later
"""The written rig: its motion, its parts, and that nothing is left when writing fails."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender import actions, object_transform
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.features.convert import rig_bones, rig_writer
from skinning_tools.features.convert.rig_writer import write_error_attribute
from tests.blender import binding_scenes, rig_samples, scenes

pytestmark = pytest.mark.usefixtures("empty")


def positions_at(object, frame, subframe=0.0):
    """(N, 3) as Blender evaluates the user's own scene."""
    bpy.context.scene.frame_set(frame, subframe=subframe)
    return scenes.evaluated_positions(object)


# Motion


@pytest.mark.parametrize("kind", rig_samples.KINDS)
def test_blender_plays_the_decomposition(kind):
    _, source, rig = rig_samples.written(kind)
    size = np.abs(source.animation.frames).max()
    for row, number in enumerate(source.animation.frame_numbers):
        actual = positions_at(rig.object, int(number))
        assert np.abs(actual - source.animation.frames[row]).max() <= 1e-5 * size


@pytest.mark.parametrize("kind", rig_samples.KINDS)
def test_collapsed_and_flat_bones(kind):
    transforms = rig_samples.random_transforms(kind, 6, 4)
    if kind != "RIGID":
        axes = rig_samples.bone_axes(4)
        transforms[2:4, 0, :, :3] = 0
        transforms[1:5, 1, :, :3] = transforms[1:5, 1, :, :3] @ (axes[1] * [1, 0, 1] @ axes[1].T)
        transforms[:, 2, :, :3] = transforms[:, 2, :, :3] @ (axes[2] * [0, 1, 0] @ axes[2].T)
    result = rig_samples.decomposition(transforms, kind)
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    rig = rig_samples.write_rig(source, result)
    for row, expected in enumerate(source.animation.frames):
        assert np.abs(positions_at(rig.object, row + 1) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_frames_are_where_they_were_read():
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 5, 3))
    source = rig_samples.source_animation(rig_samples.cloud(result), result, first=-7, step=3)
    rig = rig_samples.write_rig(source, result)
    assert tuple(rig.action.frame_range) == (-7, 5)
    for row, number in enumerate((-7, -4, -1, 2, 5)):
        expected = source.animation.frames[row]
        assert np.abs(positions_at(rig.object, number) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(("old", "new"), [(100, 50), (10, 90), (25, 24)])
def test_a_scene_that_stretches_time(old, new):
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = old, new
    _, source, rig = rig_samples.written("RIGID")
    for expected, number in zip(source.animation.frames, source.animation.frame_numbers, strict=True):
        assert np.abs(positions_at(rig.object, int(number)) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3])
def test_between_frames_bones_that_spin_do_not_wobble(noise):
    transforms = rig_samples.smooth_transforms(12, 6, noise)
    result = rig_samples.decomposition(transforms)
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    rig = rig_samples.write_rig(source, result)
    # Half the angle, without noise, while the bone's head goes straight ahead.
    halfway = rig_samples.smooth_transforms(23, 6, 0.0, degrees=5.0)[1::2]
    heads = np.array([rig.armature.data.bones[name].head_local for name in rig.bone_names])[..., None]
    moved = transforms[..., :3] @ heads + transforms[..., 3:]
    halfway[..., 3:] = 0.5 * (moved[:-1] + moved[1:]) - halfway[..., :3] @ heads
    for row, expected in enumerate(rig_samples.skinned(result, halfway)):
        actual = positions_at(rig.object, row + 1, subframe=0.5)
        assert np.abs(actual - expected).max() < 2e-5 + 20 * noise


def test_far_from_the_origin_single_precision_is_used_well():
    """The positions differ by a few units in the last place at most."""
    offset = np.array([3e3, -2e3, 1e3])
    transforms = rig_samples.smooth_transforms(6, 4)
    # Spin about the mesh, not about the far origin.
    transforms[..., 3] += offset - transforms[..., :3] @ offset
    result = rig_samples.decomposition(transforms, offset=offset)
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    rig = rig_samples.write_rig(source, result)
    unit = np.finfo(np.float32).eps * np.abs(source.animation.frames).max()
    for row, expected in enumerate(source.animation.frames):
        assert np.abs(positions_at(rig.object, row + 1) - expected).max() <= 8 * unit


def test_a_tiny_mesh_keeps_its_bones():
    transforms = rig_samples.smooth_transforms(4, 3)
    transforms[..., 3] *= 1e-6
    result = rig_samples.decomposition(transforms)
    result.rest[:] *= 1e-6
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    rig = rig_samples.write_rig(source, result)
    assert len(rig.armature.data.bones) == 6
    for row, expected in enumerate(source.animation.frames):
        assert np.abs(positions_at(rig.object, row + 1) - expected).max() <= 1e-5 * np.abs(expected).max()


# What the rig consists of


def test_what_is_written_is_named_after_the_source():
    _, _, rig = rig_samples.written()
    assert (rig.object.name, rig.armature.name) == ("Flag_skinned", "Flag_rig")
    assert (rig.object.data.name, rig.armature.data.name) == ("Flag_skinned", "Flag_rig")
    assert (rig.action.name, rig.collection.name) == ("Flag_skinning", "Flag_skinning")


def test_a_second_conversion_numbers_all_its_names_alike():
    result = rig_samples.decomposition(rig_samples.random_transforms("RIGID", 3, 2), "RIGID")
    object = rig_samples.cloud(result)
    bpy.data.objects.new("Flag_rig", None)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert (rig.object.name, rig.armature.name) == ("Flag_skinned.001", "Flag_rig.001")
    assert (rig.action.name, rig.collection.name) == ("Flag_skinning.001", "Flag_skinning.001")
    again = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert (again.object.name, again.armature.name) == ("Flag_skinned.002", "Flag_rig.002")


@pytest.mark.parametrize("name", ["N" * 63, "Ü" * 31])
def test_long_names_keep_their_endings(name):
    result = rig_samples.decomposition(rig_samples.random_transforms("RIGID", 3, 2), "RIGID")
    source = rig_samples.source_animation(rig_samples.cloud(result, name), result)
    rig = rig_samples.write_rig(source, result)
    assert rig.object.name.endswith("_skinned")
    assert rig.armature.name.endswith("_rig")
    assert rig.action.name.endswith("_skinning")


@pytest.mark.parametrize("kind", rig_samples.KINDS)
def test_bones_and_groups(kind):
    _, _, rig = rig_samples.written(kind, bones=12)
    bones = rig.armature.data.bones
    assert rig.bone_names == tuple(f"DEF-bone_{number:02}" for number in range(1, 13))
    assert [group.name for group in rig.object.vertex_groups] == list(rig.bone_names)
    assert [bone.name for bone in bones if bone.use_deform] == list(rig.bone_names)
    assert all(bone.inherit_scale == "FULL" and bone.length > 0 for bone in bones)
    deform = rig.armature.data.collections["Deform"]
    assert deform.is_visible
    assert {bone.name for bone in deform.bones} == set(rig.bone_names)
    if kind != "AFFINE":
        assert len(bones) == 12
        return
    mechanism = rig.armature.data.collections["Mechanism"]
    assert not mechanism.is_visible
    for name in rig.bone_names:
        parent = bones[name].parent
        assert parent.name == name.replace("DEF", "MCH")
        assert mechanism in list(parent.collections)
        assert parent.parent is None
        assert np.allclose(parent.matrix_local, bones[name].matrix_local, atol=1e-6)


def test_a_scaled_bone_lies_along_axes_that_it_may_stretch():
    _, _, rig = rig_samples.written("SCALED")
    for bone, axes in zip(rig.armature.data.bones, rig_samples.bone_axes(5), strict=True):
        matches = np.abs(axes.T @ np.array(bone.matrix_local.to_3x3()))
        assert np.allclose(np.sort(matches, axis=0), [[0] * 3, [0] * 3, [1] * 3], atol=1e-6)


def test_what_shaders_ask_the_object_for():
    result = rig_samples.decomposition(rig_samples.random_transforms("RIGID", 3, 2), "RIGID")
    object = rig_samples.cloud(result)
    object.color, object.pass_index = (1.0, 0.5, 0.25, 0.75), 7
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert (tuple(rig.object.color), rig.object.pass_index) == ((1.0, 0.5, 0.25, 0.75), 7)


def test_traces_of_weights_are_left_out_and_move_next_to_nothing():
    """What the documentation says: by at most three ten-thousandths of how far apart its bones would take a vertex."""
    random = np.random.default_rng(3)
    transforms = rig_samples.random_transforms("AFFINE", 6, 5)
    result = rig_samples.decomposition(transforms, vertex_count=200)
    tiny = random.random(result.weights.shape) < 0.5
    tiny[:, 0] = False
    traces = np.where(random.random(tiny.shape) < 0.3, 1e-4, random.uniform(1e-7, 2e-4, tiny.shape))
    result.weights[tiny] = traces[tiny]
    result.weights[:] /= result.weights.sum(axis=1, keepdims=True)
    object = rig_samples.cloud(result)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    stored = binding_scenes.dense(rig.object, rig.bone_names)
    assert stored[stored > 0].min() > 1e-4
    assert (stored > 0).sum() < (result.weights > 0).sum()
    kept = result.weights > 1.01e-4
    assert (stored > 0).sum() >= kept.sum()
    np.testing.assert_allclose(stored.sum(axis=1), 1, atol=1e-6)
    moved = np.einsum("fpij,nj->fnpi", transforms, np.column_stack([result.rest, np.ones(len(result.rest))]))
    before = weight_matrix(result.bones, result.weights, 5).toarray()
    off = np.linalg.norm(np.einsum("np,fnpi->fni", stored - before, moved), axis=-1)
    used = np.take_along_axis(moved, result.bones[None, :, :, None], axis=2)
    apart = np.linalg.norm(used[:, :, :, None] - used[:, :, None], axis=-1).max(axis=(2, 3))
    rounding = 1e-6 * np.abs(moved).max()
    assert np.all(off <= 3.01e-4 * apart + rounding)
    assert off.max() > 1e-5


def test_weights_and_modifier():
    object, source, rig = rig_samples.written()
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 8, 5))
    expected = weight_matrix(result.bones, result.weights, 5).toarray()
    assert np.allclose(binding_scenes.dense(rig.object, rig.bone_names), expected, atol=1e-7)
    (modifier,) = rig.object.modifiers
    assert (modifier.type, modifier.object) == ("ARMATURE", rig.armature)
    assert modifier.use_vertex_groups
    assert not modifier.use_bone_envelopes
    assert not modifier.use_deform_preserve_volume
    rest = np.array([vertex.co for vertex in rig.object.data.vertices])
    assert np.array_equal(rest, np.float32(result.rest))
    assert rig.object.data == source.mesh != object.data


def test_a_bone_that_moves_nothing_is_there():
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 3, 4))
    result.bones[result.bones == 3] = 0
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    rig = rig_samples.write_rig(source, result)
    assert len(rig.bone_names) == 4
    assert rig.armature.data.bones[rig.bone_names[3]].length > 0


def test_groups_of_the_mesh_are_replaced():
    result = rig_samples.decomposition(rig_samples.random_transforms("RIGID", 3, 2), "RIGID")
    object = rig_samples.cloud(result)
    object.vertex_groups.new(name="DEF-bone_01").add([0, 1, 2], 0.3, "REPLACE")
    source = rig_samples.source_animation(object, result)
    rig = rig_samples.write_rig(source, result)
    assert [group.name for group in rig.object.vertex_groups] == list(rig.bone_names)
    assert np.abs(positions_at(rig.object, 2) - source.animation.frames[1]).max() < 1e-5


def test_keys_are_linear_and_constant_channels_have_one():
    transforms = rig_samples.smooth_transforms(6, 2)
    transforms[..., 3] = 0
    result = rig_samples.decomposition(transforms, "RIGID")
    rig = rig_samples.write_rig(rig_samples.source_animation(rig_samples.cloud(result), result), result)
    curves = list(actions.curve_container(rig.armature).fcurves)
    assert len(curves) == 2 * 7
    assert {key.interpolation for curve in curves for key in curve.keyframe_points} == {"LINEAR"}
    counts = {(curve.data_path, curve.array_index): len(curve.keyframe_points) for curve in curves}
    assert counts[f'pose.bones["{rig.bone_names[0]}"].rotation_quaternion', 0] == 6
    assert {curve.group.name for curve in curves} == set(rig.bone_names)


def test_the_result_is_beside_the_source():
    result = rig_samples.decomposition(rig_samples.random_transforms("RIGID", 3, 2), "RIGID")
    object = rig_samples.cloud(result)
    shelf = scenes.moved_to("Shelf", object)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert list(shelf.children) == [rig.collection]
    assert set(rig.collection.objects) == {rig.object, rig.armature}
    assert rig.object.visible_get()


def test_the_error_attribute():
    _, _, rig = rig_samples.written("RIGID")
    errors = np.random.default_rng(0).random(60)
    for values in (2 * errors, errors):
        write_error_attribute(rig, values)
    attribute = rig.object.data.attributes["skinning_error"]
    assert (attribute.data_type, attribute.domain) == ("FLOAT", "POINT")
    assert np.allclose([item.value for item in attribute.data], errors)


# What the user had


def test_selection_mode_and_frame_stay():
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 3, 2))
    object = rig_samples.cloud(result)
    other = scenes.grid(name="Other")
    bpy.ops.object.mode_set(mode="EDIT")
    scene = bpy.context.scene
    scene.frame_set(17, subframe=0.25)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert bpy.context.scene == scene
    assert bpy.context.active_object == other
    assert other.mode == "EDIT"
    assert not rig.armature.select_get()
    assert not rig.object.select_get()
    assert (scene.frame_current, scene.frame_subframe) == (17, 0.25)
    assert rig.armature.mode == "OBJECT"


def test_the_source_stays_and_the_result_does_not_use_it():
    object, source, rig = rig_samples.written()
    users = bpy.data.user_map(subset=[object, object.data])
    mine = set(rig.data_blocks)
    assert not mine & users[object]
    assert not mine & users[object.data]
    rest = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 8, 5)).rest
    assert np.array_equal([vertex.co for vertex in object.data.vertices], np.float32(rest))
    bpy.data.objects.remove(object)
    assert np.abs(positions_at(rig.object, 3) - source.animation.frames[2]).max() < 1e-5


def test_only_the_result_is_left():
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 3, 2))
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    before = scenes.data_blocks()
    rig = rig_samples.write_rig(source, result)
    bpy.data.batch_remove([block for block in rig.data_blocks if block != source.mesh])
    source.mesh.name = next(name for name in before["meshes"] if name.startswith("Flag mesh."))
    assert scenes.data_blocks() == before


# Failure


@pytest.mark.parametrize(
    "place",
    [
        (rig_bones, "place_bones"),
        (rig_writer, "_write_mesh"),
        (object_transform, "_copy_drivers"),
        (object_transform, "_mismatch"),
        (rig_writer, "write_motion"),
        (rig_writer, "home_collection"),
    ],
    ids=lambda place: place[1],
)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_when_writing_fails(monkeypatch, place, error):
    def fail(*arguments, **options):
        raise error("on purpose")

    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 3, 2))
    object = rig_samples.cloud(result)
    scenes.key_property(object, "location", {1: (0, 0, 0), 3: (1, 2, 3)})
    source = rig_samples.source_animation(object, result)
    source.mesh.name = "Flag_skinned"
    before = scenes.data_blocks()
    monkeypatch.setattr(*place, fail)
    with pytest.raises(error, match="on purpose"):
        rig_samples.write_rig(source, result)
    assert scenes.data_blocks() == before
    assert bpy.context.active_object == object


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9])
def test_nothing_is_left_when_writing_is_cancelled(fraction):
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 3, 2))
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    source.mesh.name = "Flag_skinned"
    before = scenes.data_blocks()
    steps = rig_writer.write_rig(bpy.context, source, result)
    assert any(done >= fraction for done, _ in steps)
    assert scenes.data_blocks() != before
    steps.close()
    assert scenes.data_blocks() == before


def test_failing_in_the_middle_of_the_bones_leaves_edit_mode(monkeypatch):
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 3, 2))
    source = rig_samples.source_animation(rig_samples.cloud(result), result)
    source.mesh.name = "Flag_skinned"
    before = scenes.data_blocks()
    original = rig_bones._add

    def fail_at_the_second(edit_bones, prefix, *arguments):
        if prefix == rig_bones.DEFORM_PREFIX:
            raise RuntimeError("on purpose")
        return original(edit_bones, prefix, *arguments)

    monkeypatch.setattr(rig_bones, "_add", fail_at_the_second)
    with pytest.raises(RuntimeError, match="on purpose"):
        rig_samples.write_rig(source, result)
    assert scenes.data_blocks() == before
    assert bpy.context.mode == "OBJECT"
