# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: links, twist bones and a bulge on a person's arm, a shoulder, a skirt, sliders, undo.

Started by run.py.
"""

import bpy
import numpy as np
from driver import (
    after,
    begin_with,
    enable,
    idle,
    in_window,
    open_tab,
    passes,
    picture,
    press_button,
    switch_off,
    views,
)
from mathutils import Quaternion, Vector

from skinning_tools.blender.helper_bones.bones import OF_JOINTS_COLLECTION
from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.features.helpers.panel import (
    SKINNING_PT_bone_links,
    SKINNING_PT_bulge_bones,
    SKINNING_PT_joint_helpers,
)
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes
from tests.conftest import SHARED

HUMAN = SHARED / "human_rig.npz"


def names() -> dict[str, str]:
    """The bones of the arm."""
    if HUMAN.is_file():
        return {"upper": "upperarm02.L", "fore": "lowerarm01.L", "twist": "lowerarm02.L", "hand": "wrist.L"}
    return {"upper": "upper.L", "fore": "fore.L", "twist": "fore.L", "hand": "hand.L"}


def objects():
    return (bpy.data.objects["Human"], bpy.data.objects["Human rig"])


def person() -> None:
    """The person, or a bar where the sample is missing, in Pose Mode at rest."""
    ob, rig = limbs.human(HUMAN) if HUMAN.is_file() else limbs.bar(joints=(2.0, 4.0), apart=False)
    ob.name, rig.name = "Human", "Human rig"
    for face in ob.data.polygons:
        face.use_smooth = True
    rig.show_in_front = True
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")


def select(name: str) -> None:
    rig = objects()[1]
    scenes.select_bones(rig, name)
    rig.data.bones.active = rig.data.bones[name]


def bend(degrees: float, twist=0.0) -> None:
    """The elbow folded up to the front, the hand turned about the forearm."""
    rig = objects()[1]
    upper, fore = (rig.data.bones[names()[part]].matrix_local.to_3x3() for part in ("upper", "fore"))
    axis = upper.col[1].cross(fore.col[1])
    axis = axis.normalized() if axis.length > 1e-3 else Vector((0, 0, 1))
    for part, about, angle in (("fore", axis, degrees), ("hand", None, twist)):
        bone = rig.pose.bones[names()[part]]
        rest = bone.bone.matrix_local.to_3x3()
        own = rest.inverted() @ about if about is not None else Vector((0, 1, 0))
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(own, np.radians(angle))
    bpy.context.view_layer.update()


def look_at_arm() -> None:
    """From the person's left and a little from behind."""
    rig = objects()[1]
    place = rig.matrix_world @ rig.data.bones[names()["fore"]].head_local
    with in_window():
        region = bpy.context.space_data.region_3d
        region.view_location = place
        region.view_distance = 5.0
        region.view_rotation = Quaternion((0, 0, 1), np.radians(105)) @ Quaternion((1, 0, 0), np.radians(85))


def look_at(place, turn: float, distance: float) -> None:
    """From the front, turned about the vertical by ``turn`` degrees and a little from above."""
    with in_window():
        region = bpy.context.space_data.region_3d
        region.view_location, region.view_distance = place, distance
        region.view_rotation = Quaternion((0, 0, 1), np.radians(turn)) @ Quaternion((1, 0, 0), np.radians(80))


def turn_to(name: str, joint: str, direction) -> None:
    """Turn a bone so that the line from it to a ``joint`` points to a direction of the armature's space."""
    rig = objects()[1]
    bone = rig.pose.bones[name]
    axes = bone.bone.matrix_local.to_3x3()
    straight = rig.data.bones[joint].head_local - bone.bone.head_local
    turn = straight.rotation_difference(Vector(direction)).to_matrix()
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = (axes.transposed() @ turn @ axes).to_quaternion()
    bpy.context.view_layer.update()


def skirt() -> None:
    """A skirt on the person's hips, which follows no leg."""
    person()
    rig = objects()[1]
    rows, columns = 24, 48
    angles = np.linspace(0, 2 * np.pi, columns, endpoint=False)
    heights = np.linspace(1.0, -3.6, rows)
    wide, deep = np.linspace(1.8, 2.9, rows)[:, None], np.linspace(1.45, 2.3, rows)[:, None]
    x, z = wide * np.cos(angles), 0.1 + deep * np.sin(angles)
    points = np.stack([x, np.repeat(heights[:, None], columns, axis=1), z], axis=-1).reshape(-1, 3)
    corner = np.arange(rows * columns).reshape(rows, columns)
    beside = np.roll(corner, -1, axis=1)
    faces = np.stack([corner[:-1], beside[:-1], beside[1:], corner[1:]], axis=-1).reshape(-1, 4)
    bpy.ops.object.mode_set(mode="OBJECT")
    ob = scenes.mesh_object(points, faces[:, ::-1].tolist(), name="Skirt")
    ob.rotation_euler = rig.rotation_euler
    ob.vertex_groups.new(name="spine05").add(list(range(len(points))), 1.0, "REPLACE")
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    for face in ob.data.polygons:
        face.use_smooth = True
    ob.color = (0.35, 0.45, 0.7, 1)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")


def show_bones(shown: bool) -> None:
    for area in views():
        area.spaces.active.overlay.show_bones = shown


def tests():
    enable(SKINNING_PT_joint_helpers, SKINNING_PT_bone_links)
    yield from begin_with(person)
    yield from linked()
    yield from bulged()
    yield from removed()
    # The sidebar has no room for the panels of both.
    switch_off()
    enable(SKINNING_PT_joint_helpers, SKINNING_PT_bulge_bones)
    yield from bulge_buttons()
    if HUMAN.is_file():
        yield from shoulder()
        yield from on_skirt()


def linked():
    """Generator: links at the elbow, and twist bones along the forearm."""
    yield from open_tab("Skinning")
    look_at_arm()
    yield after(0.5)
    picture("joint_helpers_1_empty")
    select(names()["fore"])
    bend(90, 160)
    show_bones(False)
    yield after(0.5)
    picture("joint_helpers_2_without")
    plain = scenes.evaluated_positions(objects()[0])
    yield from press_button("skinning.add_bone_links")
    yield lambda: idle() and len(find_helpers(objects()[1])) == 1
    assert objects()[1].mode == "POSE"
    with in_window():
        bpy.ops.skinning.add_bone_links(joints=names()["twist"], kind="TWIST", count=3)
        bpy.ops.ed.undo_push(message="Twist")
    yield after(1.0)
    picture("joint_helpers_3_linked")
    assert np.abs(scenes.evaluated_positions(objects()[0]) - plain).max() > 0.02
    passes("the button adds links at the selected joint")


def bulged():
    """Generator: a biceps, raised and flat."""
    select(names()["upper"])
    with in_window():
        bpy.ops.skinning.add_bulge_bone(bone=names()["upper"], amount=0.5, angle_end=np.radians(90))
        bpy.ops.ed.undo_push(message="Bulge")
    ob, rig = objects()
    bulge = rig.pose.bones[find_helpers(rig)[-1].skin[0]]
    bend(90)
    yield after(1.0)
    picture("joint_helpers_4_bulge")
    raised = scenes.evaluated_positions(ob)
    bulge["amount"] = 0.0
    rig.update_tag()
    yield after(0.5)
    picture("joint_helpers_5_flat")
    assert np.abs(raised - scenes.evaluated_positions(ob)).max() > 0.05
    passes("a bulge bone raises the skin as its slider says")
    bulge["amount"] = 0.5
    rig.data.collections_all[OF_JOINTS_COLLECTION].is_visible = True
    bpy.context.view_layer.update()
    show_bones(True)
    yield after(0.5)
    picture("joint_helpers_6_bones")


def removed():
    """Generator: all of it taken away, and two undos."""
    with in_window():
        bpy.ops.skinning.remove_bone_links("INVOKE_DEFAULT", all_joints=True)
        bpy.ops.ed.undo_push(message="Removed links")
        bpy.ops.skinning.remove_bulge_bone("INVOKE_DEFAULT", all_bones=True)
        bpy.ops.ed.undo_push(message="Removed bulges")
    assert not find_helpers(objects()[1])
    assert len(objects()[0].vertex_groups) == len(objects()[1].data.bones)
    with in_window():
        bpy.ops.ed.undo()
        assert len(find_helpers(objects()[1])) == 1
        bpy.ops.ed.undo()
    yield after(0.3)
    assert len(find_helpers(objects()[1])) == 3
    assert objects()[1].mode == "POSE"
    passes("removing is undone")


def bulge_buttons():
    """Generator: the buttons of the panel of bulges."""
    yield from begin_with(person)
    yield from open_tab("Skinning")
    select(names()["upper"])
    yield after(0.5)
    yield from press_button("skinning.add_bulge_bone")
    yield lambda: idle() and len(find_helpers(objects()[1])) == 1
    yield after(1.0)
    picture("joint_helpers_7_bulge_panel")
    yield from press_button("skinning.remove_bulge_bone", across=0.8)
    yield lambda: not find_helpers(objects()[1])
    passes("buttons add and remove a bulge")


def shoulder():
    """Generator: a raised arm, with the panel's button for the first of its bones."""
    yield from begin_with(person)
    yield from open_tab("Skinning")
    look_at(objects()[1].matrix_world @ objects()[1].data.bones["upperarm01.L"].head_local, 150, 5.0)
    show_bones(False)
    arm = ("upperarm01.L", "lowerarm01.L")
    turn_to(*arm, (0.5, 0.87, 0))
    yield after(0.5)
    picture("joint_helpers_8_shoulder_without")
    plain = scenes.evaluated_positions(objects()[0])
    turn_to(*arm, (0.64, -0.77, 0))
    settings = objects()[1].skinning_joint_helpers
    settings.preset, settings.driver_bone = "CLAVICLE", arm[0]
    select("spine01")
    yield after(0.5)
    yield from press_button("skinning.add_bulge_bone")
    yield lambda: idle() and len(find_helpers(objects()[1])) == 1
    with in_window():
        bpy.ops.skinning.add_bulge_bone(bone="spine01", driver_bone=arm[0], preset="SCAPULA")
    turn_to(*arm, (0.5, 0.87, 0))
    yield after(1.0)
    picture("joint_helpers_9_shoulder")
    assert np.abs(scenes.evaluated_positions(objects()[0]) - plain).max() > 0.3
    turn_to(*arm, (-0.6, 0, 0.8))
    yield after(0.5)
    picture("joint_helpers_10_across")
    passes("clavicle and scapula follow the arm")


def on_skirt():
    """Generator: a skirt that a leg pushes out."""
    yield from begin_with(skirt)
    yield from open_tab("Skinning")
    look_at(objects()[1].matrix_world @ Vector((0.5, -1.5, 0.5)), 50, 9.0)
    show_bones(False)
    leg = ("upperleg01.L", "lowerleg01.L")
    rest = scenes.evaluated_positions(bpy.data.objects["Skirt"])
    turn_to(*leg, (0.1, -0.6, 0.8))
    yield after(0.5)
    picture("joint_helpers_11_skirt_without")
    np.testing.assert_allclose(scenes.evaluated_positions(bpy.data.objects["Skirt"]), rest, atol=1e-5)
    with in_window():
        bpy.ops.skinning.add_bulge_bone(bone="spine05", driver_bone=leg[0], preset="CLOTH", mesh="Skirt")
    yield after(1.0)
    picture("joint_helpers_12_skirt")
    assert np.abs(scenes.evaluated_positions(bpy.data.objects["Skirt"]) - rest).max() > 1
    assert len(objects()[0].vertex_groups) == len(objects()[1].data.bones) - 1
    passes("a leg pushes the skirt out, and the body stays as it is")
