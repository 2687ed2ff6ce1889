# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin: stored shapes are those in Blender, without earlier corrections and the artist's keys."""

import bpy
import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame, vertex_normals
from skinning_tools.features.eigenskin.examples import current_pose, read_examples, read_rig
from tests.blender import scenes
from tests.blender.eigenskin_scenes import limb, limb_with_examples, pose
from tests.blender.example_scenes import add, examples_of, near, read
from tests.blender.skinned_meshes import diagonal

pytestmark = pytest.mark.usefixtures("extension")


# Where shapes come from


def test_the_mesh_itself_with_its_modifiers(posed):
    ob, _rig = posed
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    smooth = ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    smooth.iterations = 3
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    examples = read(ob)
    assert examples.names == ("lower X +70° and 1 more",)
    near(ob, examples.shapes[0], shown, tolerance=1e-7)
    skin, joints = read_rig(bpy.context, ob)
    rotations, matrices = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
    assert np.abs(examples.rotations[0] - rotations).max() < 1e-12
    assert np.abs(examples.matrices[0] - matrices).max() < 1e-12
    assert examples.normals is None
    plain = skin_frame(skin.rest, skin.bones, skin.weights, matrices)
    assert np.abs(shown - plain).max() > 0.01 * diagonal(ob)


def test_another_mesh_through_world_space(posed):
    ob, rig = posed
    skin, _ = read_rig(bpy.context, ob)
    wanted = skin.rest + np.random.default_rng(3).normal(scale=0.1, size=skin.rest.shape)
    target = ob.copy()
    target.data = ob.data.copy()
    target.modifiers.clear()
    scenes.link(target)
    target.location, target.rotation_euler, target.scale = (3, 2, 1), (0.4, 1, 2), (2, 0.5, 1)
    bpy.context.view_layer.update()
    to_target = np.array(target.matrix_world.inverted() @ ob.matrix_world)
    own = wanted @ to_target[:3, :3].T + to_target[:3, 3]
    target.data.attributes["position"].data.foreach_set("vector", own.astype(np.float32).ravel())
    target.data.update()
    bpy.context.view_layer.objects.active = ob
    add(source="MESH", name="Sculpted")
    assert examples_of(rig) == [("Sculpted", "MESH", ob, bpy.context.scene.frame_current)]
    near(ob, read(ob).shapes[0], wanted, tolerance=2e-6)


def test_another_mesh_with_its_own_armature_modifier(posed):
    ob, _rig = posed
    target = ob.copy()
    target.data = ob.data.copy()
    scenes.link(target)
    target.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    add(source="MESH")
    near(ob, read(ob).shapes[0], scenes.evaluated_positions(target))
    assert np.abs(read(ob).shapes[0] - scenes.evaluated_positions(ob)).max() > 0.01 * diagonal(ob)


@pytest.mark.parametrize("named", [True, False])
def test_a_shape_key_before_the_bones(posed, named):
    ob, rig = posed
    first, second = scenes.shape_keys(ob, count=2)
    second.relative_key = first
    group = ob.vertex_groups.new(name="Half")
    group.add(range(150), 0.5, "REPLACE")
    second.vertex_group = "Half"
    ob.active_shape_key_index = 2
    add(source="SHAPE_KEY", shape_key="Key 2" if named else "")
    shape = read(ob).shapes[0]
    # As Blender itself blends it.
    second.value = 1.0
    bpy.context.view_layer.update()
    near(ob, shape, scenes.evaluated_positions(ob))
    assert rig.skinning_eigenskin.examples[0].kind == "SHAPE_KEY"


def without_corrections(ob) -> np.ndarray:
    """What Preserve Volume shows without any shape key."""
    copy = ob.copy()
    copy.data = ob.data.copy()
    scenes.link(copy)
    copy.shape_key_clear()
    copy.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(copy)
    bpy.data.objects.remove(copy)
    bpy.context.view_layer.objects.active = ob
    return shown


@pytest.mark.parametrize("muted", [False, True])
def test_the_mesh_without_an_earlier_correction(muted, capfd):
    ob, rig = limb()
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    pose(rig, [("lower", "X", 70)])
    add()
    bpy.ops.skinning.build_eigenskin()
    pose(rig, [("lower", "X", 40), ("upper", "Z", 30)])
    bpy.ops.skinning.mute_eigenskin(mute=muted)
    wanted = without_corrections(ob)
    ob.active_shape_key_index = 1
    before = scenes.evaluated_positions(ob)
    assert np.abs(before - wanted).max() > 0.01 * diagonal(ob)
    capfd.readouterr()
    add()
    assert 'read without the corrections, with Preserve Volume in "Armature" as before' in capfd.readouterr().out
    near(ob, read(ob).shapes[1], wanted)
    assert not ob.show_only_shape_key
    assert ob.active_shape_key_index == 1
    assert not ob.modifiers["Armature"].use_deform_preserve_volume
    assert np.array_equal(scenes.evaluated_positions(ob), before)


@pytest.mark.parametrize("driven", [False, True])
def test_the_artists_shape_keys_are_left_out(posed, driven, capfd):
    ob, _ = posed
    wanted = scenes.evaluated_positions(ob)
    scenes.shape_keys(ob, count=2)
    smile = ob.data.shape_keys.key_blocks[1]
    if driven:
        smile.driver_add("value").driver.expression = "0.5"
    else:
        smile.value = 0.5
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    near(ob, read(ob).shapes[0], wanted)
    text = capfd.readouterr().out
    assert 'read without the shape keys "Key 1", which add to the corrections' in text
    assert "Key 2" not in text
    assert smile.value == pytest.approx(0.5)
    assert np.array_equal(scenes.evaluated_positions(ob), shown)


def test_normals_of_the_shapes():
    ob, _rig = limb_with_examples()
    skin, joints = read_rig(bpy.context, ob)
    examples = read_examples(ob, joints, normals=True)
    assert np.abs(np.linalg.norm(examples.normals, axis=-1) - 1).max() < 1e-6
    for shape, normals in zip(examples.shapes, examples.normals, strict=True):
        assert np.array_equal(normals, vertex_normals(shape, skin.triangles).astype(np.float32))


def test_armature_scaled_evenly(posed):
    ob, rig = posed
    rig.scale = (2.5, 2.5, 2.5)
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    add()
    examples, (skin, _) = read(ob), read_rig(bpy.context, ob)
    assert np.abs(np.linalg.norm(examples.rotations[0], axis=1) - 1).max() < 1e-12
    near(ob, examples.shapes[0], scenes.evaluated_positions(ob))
    volume = skin_frame(skin.rest, skin.bones, skin.weights, examples.matrices[0], "DQS")
    near(ob, examples.shapes[0], volume, tolerance=1e-5)


def test_armature_and_mesh_scaled_unevenly(posed):
    """Linear blending does not mind, and rotations are those of the bones in the armature."""
    ob, rig = posed
    skin, joints = read_rig(bpy.context, ob)
    wanted = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())[0]
    rig.scale, ob.scale = (1, 2, 1.5), (0.7, 1, 1)
    bpy.context.view_layer.update()
    add()
    examples = read(ob)
    assert np.abs(examples.rotations[0] - wanted).max() < 1e-6
    near(ob, examples.shapes[0], scenes.evaluated_positions(ob))
    near(ob, skin_frame(skin.rest, skin.bones, skin.weights, examples.matrices[0]), examples.shapes[0])


def test_active_armature_stands_for_the_mesh_it_deforms(posed):
    ob, rig = posed
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    add()
    assert examples_of(rig)[0][2] == ob
    other = ob.copy()
    scenes.link(other)
    bpy.context.view_layer.objects.active = rig
    for member in (ob, other):
        member.select_set(False)
    # The one that has examples already, then the selected one.
    pose(rig, [("lower", "X", 30)])
    add()
    other.select_set(True)
    add()
    assert [entry[2] for entry in examples_of(rig)] == [ob, ob, other]


# Reports


def test_the_report_counts_what_was_added_and_replaced(posed, capfd):
    ob, _rig = posed
    add()
    assert "corrects nothing" in capfd.readouterr().out
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    add(name="Bent")
    text = capfd.readouterr().out
    assert 'Limb: example "Bent" added, 1 in all, up to' in text
    assert "1 of the same pose replaced" in text
