# SPDX-License-Identifier: GPL-3.0-or-later
"""Make Root: another bone carries a skeleton, and nothing moves otherwise."""

import bpy
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.blender.actions import existing_curves
from skinning_tools.blender.background import drain
from skinning_tools.features.partial import again, new_root, root_notes
from skinning_tools.features.partial.panel import SKINNING_PT_partial_solves
from tests.blender import moving_meshes, scenes
from tests.blender.joint_scenes import FRAMES, bending_bar, convert, size_of, turning_bar
from tests.blender.panel_recorder import drawn, pressable
from tests.blender.partial_scenes import select
from tests.blender.refusals import refused

pytestmark = pytest.mark.usefixtures("extension")


def bones_of(rig):
    return {
        bone.name: (
            bone.parent and bone.parent.name,
            bone.use_connect,
            tuple(bone.head_local),
            tuple(map(tuple, bone.matrix_local)),
            tuple(rig.pose.bones[bone.name].lock_location),
            [(each.name, each.min_x, each.max_x) for each in rig.pose.bones[bone.name].constraints],
            rig.pose.bones[bone.name].ik_max_x,
        )
        for bone in rig.data.bones
    }


def world_places(ob):
    places = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        places.append(np.array(ob.matrix_world))
    return np.array(places)


def no_memory(*_):
    raise MemoryError


def test_make_root_turns_the_way_to_the_root_and_keeps_all_motion(monkeypatch):
    bar = bending_bar((0.0, 1.5, 3.0, 4.5))
    given = {"rotation_only": True, "rotation_limits": True, "root_bone": True}
    jointed, rig = convert(bar, bone_count=4, bone_kind="RIGID", joint_hierarchy=True, **given)
    tip = next(bone.name for bone in rig.data.bones if len(bone.parent_recursive) > 2)
    way = [tip, *(bone.name for bone in rig.data.bones[tip].parent_recursive if bone.name != "root")]
    held = scenes.link(bpy.data.objects.new("Held", None))
    held.parent, held.parent_type, held.parent_bone = rig, "BONE", way[1]
    shape, places, before = scenes.played(jointed, FRAMES), world_places(held), bones_of(rig)
    select(rig)
    rig.data.bones.active = rig.data.bones[way[-1]]
    refused("make_root", f'The bone "{way[-1]}" of "{rig.name}" is a root already')
    rig.data.bones.active = rig.data.bones[tip]
    blocks = moving_meshes.state()
    with monkeypatch.context() as patched:
        patched.setattr(new_root, "note_joints", no_memory)
        refused("make_root", "ran out of memory")
    assert (bones_of(rig), moving_meshes.state()) == (before, blocks)
    np.testing.assert_allclose(world_places(held), places, atol=1e-6)
    np.testing.assert_allclose(scenes.played(jointed, FRAMES), shape, atol=1e-6 * size_of(jointed))
    assert bpy.ops.skinning.make_root() == {"FINISHED"}
    np.testing.assert_allclose(scenes.played(jointed, FRAMES), shape, atol=1e-5 * size_of(jointed))
    np.testing.assert_allclose(world_places(held), places, atol=1e-4)
    found = bones_of(rig)
    for name, above, earlier in zip(way, ["root", *way], [way[-1], *way], strict=False):
        parent, connected, head, _, locks, limits, _ = found[name]
        assert parent == above
        assert connected == (name != tip), "all joints of the way are at the end of a bone now"
        assert locks == before[earlier][4], "locks go with the joints"
        assert bool(limits) == bool(before[earlier][5]), "and so do limits"
        assert name == tip or head == pytest.approx(before[earlier][2], abs=1e-6)
    error = jointed["skinning_e_rms"]
    solved = drain(again.solve_again(bpy.context, jointed))
    assert jointed["skinning_e_rms"] <= 1.001 * error
    assert not any("found" in note for note in solved.notes), "its joints are known"


def test_the_button_takes_the_armature_of_the_panel():
    _, rig = convert(bending_bar((0.0, 1.5)), bone_count=2, bone_kind="RIGID", joint_hierarchy=True)
    rig.data.bones.active = next(bone for bone in rig.data.bones if bone.parent)
    select(scenes.link(bpy.data.objects.new("Aside", None)))
    assert "Make Root" not in pressable(drawn(SKINNING_PT_partial_solves))
    bpy.context.scene.skinning_partial.armature = rig.name
    layout = drawn(SKINNING_PT_partial_solves)
    assert "Make Root" in pressable(layout)
    assert layout.buttons["Make Root"].armature == rig.name
    assert bpy.ops.skinning.make_root("EXEC_DEFAULT", armature=rig.name) == {"FINISHED"}


def test_make_root_leaves_what_lies_between_the_last_frame_and_the_present_pose_out_of_limits():
    """A part bends far about an axis in the fifth frame, which is present, and about another in the last one: between
    both, it would be twisted."""
    moving_meshes.fresh_scene(13)
    angles = np.linspace(0.0, 2.4, 5)[:, None]
    bends = np.concatenate([angles * [0, 0, 1], angles[-2::-1] * [0, 0, 1], angles[1:] * [0, 1, 0]])
    given = {"bone_kind": "RIGID", "joint_hierarchy": True, "rotation_only": True, "rotation_limits": True}
    _, rig = convert(turning_bar("Arm", Rotation.from_rotvec(bends)), bone_count=2, **given)
    bpy.context.scene.frame_set(5)
    select(rig)
    drain(new_root.make_root(bpy.context, rig, bone=next(bone.name for bone in rig.data.bones if bone.parent)))
    limit = next(each for bone in rig.pose.bones for each in bone.constraints)
    assert limit.max_y - limit.min_y < 0.7, "radians; the twist between is 0.8 more"


def test_make_root_keeps_locked_bones_that_move_keys_beyond_the_range_and_motion_of_others():
    jointed, rig = convert(bending_bar((0.0, 2.0, 4.0)), bone_kind="RIGID", joint_hierarchy=True)
    for bone in rig.pose.bones:
        bone.lock_location = (True, True, True)
    action = rig.animation_data.action
    action.use_frame_range, action.frame_start, action.frame_end = True, 2, 4
    if hasattr(action, "slots"):
        other = scenes.link(rig.copy())
        other.data, other.name = rig.data.copy(), "Other"
        other.animation_data.action_slot = action.slots.new("OBJECT", "Other")
        other.pose.bones[0].keyframe_insert("location", frame=1)
    bpy.context.scene.render.frame_map_new = 200
    shape = scenes.played(jointed, range(1, 17))
    select(rig)
    name = next(bone.name for bone in rig.data.bones if bone.parent)
    looking = scenes.link(bpy.data.objects.new("Looking", None)).constraints.new("COPY_ROTATION")
    looking.target, looking.subtarget = rig, name
    assert drain(new_root.make_root(bpy.context, rig, bone=name)).notes[-1].endswith("may move otherwise: Looking")
    np.testing.assert_allclose(scenes.played(jointed, range(1, 17)), shape, atol=1e-5 * size_of(jointed))
    rig.animation_data_clear()
    shape = scenes.played(jointed, FRAMES)
    drain(new_root.make_root(bpy.context, rig, bone=next(bone.name for bone in rig.data.bones if bone.parent)))
    np.testing.assert_allclose(scenes.played(jointed, FRAMES), shape, atol=1e-5 * size_of(jointed))
    rig.data.pose_position = "REST"
    refused("make_root", "ARMATURE_AT_REST", bone=next(bone.name for bone in rig.data.bones if bone.parent))


def test_make_root_bakes_motion_without_an_end_and_tells_of_mixed_strips():
    jointed, rig = convert(bending_bar((0.0, 1.5, 3.0, 4.5)), bone_count=4, bone_kind="RIGID", joint_hierarchy=True)
    bpy.context.scene.frame_end = 20
    for curve in existing_curves(rig):
        curve.modifiers.new("CYCLES").mode_after = "REPEAT"
    animation, tip = rig.animation_data, next(bone.name for bone in rig.data.bones if len(bone.parent_recursive) > 1)
    way = [tip, *(bone.name for bone in rig.data.bones[tip].parent_recursive)]
    walk, aside = animation.action, next(bone for bone in rig.pose.bones if bone.name not in way)
    shape = scenes.played(jointed, range(1, 21))
    found = drain(new_root.make_root(bpy.context, rig, bone=tip))
    np.testing.assert_allclose(scenes.played(jointed, range(1, 21)), shape, atol=1e-5 * size_of(jointed))
    assert found.notes[-1].endswith(f"stand still now: {walk.name} (1 to 20)")
    animation.action = None
    animation.nla_tracks.new().strips.new("Walk", 1, walk)
    for frame, angle in ((1, 0.0), (4, 0.5)):
        aside.rotation_quaternion = (1.0, 0.0, 0.0, angle)
        aside.keyframe_insert("rotation_quaternion", frame=frame)
    layer = animation.nla_tracks.new().strips.new("Wave", 1, animation.action)
    animation.action = None
    shape = scenes.played(jointed, FRAMES)
    assert not drain(new_root.make_root(bpy.context, rig, bone=way[1])).notes
    np.testing.assert_allclose(scenes.played(jointed, FRAMES), shape, atol=1e-5 * size_of(jointed))
    layer.blend_type, rig.data.bones[aside.name].bbone_segments = "COMBINE", 2
    animation.nla_tracks[0].is_solo = True
    assert not root_notes.mixed_notes(rig, [aside.name]), "it does not play"
    animation.nla_tracks[0].is_solo = False
    told = "NLA strips that are mixed with others may move otherwise: Wave. If they do, undo"
    found = drain(new_root.make_root(bpy.context, rig, bone=aside.name)).notes
    assert found[1].startswith(told)
    assert found[2] == f"bendy bones may bend otherwise: {aside.name}"


def test_make_root_needs_bones_that_only_their_keys_move():
    jointed, rig = convert(bending_bar((0.0, 2.0, 4.0)), bone_kind="RIGID", joint_hierarchy=True)
    name = next(bone.name for bone in rig.data.bones if bone.parent)
    select(jointed)
    refused("make_root", 'has no bone "Elbow". Select the bone', bone="Elbow")
    rig.pose.bones[name].constraints.new("DAMPED_TRACK")
    refused("make_root", "would override its keys", bone=name)
    rig.pose.bones[name].constraints.remove(rig.pose.bones[name].constraints[0])
    rig.data.bones[name].use_inherit_rotation = False
    refused("make_root", "does not inherit all of its parent's motion", bone=name)
    rig.data.bones[name].use_inherit_rotation = True
    other = scenes.link(rig.copy())
    other.data = rig.data.copy()
    refused("make_root", f'moves "{other.name}", too', bone=name, armature=rig.name)
    bpy.data.objects.remove(other)
    select(jointed)
    for curve in [each for each in existing_curves(rig) if each.data_path.endswith(f'"{name}"].scale')]:
        curve.keyframe_points[0].co[1] = 2.0
        curve.update()
    rig.pose.bones[name].scale = (2.0, 2.0, 2.0)
    refused("make_root", "are scaled, so that they cannot be reversed", bone=name)
