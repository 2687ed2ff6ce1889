# SPDX-License-Identifier: GPL-3.0-or-later
"""Posing the armature as in an example, however the bones are moved."""

import bpy
import pytest
from mathutils import Quaternion

from tests.blender import scenes
from tests.blender.eigenskin_scenes import limb, limb_with_examples, pose
from tests.blender.example_scenes import add, add_bone, copy_rotation, limit, near

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "ZXY", "AXIS_ANGLE"])
def test_showing_a_pose(mode):
    ob, rig = limb()
    bone = rig.pose.bones["lower"]
    pose(rig)
    rig.pose.bones["upper"].rotation_quaternion = Quaternion((1, 2, 3), 0.8)
    bone.rotation_quaternion = Quaternion((3, -1, 2), 1.1)
    bone.location, bone.scale = (0.1, 0.2, -0.1), (1.1, 0.9, 1.2)
    rig.pose.bones["root"].location = (0.5, 0, 0.1)
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    pose(rig, [("trunk", "X", 40)])
    bone.rotation_mode = mode
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown)
    assert bone.rotation_mode == mode


def test_showing_a_pose_of_controls():
    ob, rig = limb()
    add_bone(rig, "control", "root")
    pose(rig, [("control", "Z", 40), ("upper", "X", 10)])
    constraint = rig.pose.bones["lower"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget = rig, "control"
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    pose(rig)
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown)


def comes_back_without_its_channels(ob, rig) -> None:
    """As examples are that were not posed by hand: from rotations and matrices alone."""
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    item = rig.skinning_eigenskin.examples[0]
    item.storage[item.uid]["channels"] = "{}"
    pose(rig)
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown, tolerance=1e-5)


def test_showing_a_pose_without_its_controls():
    ob, rig = limb()
    pose(rig, [("upper", "Z", 40), ("lower", "X", 50)])
    rig.pose.bones["root"].rotation_quaternion = Quaternion((3, -1, 2), 1.1)
    rig.pose.bones["lower"].location = (0.1, 0.2, -0.1)
    rig.pose.bones["lower"].scale = (1.1, 0.9, 1.2)
    rig.data.bones["lower"].use_inherit_rotation = False
    comes_back_without_its_channels(ob, rig)


def test_showing_a_pose_does_not_turn_what_constraints_turn():
    ob, rig = limb()
    pose(rig, [("upper", "Z", 40)])
    copy_rotation(rig)
    rig.pose.bones["lower"].constraints[0].mix_mode = "ADD"
    comes_back_without_its_channels(ob, rig)


def test_showing_a_pose_that_something_else_holds(capfd):
    _ob, rig = limb_with_examples()
    limit(rig)
    bpy.ops.skinning.eigenskin_apply_pose(index=0)
    assert 'Warning: "lower" cannot be posed as in "lower X -90°"' in capfd.readouterr().out
