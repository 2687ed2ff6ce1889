# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose test: tears and contact in color, by bone."""

import json
import math

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender import attributes, self_contact
from skinning_tools.blender.armatures import bones_edited
from skinning_tools.blender.background import drain
from skinning_tools.blender.bone_selection import selectable
from skinning_tools.blender.error_display import POSE_TEST_COLORS
from skinning_tools.blender.weight_tools import forget_figures
from skinning_tools.core.errors import BadScene
from skinning_tools.features.pose_test import pose_test
from skinning_tools.features.pose_test.panel import SKINNING_PT_pose_test
from tests.blender import moving_meshes, scenes
from tests.blender.panel_recorder import drawn, pressable
from tests.blender.partial_scenes import select, tube
from tests.blender.refusals import refused

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def arm():
    ob, rig = tube()
    select(ob)
    return ob, rig


def stretch_in_blender(ob, rig, name) -> float:
    """The largest stretch of an edge while a bone turns by 30 degrees about each axis, as Blender evaluates it."""
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
        bone.rotation_mode = "XYZ"
    edges = np.array([edge.vertices for edge in ob.data.edges])

    def lengths():
        points = scenes.played(ob, [1])[0]
        return np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)

    rest, largest = lengths(), 0.0
    for axis in range(3):
        for sign in (1, -1):
            rig.pose.bones[name].rotation_euler[axis] = sign * math.radians(30)
            largest = max(largest, (lengths() / rest).max())
        rig.pose.bones[name].rotation_euler[axis] = 0.0
    return largest


@pytest.mark.parametrize("volume", [False, True])
def test_it_stretches_edges_as_blender_does(arm, volume):
    ob, rig = arm
    ob.modifiers[0].use_deform_preserve_volume = volume
    before = moving_meshes.state()
    found = drain(pose_test.run_pose_test(bpy.context, ob, contact=False))
    assert moving_meshes.state() == before
    stretch = {bone.name: bone.stretch for bone in found.bones}
    assert stretch["Bone 2"] == pytest.approx(stretch_in_blender(ob, rig, "Bone 2"), rel=1e-4)


@pytest.mark.parametrize("hiding", ["bone", "collection", "collections"])
def test_of_controls_that_carry_the_deforming_bones_only_visible_ones_turn(arm, hiding):
    ob, rig = arm
    with bones_edited(bpy.context, rig) as edit_bones:
        above = None
        for bone in [edit_bones[f"Bone {number}"] for number in range(5)]:
            control = edit_bones.new(bone.name.replace("Bone", "Control"))
            control.head, control.tail, control.use_deform = bone.head, bone.tail, False
            control.parent, bone.use_connect = above, False
            bone.parent = above = control
    outer = rig.data.collections.new("Outer")
    inner = rig.data.collections.new("Inner", parent=outer)
    (inner if hiding == "collections" else outer).assign(rig.data.bones["Control 2"])
    if hiding == "bone":
        selectable(rig)["Control 2"].hide = True
    else:
        outer.is_visible = False
    turned = {bone.name for bone in drain(pose_test.run_pose_test(bpy.context, ob, contact=False)).bones}
    assert "Control 1" in turned
    assert "Control 2" not in turned


def test_a_hard_joint_is_red_and_named(arm):
    ob, rig = arm
    keys = len(bpy.data.actions)
    for name in ("Bone 0", "Bone 1"):
        ob.vertex_groups.remove(ob.vertex_groups[name])
    # What is left of the joint to the next bone is one hard edge.
    points = np.array([vertex.co for vertex in ob.data.vertices])
    along = points[:, int(np.ptp(points, axis=0).argmax())]
    middle = np.median(along)
    for group in ob.vertex_groups:
        group.remove(range(len(points)))
    ob.vertex_groups["Bone 2"].add(np.flatnonzero(along <= middle).tolist(), 1.0, "REPLACE")
    ob.vertex_groups["Bone 3"].add(np.flatnonzero(along > middle).tolist(), 1.0, "REPLACE")
    poses = scenes.played(ob, range(1, 9))
    select(rig)
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.skinning.pose_test(tear_limit=1.5) == {"FINISHED"}
    record = ob["skinning_pose_test"]
    assert record["torn"] > 0
    assert record["worst"][0].startswith("Bone 3 (")
    colors = attributes.read_attribute(ob.data, POSE_TEST_COLORS)
    red = np.flatnonzero((np.abs(colors[:, :3] - pose_test.TORN) < 0.01).all(axis=1))
    assert len(red)
    step = np.diff(np.unique(along.round(4))).max()
    assert np.abs(along[red] - middle).max() <= 1.01 * step
    assert len(bpy.data.actions) == keys
    np.testing.assert_array_equal(scenes.played(ob, range(1, 9)), poses)
    # Other weights make the figures void, but not the colors.
    forget_figures(ob)
    assert "skinning.hide_pose_test" in pressable(drawn(SKINNING_PT_pose_test))
    assert bpy.ops.skinning.hide_pose_test() == {"FINISHED"}
    assert POSE_TEST_COLORS not in ob.data.attributes
    refused("hide_pose_test", error=RuntimeError)


def test_faces_that_run_into_others():
    """A flap above a plate touches it only when it turns, and that counts if there is a bone between them."""
    scenes.empty_scene()
    points = [(0, -1, 0), (2, -1, 0), (2, 1, 0), (0, 1, 0), (0.1, -0.5, 0.2), (1.5, -0.5, 0.2), (1.5, 0.5, 0.2)]
    points.append((0.1, 0.5, 0.2))
    ob = moving_meshes.add_object("Flap", np.array(points), [[0, 1, 2, 3], [4, 5, 6, 7]])
    rig = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    select(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    for name, parent in (("plate", ""), ("hinge", "plate"), ("flap", "hinge")):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail, bone.parent = (0, 0, 0.2), (0, 1, 0.2), rig.data.edit_bones.get(parent)
    bpy.ops.object.mode_set(mode="OBJECT")
    for name, vertices in (("plate", range(4)), ("hinge", ()), ("flap", range(4, 8))):
        ob.vertex_groups.new(name=name).add(list(vertices), 1.0, "REPLACE")
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    select(ob)
    found = drain(pose_test.run_pose_test(bpy.context, ob, angle=math.radians(20)))
    assert (found.record.touching, found.record.torn) == (4, 0)
    assert found.touching.all()
    less = drain(pose_test.run_pose_test(bpy.context, ob, angle=math.radians(5)))
    assert less.record.touching == 0
    select(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["flap"].parent = rig.data.edit_bones["plate"]
    bpy.ops.object.mode_set(mode="OBJECT")
    beside = drain(pose_test.run_pose_test(bpy.context, ob, angle=math.radians(20)))
    assert beside.record.touching == 0, "skin folds between neighbors"


def test_blocks_of_faces_touch_as_the_whole_does(monkeypatch):
    """Two sheets in each other's way, one of which bends into the other."""
    across = np.linspace(0, 1, 12)
    sheet = np.array([(x, y, 0) for x in across for y in across])
    squares = np.array([(12 * i + k, 12 * i + k + 1, 12 * i + k + 12) for i in range(11) for k in range(11)])
    rest = np.concatenate([sheet, sheet + np.array([0, 0, 0.05])])
    triangles = np.concatenate([squares, squares + len(sheet)])
    shares = np.clip(2 * sheet[:, 0] - 0.5, 0, 1)
    vertices = np.flatnonzero(shares > 0)
    points = rest.copy()
    points[vertices, 2] += 0.2 * shares[vertices]
    parts = np.repeat([0, 1], len(sheet)), np.zeros((2, 2), bool)
    whole = self_contact.SelfContact(rest, triangles, *parts).touching(points, vertices, shares[vertices])
    monkeypatch.setattr(self_contact, "_BLOCK", 9)
    blocks = self_contact.SelfContact(rest, triangles, *parts).touching(points, vertices, shares[vertices])
    assert 0 < len(whole) < len(triangles)
    np.testing.assert_array_equal(blocks, whole)


def test_on_the_command_line(arm, tmp_path):
    path, report = tmp_path / "arm.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert command_line.main(["pose-test", "--object", "Arm", "--no-contact", "--report", str(report), "--quiet"]) == 0
    assert json.loads(report.read_text())["figures"]["bones"]["Bone 2"]["stretch"] > 1


def test_edit_mode_meanwhile_is_refused(arm):
    ob, _ = arm
    steps = pose_test.show_pose_test(bpy.context, ob)
    while next(steps)[1].startswith("Reading"):
        pass
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(BadScene, match="is in Edit Mode"):
        drain(steps)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert not ob.data.color_attributes


def test_one_bone_alone_has_no_joint(arm):
    ob, _ = arm
    for name in ("Bone 1", "Bone 2", "Bone 3", "Bone 4"):
        ob.vertex_groups.remove(ob.vertex_groups[name])
    ob.vertex_groups["Bone 0"].add(list(range(len(ob.data.vertices))), 1.0, "REPLACE")
    refused("pose_test", "no joint to test")
