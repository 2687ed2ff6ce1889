# SPDX-License-Identifier: GPL-3.0-or-later
"""Add Helper Bones with Driven: the helpers follow the pose, in every action, without keyframes and scripts."""

import json
from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender.helper_bones import driven
from skinning_tools.core.imitation.driven_helpers import DrivenHelper
from skinning_tools.features.partial import helpers as helpers_module
from skinning_tools.features.partial.helpers import add_helper_bones
from tests.blender import action_scenes, refusals, scenes
from tests.blender.helper_bone_scenes import ROUNDING, added_helpers, jiggling_rig, remove, stored, structure
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    cancelled_at,
    error,
    figures,
    keys_of,
    moving_copy,
    select,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")

add = partial(refusals.finished, "add_helper_bones", driven=True)
refused = partial(refusals.refused, "add_helper_bones", driven=True)


@pytest.fixture
def rig():
    """The tube with three actions, whose target is Corrective Smooth."""
    return action_scenes.rig_of_clips()


def error_in(armature, ob, target, name) -> float:
    """E_RMS against the target while the action plays."""
    present = armature.animation_data.action
    armature.animation_data.action = bpy.data.actions[name]
    frames = range(1, 13)
    found = error(ob, scenes.played(target, frames), frames)
    armature.animation_data.action = present
    return found


def unseen(armature) -> str:
    """An action in which the bones turn otherwise than in the others."""
    present = armature.animation_data.action
    action_scenes.add_clip(armature, "Unseen", 12, 0, BONES[::2], amount=0.5)
    armature.animation_data.action = present
    return "Unseen"


def test_helpers_follow_the_pose_in_all_actions(rig):
    ob, armature, target = rig
    name = unseen(armature)
    bpy.data.actions[name].use_fake_user = False
    before = {each: error_in(armature, ob, target, each) for each in (*action_scenes.CLIPS, name)}
    keys = {each: keys_of(bpy.data.actions[each]) for each in action_scenes.CLIPS}
    add(bone_count=4, actions="SELECTED", action_names=",".join(action_scenes.CLIPS))
    helpers = added_helpers(armature)
    assert helpers
    after = {each: error_in(armature, ob, target, each) for each in before}
    assert all(after[each] < before[each] for each in after), (before, after)
    assert np.mean([after[each] / before[each] for each in action_scenes.CLIPS]) < 0.8
    found = figures(ob)
    assert 0.3 < found.of_free < 1.0
    at = {each: place for place, each in enumerate(found.clips)}
    # What the report says of an action that it did not use is what Blender plays.
    assert found.clips_after[at["Bend"]] < found.clips_before[at["Bend"]]
    # No action is new, and none has changed.
    assert set(bpy.data.actions.keys()) == {*action_scenes.CLIPS, name}
    for each, values in keys.items():
        now = keys_of(bpy.data.actions[each])
        assert now.keys() == values.keys()
        assert all(np.array_equal(now[key], values[key]) for key in now)


def test_coefficients_have_as_many_digits_as_an_expression_has_room_for():
    """Of the most variables, the three of two joints and one of a third; and a channel with few."""
    most = np.zeros((3, 9))
    most[:2], most[2, [0, 3]] = -1.2345678e-5, 12345.678
    few = np.zeros((3, 9))
    few[1, 0] = 0.12345678
    helper = DrivenHelper(0, np.zeros(3), (0, 1, 2), np.stack([most.ravel(), few.ravel()], axis=1), np.eye(3))
    coefficients = driven.rounded([helper])[0].coefficients.T.reshape(2, 3, 9)
    texts = [driven._sum_of_products(channel)[0] for channel in coefficients]
    assert max(map(len, texts)) <= 250
    np.testing.assert_allclose(coefficients[0], most, rtol=0.05)
    assert texts[1] == "x0*(.12346)"
    x, y, z = 0.1, 0.2, -0.3
    values = {f"{axis}{joint}": value for axis, value in zip("xyz", (x, y, z), strict=True) for joint in range(3)}
    products = np.array([x, y, z, x * x, y * y, z * z, x * y, x * z, y * z])
    assert eval(texts[0], values) == pytest.approx(float((coefficients[0] @ products).sum()))


def test_drivers_are_plain_and_are_removed_with_the_helpers(rig):
    ob, armature, _ = rig
    before, bones = stored(ob), structure(armature)
    add(bone_count=3)
    drivers = armature.animation_data.drivers
    assert all(curve.driver.is_valid and curve.driver.is_simple_expression for curve in drivers)
    assert max(len(curve.driver.expression) for curve in drivers) <= 250
    assert {path.split('"')[1] for path in (curve.data_path for curve in drivers)} == set(added_helpers(armature))
    for helper in added_helpers(armature):
        assert armature.data.bones[helper].parent.name in BONES
    remove()
    assert structure(armature) == bones
    assert not armature.animation_data.drivers
    # Rows of weights with helpers sum to 1 now, in the same ratios.
    after = stored(ob)
    np.testing.assert_allclose(after / after.sum(axis=0), before / before.sum(axis=0), rtol=0, atol=10 * ROUNDING)


def test_a_present_animation_and_own_weights_that_adapt(rig):
    ob, armature, target = rig
    before = error_in(armature, ob, target, "Twist")
    add(bone_count=2, actions="CURRENT", frame_start=1, frame_end=9, own_weights="ADAPT")
    assert error_in(armature, ob, target, "Twist") < 0.9 * before
    assert figures(ob).e_rms < figures(ob).e_rms_before
    # A second round: the first helpers drive and carry no others.
    first = added_helpers(armature)
    add(bone_count=1, actions="CURRENT", frame_start=1, frame_end=9)
    assert len(added_helpers(armature)) == len(first) + 1
    assert all(armature.data.bones[name].parent.name in BONES for name in added_helpers(armature))
    for curve in armature.animation_data.drivers:
        for variable in curve.driver.variables:
            assert variable.type != "TRANSFORMS" or variable.targets[0].bone_target in BONES


def test_in_a_mirrored_and_scaled_space(rig):
    """Mesh and armature have different spaces, in which the helpers turn the same way."""
    ob, armature, target = rig
    for each in (ob, target):
        each.scale = (-1.2, -1.2, -1.2)
        each.data.transform(np.diag([-1.0, -1.0, -1.0, 1.0]))
    bpy.context.view_layer.update()
    before = error_in(armature, ob, target, "Bend")
    add(bone_count=3)
    assert error_in(armature, ob, target, "Bend") < 0.85 * before
    assert figures(ob).of_free > 0.3


def test_without_animation_of_the_armature_before_drivers_are_made(rig):
    """Bones posed by another rig's constraints: the drivers make the animation data, and removal unmakes it."""
    ob, armature, _ = rig
    other = armature.copy()
    other.data = armature.data.copy()
    scenes.home().objects.link(other)
    other.animation_data.action = bpy.data.actions["Bend"]
    armature.animation_data_clear()
    for bone in armature.pose.bones:
        constraint = bone.constraints.new("COPY_ROTATION")
        constraint.target, constraint.subtarget = other, bone.name
        constraint.target_space = constraint.owner_space = "LOCAL"
    bpy.context.view_layer.update()
    add(bone_count=2, actions="CURRENT", frame_start=1, frame_end=6)
    assert figures(ob).e_rms < figures(ob).e_rms_before
    remove()
    assert armature.animation_data is None


def test_cancelled_leaves_nothing(rig):
    ob, armature, _ = rig
    weights, before, blocks = weights_of(ob, armature), scenes.ui_state(), scenes.data_blocks()
    for fraction in (0.3, 0.5, 0.75, 0.9):
        cancelled_at(fraction, add_helper_bones(bpy.context, ob, driven=True))
        assert scenes.ui_state() == before
        assert scenes.data_blocks() == blocks
        assert [bone.name for bone in armature.data.bones] == list(BONES)
        assert not armature.animation_data.drivers
        assert np.array_equal(weights_of(ob, armature), weights)


@pytest.mark.parametrize("driven", [True, False])
def test_a_write_that_fails_leaves_nothing(rig, driven, monkeypatch):
    ob, armature, _ = rig
    weights, before, blocks = weights_of(ob, armature), scenes.ui_state(), scenes.data_blocks()

    def fail(target):
        raise MemoryError("none left")

    monkeypatch.setattr(helpers_module, "forget_figures", fail)
    with pytest.raises(RuntimeError, match=r"none left|[Mm]emory"):
        bpy.ops.skinning.add_helper_bones(driven=driven, bone_count=2)
    assert (scenes.ui_state(), scenes.data_blocks()) == (before, blocks)
    assert [bone.name for bone in armature.data.bones] == list(BONES)
    assert not armature.animation_data.drivers
    assert np.array_equal(weights_of(ob, armature), weights)


def test_bad_input(rig):
    ob, armature, target = rig
    refused("Driven helper bones only move and rotate. Set Bone Kind to Rigid", bone_kind="AFFINE")
    refused("Set Bone Kind to Rigid", bone_kind="SCALED")
    ob.keyframe_insert("location", frame=1)
    ob.location.x += 2.0
    ob.keyframe_insert("location", frame=12)
    refused('"Arm" moves as a whole relative to "Rig"', "without Driven", actions="CURRENT")
    ob.animation_data_clear()
    bpy.ops.object.select_all(action="DESELECT")
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in armature.data.edit_bones:
        bone.parent = None
    bpy.ops.object.mode_set(mode="OBJECT")
    select(target, ob)
    refused('No deforming bone of "Rig" has a deforming parent', "without Driven")


def test_a_motion_that_no_pose_decides():
    """The armature stands still while the flesh jiggles."""
    ob, armature, target, _ = jiggling_rig()
    wanted = scenes.played(target, FRAMES)
    armature.animation_data.action = None
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    still = scenes.played(ob, FRAMES)
    bpy.data.objects.remove(target)
    jiggle = 0.1 * np.sin(2.0 * np.arange(len(wanted)))[:, None, None] * np.ones((1, still.shape[1], 1))
    select(moving_copy(ob, (still + jiggle * [0.0, 0.0, 1.0]).astype(np.float32)), ob)
    refused("does not depend on the pose of", "without Driven", bone_count=1)


def test_a_helper_that_no_joint_drives_rests_beside_its_carrier(rig, tmp_path):
    """As where all joints near it come near half a turn."""
    ob, armature, _ = rig
    plan = driven.plan_driven_bones(armature, [ob], BONES, np.arange(-1, len(BONES) - 1), [DrivenHelper(1)])
    driven.make_driven_bones(bpy.context, armature, plan)
    bone = armature.pose.bones[plan.names[0]]
    assert bone.parent.name == BONES[1]
    assert not [curve for curve in armature.animation_data.drivers if bone.name in curve.data_path]
    table = tmp_path / "helpers.json"
    refusals.finished("save_helper_table", filepath=str(table))
    assert json.loads(table.read_text("utf-8"))["helpers"][0]["joints"] == []


def test_command_line(rig, tmp_path, capsys):
    ob, armature, target = rig
    before = error_in(armature, ob, target, "Wave")
    path, output = tmp_path / "shot.blend", tmp_path / "helped.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["add-helper-bones", "--object", ob.name, "--target", target.name, "--output", str(output)]
    assert command_line.main([*arguments, "--bones", "3", "--driven"]) == 0
    said = capsys.readouterr().out
    assert "driven helper bone" in said
    assert "of free helper bones" in said.lower()
    bpy.ops.wm.open_mainfile(filepath=str(output))
    ob, armature, target = (bpy.data.objects[name] for name in ("Arm", "Rig", "Target"))
    assert armature.animation_data.drivers
    assert error_in(armature, ob, target, "Wave") < before
