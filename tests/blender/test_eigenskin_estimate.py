# SPDX-License-Identifier: GPL-3.0-or-later
"""The error at left-out examples before anything is built, and the pose of the next example."""

import bpy
import numpy as np
import pytest

from skinning_tools.features.eigenskin.estimate import last_estimate
from skinning_tools.features.eigenskin.example_pose import local_rotations
from tests.blender import refusals
from tests.blender.eigenskin_scenes import limb_with_examples

pytestmark = pytest.mark.usefixtures("extension")


def test_the_error_is_shown_before_a_build_and_until_the_examples_change():
    ob, rig = limb_with_examples()
    assert bpy.ops.skinning.eigenskin_estimate() == {"FINISHED"}
    assert ob.data.shape_keys is None
    found = last_estimate(rig, ob)
    assert 0 < found.error < 1
    assert "Error at left-out examples" in [figure.label for figure in found.figures()]
    assert found.worst in [item.name for item in rig.skinning_eigenskin.examples]
    rig.skinning_eigenskin.examples[0].enabled = False
    assert last_estimate(rig, ob) is None


def test_the_next_example_is_posed_and_its_error_shrinks():
    ob, rig = limb_with_examples()
    bpy.ops.skinning.eigenskin_estimate()
    before = last_estimate(rig, ob)
    assert bpy.ops.skinning.eigenskin_pose_next() == {"FINISHED"}
    names = [bone.name for bone in rig.pose.bones]
    found = local_rotations(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()), names)
    expected = np.tile([1.0, 0, 0, 0], (len(names), 1))
    expected[names.index(before.joint)] = before.rotation
    np.testing.assert_allclose(np.abs((found * expected).sum(axis=1)), 1, atol=1e-6)
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.ops.skinning.eigenskin_add_example()
    assert last_estimate(rig, ob) is None
    bpy.ops.skinning.eigenskin_estimate()
    assert last_estimate(rig, ob).rotation != before.rotation


def test_refusals():
    ob, rig = limb_with_examples()
    refusals.refused("eigenskin_pose_next", "Estimate Error")
    bpy.ops.skinning.eigenskin_estimate()
    joint = last_estimate(rig, ob).joint
    constraint = rig.pose.bones[joint].constraints.new("LIMIT_ROTATION")
    constraint.use_limit_x = constraint.use_limit_y = constraint.use_limit_z = True
    constraint.owner_space = "LOCAL"
    refusals.refused("eigenskin_pose_next", joint, "Pose its controls", state=lambda: None)
    for item in rig.skinning_eigenskin.examples:
        item.enabled = False
    refusals.refused("eigenskin_estimate", "disabled")
