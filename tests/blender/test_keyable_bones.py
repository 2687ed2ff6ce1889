# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of solved motion take effect, or are refused with what would override them."""

from functools import partial

import bpy
import numpy as np
import pytest

from tests.blender import refusals, scenes
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    add_bone,
    curves,
    error,
    moving_copy,
    rigged_at_rest,
    select,
    tube,
)

pytestmark = pytest.mark.usefixtures("extension")

solve = partial(refusals.finished, "solve_transforms")
refused = partial(refusals.refused, "solve_transforms")


@pytest.fixture
def rig():
    return rigged_at_rest(move=0.1)


@pytest.mark.parametrize("kind", ["RIGID", "SCALED", "AFFINE"])
@pytest.mark.parametrize("bones", [BONES, BONES[:1]])
def test_locations_along_the_axes_of_the_armature(rig, kind, bones):
    """The first bone has no parent whose motion it could leave out, but its location is of other axes all the same."""
    ob, armature, _, wanted = rig
    for name in bones:
        armature.data.bones[name].use_local_location = False
    solve(bone_kind=kind)
    assert error(ob, wanted) < 0.002


@pytest.mark.parametrize("kind", ["RIGID", "SCALED", "AFFINE"])
def test_a_mesh_that_is_mirrored_against_its_armature(rig, kind):
    ob, _, target, wanted = rig
    for each in (ob, target):
        each.scale = (-1.2, 1.2, 1.2)
    bpy.context.view_layer.update()
    solve(bone_kind=kind)
    assert error(ob, wanted) < 0.002


@pytest.mark.parametrize("mode", ["ADD", "COMBINE"])
def test_an_action_that_is_mixed_with_tracks(rig, mode):
    ob, armature, _, wanted = rig
    animation = armature.animation_data
    track = animation.nla_tracks.new()
    strip = track.strips.new("Strip", 1, animation.action.copy())
    for curve in curves(strip.action):
        for point in curve.keyframe_points:
            point.co[1] += 0.1
    animation.action_blend_type = mode
    refused("mixed with its NLA tracks")
    animation.action_blend_type = "REPLACE"
    animation.action_influence = 0.5
    refused("mixed with its NLA tracks")
    animation.action_influence = 1.0
    track.is_solo = True
    refused('NLA track "NlaTrack" of "Rig" is soloed')
    animation.use_nla = False
    solve()
    assert error(ob, wanted) < 0.002


def test_new_bones_combine_with_tracks(rig):
    _, armature, _, _ = rig
    animation = armature.animation_data
    animation.nla_tracks.new().strips.new("Strip", 1, animation.action)
    animation.action = None
    animation.action_blend_type = "COMBINE"
    assert bpy.ops.skinning.add_helper_bones() == {"FINISHED"}
    animation.action_blend_type = "ADD"
    with pytest.raises(RuntimeError, match="mixed with its NLA tracks"):
        bpy.ops.skinning.add_helper_bones()


@pytest.mark.parametrize(("kind", "above"), [("IK", 4), ("IK", 2), ("SPLINE_IK", 3)])
def test_inverse_kinematics_of_a_bone_that_moves_nothing(rig, kind, above):
    ob, armature, _, wanted = rig
    tip = add_bone(armature, "Tip", parent="Bone 4")
    constraint = tip.constraints.new(kind)
    constraint.chain_count = above
    # Without a target it does nothing.
    solve()
    if kind == "IK":
        constraint.target = scenes.link(bpy.data.objects.new("Aim", None))
    else:
        curve = bpy.data.curves.new("Spline", "CURVE")
        curve.splines.new("BEZIER").bezier_points.add(2)
        constraint.target = scenes.link(bpy.data.objects.new("Spline", curve))
    bpy.context.view_layer.objects.active = ob
    refused('of the bone "Tip" also moves the bone "Bone 4"')
    if kind == "IK":
        constraint.chain_count = 1
        solve()
        assert error(ob, wanted) < 0.002
    constraint.chain_count = above
    constraint.mute = True
    solve()
    assert error(ob, wanted) < 0.002


def test_a_constraint_that_is_off_only_now(rig):
    ob, armature, target, wanted = rig
    constraint = armature.pose.bones["Bone 2"].constraints.new("COPY_ROTATION")
    constraint.target = target
    for frame, value in ((1, 0.0), (8, 1.0)):
        constraint.influence = value
        constraint.keyframe_insert("influence", frame=frame)
    bpy.context.scene.frame_set(1)
    refused('constraint "Copy Rotation" of the bone "Bone 2" would override its keys')
    for curve in curves(armature.animation_data.action):
        if curve.data_path.endswith("influence"):
            for point in curve.keyframe_points:
                point.co[1], point.interpolation = 0.0, "CONSTANT"
    solve()
    assert error(ob, wanted) < 0.002


def test_what_moves_bones_in_between(rig):
    """The result of a constraint on a child of solved bones, or of one that reads these, is not known before."""
    ob, armature, _, wanted = rig
    control = add_bone(armature, "Control", "Bone 1", "Bone 2")
    control.rotation_mode = "XYZ"
    limit = control.constraints.new("LIMIT_ROTATION")
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    refused('bone "Bone 2" of "Rig" would not follow its keys at frame 1')
    limit.mute = True
    driver = control.driver_add("rotation_euler", 0).driver
    variable = driver.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].bone_target = armature, "Bone 1"
    variable.targets[0].transform_type, variable.targets[0].transform_space = "ROT_X", "LOCAL_SPACE"
    driver.expression = variable.name
    refused('bone "Bone 2" of "Rig" would not follow its keys at frame 2')
    control.driver_remove("rotation_euler", 0)
    solve()
    assert error(ob, wanted) < 0.002


def test_a_rotation_mode_that_changes(rig):
    _, armature, _, _ = rig
    bone = armature.pose.bones["Bone 2"]
    for frame, mode in ((1, "QUATERNION"), (5, "XYZ")):
        bone.rotation_mode = mode
        bone.keyframe_insert("rotation_mode", frame=frame)
    bpy.context.scene.frame_set(1)
    refused(match='bone "Bone 2" of "Rig" would not follow its keys at frame [5-8]')


def test_bones_whose_envelopes_count(rig):
    _, armature, _, _ = rig
    armature.data.bones["Bone 3"].use_envelope_multiply = True
    refused('bone "Bone 3" of "Rig" multiplies its weights with its envelope')


def test_other_modifiers_that_shape_the_mesh_are_reported(rig, capfd):
    ob, armature, _, wanted = rig
    key = scenes.shape_keys(ob, 1)[0]
    solve()
    assert "shape keys" not in capfd.readouterr().out
    key.value = 0.1
    armature.data.bones["Bone 1"].bbone_segments = 4
    solve()
    told = capfd.readouterr().out
    assert 'the shape keys of object "Arm" deform it too' in told
    assert "1 bendy bone treated as straight" in told
    key.mute = True
    bpy.context.view_layer.update()
    assert error(ob, wanted) < 0.002


def test_frames_of_an_action_in_stretched_time(rig, capfd):
    """Its keys from 1 to 8 are shown at the frames 2 to 16."""
    scene = bpy.context.scene
    scene.render.frame_map_old, scene.render.frame_map_new = 100, 200
    solve(frame_start=2, frame_end=16)
    assert "has keys from" not in capfd.readouterr().out
    solve(frame_start=2, frame_end=20)
    assert 'the action "RigAction_solved" has keys from frame 2 to 16 only' in capfd.readouterr().out


def test_frames_of_an_action_that_others_share(rig, capfd):
    """What an action holds for other objects says nothing of the armature's frames."""
    _, armature, _, _ = rig
    action = armature.animation_data.action
    if not hasattr(action, "slots"):
        pytest.skip("actions have no slots before Blender 4.4")
    other = scenes.link(bpy.data.objects.new("Other", None))
    other.animation_data_create().action = action
    other.animation_data.action_slot = action.slots.new(id_type="OBJECT", name="Other")
    for frame in (1, 20):
        other.keyframe_insert("location", frame=frame)
    bpy.context.view_layer.objects.active = bpy.data.objects["Arm"]
    solve(frame_end=20)
    assert 'the action "RigAction" has keys from frame 1 to 8 only' in capfd.readouterr().out


def test_drivers_of_the_armature_itself_read_the_new_motion(rig):
    """A driven bone below solved ones that copies one of them follows that bone's new keys."""
    ob, armature, _, wanted = rig
    follower = add_bone(armature, "Follower", "Bone 4")
    follower.rotation_mode = "XYZ"
    driver = follower.driver_add("rotation_euler", 1).driver
    variable = driver.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].bone_target = armature, "Bone 1"
    variable.targets[0].transform_type, variable.targets[0].transform_space = "ROT_X", "LOCAL_SPACE"
    driver.expression = variable.name
    solve()
    assert error(ob, wanted) < 0.002
    bpy.context.scene.frame_set(8)
    posed = armature.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    assert np.abs(posed["Follower"].matrix_basis.to_euler().y) > 0.01


@pytest.mark.parametrize("animated", [False, True])
def test_a_character_of_another_file(rig, tmp_path, animated):
    """An animator's library override, mesh and all: its keys are the animator's own, and are there when read again."""
    ob, armature, _, wanted = rig
    if not animated:
        armature.animation_data_clear()
    found = scenes.overridden([ob, armature], tmp_path / "character.blend")
    ob, armature = found["MESH"], found["ARMATURE"]
    bpy.context.scene.frame_end = 8
    target = moving_copy(ob, wanted)
    select(target, ob)
    refused("OVERRIDDEN so bones cannot be added", bone_kind="AFFINE")
    armature.override_library.is_system_override = True
    refused("LINKED_OBJECT")
    armature.override_library.is_system_override = False
    solve()
    assert armature.animation_data.action.library is None
    assert error(ob, wanted) < 0.002
    name = ob.name
    scenes.reopened(tmp_path / "shot.blend")
    assert error(bpy.data.objects[name], wanted) < 0.002


@pytest.mark.parametrize("how", ["eye", "excluded"])
@pytest.mark.parametrize(
    ("operator", "given"),
    [
        ("solve_weights", {}),
        ("solve_transforms", {"bone_kind": "RIGID"}),
        ("solve_transforms", {"bone_kind": "AFFINE"}),
        ("add_helper_bones", {}),
    ],
)
def test_a_hidden_armature_works_as_a_shown_one(rig, operator, given, how):
    """It deforms the mesh all the same, and stays hidden."""
    ob, armature, _, wanted = rig
    if operator == "solve_weights":
        solve()
        ob.vertex_groups.clear()
    before = error(ob, wanted)
    if how == "eye":
        armature.hide_set(True)
    else:
        scenes.moved_to("Hidden", armature)
        bpy.context.view_layer.layer_collection.children["Hidden"].exclude = True
    state = scenes.ui_state()
    assert getattr(bpy.ops.skinning, operator)(armature=armature.name, **given) == {"FINISHED"}
    assert scenes.ui_state() == state
    assert not armature.visible_get()
    assert error(ob, wanted) < (0.5 * before if operator == "add_helper_bones" else 0.1)


def test_an_armature_that_is_disabled_in_viewports(rig):
    _, armature, _, _ = rig
    armature.hide_viewport = True
    refused('armature "Rig" is disabled in viewports')


@pytest.mark.parametrize("flag", ["", "use_local_location", "use_inherit_rotation"])
def test_other_actions_on_bones_with_new_parents(capfd, flag):
    """A chain's parent at rest changes nothing but locations whose axes are no longer the bone's, and a note says
    so."""
    ob, armature = tube(move=0.3)
    if flag:
        setattr(armature.data.bones["Bone 2"], flag, False)
    wanted = scenes.played(ob, FRAMES)
    select(moving_copy(ob, wanted), ob)
    action = armature.animation_data.action
    solve(bone_kind="AFFINE")
    assert error(ob, wanted) < 0.002
    told = '1 bone (the first: "Bone 2") with a new parent' in capfd.readouterr().out
    armature.animation_data.action = action
    if hasattr(action, "slots"):
        armature.animation_data.action_slot = action.slots[0]
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    assert (error(ob, wanted) > 1) == told == bool(flag)
