# SPDX-License-Identifier: GPL-3.0-or-later
"""Fitting weights to a pose refuses bad input with the reason, and changes nothing."""

import bpy
import numpy as np
import pytest

from tests.blender import scenes
from tests.blender.eigenskin_scenes import limb, link_limb, pose
from tests.blender.fit_scenes import place, positions, refused, start

pytestmark = pytest.mark.usefixtures("extension")


def test_rest_pose_is_refused():
    ob, rig = limb()
    refused("start_weight_fit", 'The pose of "Limb rig" moves all bones', "Pose the armature first")
    pose(rig, [("root", "X", 40)])
    refused("start_weight_fit", "moves all bones of", "alike")
    rig.data.pose_position = "REST"
    refused("start_weight_fit", "ARMATURE_AT_REST")
    ob.shape_key_add(name="Basis")
    ob.shape_key_add(name="Key")
    rig.data.pose_position = "POSE"
    refused("fit_weights_to_pose", "moves all bones of", source="SHAPE_KEY", shape_key="Key")


def test_bones_that_move_alike_are_named(bent):
    _, rig = bent
    pose(rig, [("upper", "Z", 40)])
    copy = start()
    tip = np.arange(340, 372)
    place(copy, tip, positions(copy.data)[tip] + 0.1)
    scenes.select_bones(rig, "upper", "lower")
    refused("fit_weights_to_pose", '"upper", "lower"', "in the same place in this pose", candidates="SELECTED")
    refused(
        "fit_weights_to_pose", "32 vertices", "only one bone moves each of them", "Choose other bones than Own Bones"
    )


def test_nothing_moved_or_selected(bent):
    _, rig = bent
    copy = start()
    refused("fit_weights_to_pose", 'No vertex of "Limb_fit" was moved')
    for vertex in copy.data.vertices:
        vertex.select = False
    refused("fit_weights_to_pose", "NO_VERTEX_SELECTED the posed copies", vertices="SELECTED")
    copy.data.vertices[150].co.z += 0.1
    scenes.select_bones(rig)
    refused("fit_weights_to_pose", "NO_BONE_SELECTED", candidates="SELECTED")
    scenes.select_bones(rig, "root")
    refused("fit_weights_to_pose", "NO_BONE_SELECTED", candidates="SELECTED")


def test_locked_groups_that_leave_nothing(bent):
    ob, _ = bent
    copy = start()
    copy.data.vertices[150].co.z += 0.1
    for group in ob.vertex_groups:
        group.lock_weight = True
    for candidates in ("OWN", "ALL"):
        refused("fit_weights_to_pose", "are locked", candidates=candidates)


def test_deformation_that_is_not_linear(bent):
    ob, rig = bent
    modifier = ob.modifiers["Armature"]
    modifier.use_deform_preserve_volume = True
    refused("start_weight_fit", 'PRESERVES_VOLUME "Armature"')
    modifier.use_deform_preserve_volume = False
    modifier.show_viewport = False
    refused("start_weight_fit", "MODIFIER_DISABLED")
    modifier.show_viewport = True
    rig.data.bones["lower"].bbone_segments = 8
    rig.pose.bones["lower"].bbone_curveinx = 0.5
    bpy.context.view_layer.update()
    refused("start_weight_fit", "its weights do not explain", "Bendy Bones")
    rig.data.bones["lower"].bbone_segments = 1
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    modifier.use_deform_preserve_volume = True
    refused("fit_weights_to_pose", "PRESERVES_VOLUME")


def test_modifier_above_that_makes_vertices(bent):
    ob, _ = bent
    ob.modifiers.new("Mirror", "MIRROR")
    ob.modifiers.move(1, 0)
    refused("start_weight_fit", "A modifier before the armature changes the number of vertices")


def test_poses_whose_keys_differ_are_not_mixed(bent):
    ob, rig = bent
    block = scenes.shape_keys(ob, count=1)[0]
    for value, turn in ((0.0, 60), (0.2, -40)):
        block.value = value
        pose(rig, [("lower", "X", turn), ("upper", "Z", 40)])
        copy = start()
        copy.data.vertices[150].co.z += 0.1
    refused("fit_weights_to_pose", "differently in the 2 poses")


def test_other_objects_that_do_not_fit(bent):
    ob, _ = bent
    other = scenes.mesh_object([(0, 0, 0)], name="Dot")
    scenes.link(bpy.data.objects.new("Nothing", None))
    bpy.context.view_layer.objects.active = ob
    source = {"source": "OBJECT"}
    refused("fit_weights_to_pose", "No object with the target positions is chosen", **source)
    refused("fit_weights_to_pose", 'NO_OBJECT "Gone"', target="Gone", **source)
    refused("fit_weights_to_pose", "OTHER_VERTEX_COUNT 1 … 372", target="Dot", **source)
    refused("fit_weights_to_pose", "NOT_A_MESH", target="Nothing", **source)
    refused("fit_weights_to_pose", "No vertex has to move by more", target="Limb", **source)
    other.hide_set(True)
    refused("fit_weights_to_pose", "HIDDEN", target="Dot", **source)


def test_shape_keys_that_are_not_there(bent):
    refused("fit_weights_to_pose", "no active shape key", source="SHAPE_KEY")
    refused("fit_weights_to_pose", 'no shape key "Gone"', source="SHAPE_KEY", shape_key="Gone")


def test_settings_out_of_range(bent):
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    refused("fit_weights_to_pose", "OUT_OF_RANGE at least 0", max_influences=-1)
    refused("fit_weights_to_pose", "OUT_OF_RANGE at least 0", threshold=-0.5)


def test_linked_mesh(bent, tmp_path):
    link_limb(tmp_path / "library.blend")
    refused("start_weight_fit", "LINKED so its weights cannot be changed")


@pytest.mark.parametrize("what", ["nothing", "camera", "bare", "edited", "hidden"])
def test_objects_that_cannot_start(bent, what):
    ob, _ = bent
    if what == "nothing":
        bpy.context.view_layer.objects.active = None
    elif what == "camera":
        scenes.link(bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera")))
    elif what == "bare":
        scenes.grid()
    elif what == "edited":
        bpy.ops.object.mode_set(mode="EDIT")
    else:
        ob.hide_set(True)
    text = {
        "nothing": "NO_ACTIVE_OBJECT",
        "camera": "NOT_A_MESH",
        "bare": "NOT_SKINNED",
        "edited": "MODE Edit Mode",
        "hidden": "HIDDEN",
    }
    refused("start_weight_fit", text[what])
    if what == "edited":
        bpy.ops.object.mode_set(mode="OBJECT")
