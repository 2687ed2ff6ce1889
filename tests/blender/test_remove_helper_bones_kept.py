# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove Helper Bones: data that the user added to them or named like them stays; refusals."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender import armatures
from skinning_tools.blender.animation.clips import clips_of
from tests.blender import refusals, scenes
from tests.blender.action_scenes import CLIPS, rig_of_clips
from tests.blender.helper_bone_scenes import add, added_helpers, jiggling_rig, refused, remove, state
from tests.blender.partial_scenes import (
    BONES,
    add_bone,
    curves,
    figures,
    keys_of,
    select,
)

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def rig():
    return jiggling_rig()


def test_children_that_the_user_added_to_helpers_stay(rig):
    ob, armature, _, _ = rig
    add(bone_kind="AFFINE")
    helper = added_helpers(armature)[0]
    above = armature.data.bones[helper].parent.parent.name
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    child = bones.new("Connected")
    child.parent, child.use_connect = bones[helper], True
    child.tail = bones[helper].tail + bones[helper].y_axis
    head, tail = child.head.copy(), child.tail.copy()
    bpy.ops.object.mode_set(mode="OBJECT")
    cube = bpy.data.objects.new("Prop", None)
    bpy.context.scene.collection.objects.link(cube)
    cube.parent, cube.parent_type, cube.parent_bone = armature, "BONE", helper
    armature.data.pose_position = "REST"
    bpy.context.view_layer.update()
    place = np.array(cube.matrix_world)
    select(ob)
    remove()
    child = armature.data.bones["Connected"]
    assert child.parent.name == above
    np.testing.assert_allclose([child.head_local, child.tail_local], [head, tail], atol=1e-6)
    assert (cube.parent, cube.parent_type, cube.parent_bone) == (armature, "BONE", above)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(np.array(cube.matrix_world), place, atol=1e-5)


def test_what_names_them_goes_and_nothing_else(rig, capsys):
    ob, armature, target, _ = rig
    add()
    helper = added_helpers(armature)[0]
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    named = {"Own": "Bone 1", "Gone": helper}
    for name, bone in named.items():
        for owner in (empty, armature.pose.bones["Bone 3"]):
            constraint = owner.constraints.new("COPY_ROTATION")
            constraint.name, constraint.target, constraint.subtarget, constraint.influence = name, armature, bone, 0.0
    both = empty.constraints.new("ARMATURE")
    for bone in ("Bone 1", helper):
        part = both.targets.new()
        part.target, part.subtarget = armature, bone
    reach = armature.pose.bones["Bone 4"].constraints.new("IK")
    reach.influence, reach.target = 0.0, empty
    reach.pole_target, reach.pole_subtarget = armature, helper
    material = bpy.data.materials.new("Skin")
    ob.data.materials.append(material)
    if material.node_tree is None:
        material.use_nodes = True
    value = material.node_tree.nodes.new("ShaderNodeMapping").inputs["Location"]
    driven = [empty, value, target.data.shape_keys.key_blocks[1], armature.pose.bones["Bone 0"]]
    paths = ["location", "default_value", "slider_max", "scale"]
    for owner, path in zip(driven, paths, strict=True):
        for index, bone in enumerate(("Bone 1", helper)):
            curve = (
                owner.driver_add(path, index) if path != "slider_max" else owner.driver_add(("slider_min", path)[index])
            )
            variable = curve.driver.variables.new()
            variable.type = "TRANSFORMS" if path != "scale" else "SINGLE_PROP"
            variable.targets[0].id = armature
            if path == "scale":
                variable.targets[0].data_path = f'pose.bones["{bone}"].location[0]'
            else:
                variable.targets[0].bone_target = bone
            curve.driver.expression = variable.name
    remove()
    for owner in (empty, armature.pose.bones["Bone 3"]):
        assert [each.name for each in owner.constraints if each.type == "COPY_ROTATION"] == ["Own"]
    assert [part.subtarget for part in both.targets] == ["Bone 1"]
    assert (reach.target, reach.pole_target) == (empty, None)
    blocks = [empty, material.node_tree, target.data.shape_keys, armature]
    left = [[(curve.data_path, curve.array_index) for curve in block.animation_data.drivers] for block in blocks]
    assert [len(found) for found in left] == [1, 1, 1, 1]
    assert left[0] == [("location", 0)]


def test_actions_that_another_armature_needs_keep_their_keyframes(rig, capfd):
    _, armature, _, _ = rig
    add()
    other = armature.copy()
    other.data = armature.data.copy()
    bpy.context.scene.collection.objects.link(other)
    action = armature.animation_data.action
    if hasattr(action, "slots"):
        other.animation_data.action_slot = action.slots[0]
    keys, spare = keys_of(action), action.copy()
    remove()
    assert "another armature with such bones plays" in capfd.readouterr().out
    assert keys_of(action).keys() == keys_of(spare).keys() == keys.keys()
    assert len(added_helpers(other)) == 2
    bpy.data.objects.remove(other)


def test_other_curves_stay(rig):
    _, armature, _, _ = rig
    add()
    action = armature.animation_data.action
    armature["extra"] = 1.0
    armature.keyframe_insert('["extra"]', frame=3)
    remove()
    assert armature.animation_data.action == action
    paths = {curve.data_path for curve in curves(action)}
    assert '["extra"]' in paths
    assert not any("HLP-" in path for path in paths)


def test_no_action_keeps_their_keyframes_and_each_clip_counts_once_later():
    ob, armature, _ = rig_of_clips()
    track = armature.animation_data.nla_tracks.new()
    strip = track.strips.new("Bend", 1, bpy.data.actions["Bend"])
    add(bone_count=1)
    assert sum(any("HLP-" in curve.data_path for curve in curves(each)) for each in bpy.data.actions) == len(CLIPS)
    remove()
    assert strip.action.name == "Bend_helpers"
    assert not any("HLP-" in curve.data_path for each in bpy.data.actions for curve in curves(each))
    add(bone_count=1)
    assert sorted(figures(ob).clips) == [f"{name}_helpers" for name in CLIPS]
    armature.animation_data.action = bpy.data.actions["Wave"]
    assert sorted(clip.name for clip in clips_of(armature)) == [
        "Bend_helpers.001",
        "Twist_helpers.001",
        "Wave",
        "Wave_helpers.001",
    ]


def test_bones_of_the_user_with_such_names_stay_and_renamed_helpers_go(rig):
    ob, armature, _, _ = rig
    own = add_bone(armature, "HLP-own", "Bone 1").name
    armature.data.collections.new("Helper Bones").assign(armature.data.bones[own])
    add()
    armature.data.bones[added_helpers(armature)[0]].name = "Belly"
    assert "Belly" in ob.vertex_groups
    remove()
    assert set(armature.data.bones.keys()) == {*BONES, own}
    assert armature.data.collections["Helper Bones"].bones.keys() == [own]
    assert set(ob.vertex_groups.keys()) == set(BONES)


def test_parents_that_a_solve_gave_the_rig_itself_stay(rig):
    """Affine motion gives bones parents of the same kind."""
    _, armature, _, _ = rig
    add()
    assert bpy.ops.skinning.solve_transforms(bone_kind="AFFINE") == {"FINISHED"}
    assert len(armature.data.bones) == 2 * 7
    remove()
    assert set(armature.data.bones.keys()) == {*BONES, *(f"MCH-{name}" for name in BONES)}


def test_mode_selection_and_active_group_stay(rig):
    ob, armature, _, _ = rig
    add()
    ob.vertex_groups.active_index = ob.vertex_groups["Bone 3"].index
    select(armature)
    bpy.ops.object.mode_set(mode="POSE")
    scenes.select_bones(armature, "Bone 1")
    before = scenes.ui_state()
    remove()
    assert armature.mode == "POSE"
    bpy.ops.object.mode_set(mode="OBJECT")
    assert ob.vertex_groups.active.name == "Bone 3"
    bpy.ops.object.mode_set(mode="POSE")
    assert scenes.ui_state() == before
    bpy.ops.object.mode_set(mode="OBJECT")


def test_refused(rig):
    ob, armature, target, _ = rig
    refused(ob, armature, 'The armature "Rig" has no bones made by Add Helper Bones')
    add()
    helper = added_helpers(armature)[1]
    ob.vertex_groups[helper].lock_weight = True
    refused(ob, armature, "Vertex groups that have to change are locked", f'"{helper}" of object "Arm"')
    ob.vertex_groups[helper].lock_weight = False
    refused(ob, armature, 'NO_OBJECT "Nobody"', armature="Nobody")
    select(target)
    refused(ob, armature, 'object "Target"')
    twin = armature.copy()
    bpy.context.scene.collection.objects.link(twin)
    refused(ob, armature, 'The bones of "Rig" are also those of', armature="Rig")
    bpy.data.objects.remove(twin)
    select(ob)
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet("MODE Edit Mode"):
        remove()
    bpy.ops.object.mode_set(mode="OBJECT")
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet('ARMATURE_IN_EDIT_MODE "Rig"'):
        remove()
    bpy.ops.object.mode_set(mode="OBJECT")
    select(ob)
    assert len(added_helpers(armature)) == 2


def test_a_failure_leaves_nothing(rig, monkeypatch):
    """The removal fails because Blender cannot enter Edit Mode."""
    ob, armature, _, _ = rig
    add()
    constraint = armature.pose.bones["Bone 0"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget, constraint.influence = armature, added_helpers(armature)[0], 0.0
    before = state(ob, armature)

    def fail(*_):
        raise ZeroDivisionError("as a test")

    monkeypatch.setattr(armatures, "edit_bones_of", fail)
    with pytest.raises(RuntimeError, match="bug in Skinning Tools"):
        remove()
    assert state(ob, armature) == before
    assert len(armature.pose.bones["Bone 0"].constraints) == 1


def test_linked_data_is_refused(rig, tmp_path):
    ob, armature, _, _ = rig
    add()
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.actions, wanted.meshes = [armature.animation_data.action.name], [ob.data.name]
    (action,), (mesh,) = wanted.actions, wanted.meshes
    own = armature.animation_data.action
    armature.animation_data.action = action
    refused(ob, armature, "LINKED_ACTION")
    armature.animation_data.action = own
    local, ob.data = ob.data, mesh
    refused(ob, armature, "LINKED mesh of object", "helper bones cannot be changed")
    ob.data = local
    remove()
