# SPDX-License-Identifier: GPL-3.0-or-later
"""Posed copies to fit weights to: their placement, allowed edits, and changes of the original meanwhile."""

import zlib

import bpy
import numpy as np
import pytest

from skinning_tools.features.fit import posed_copies
from tests.blender import scenes
from tests.blender.eigenskin_scenes import pose
from tests.blender.fit_scenes import CHOSEN, fit, move_to, refused, start, state, with_other_weights

pytestmark = pytest.mark.usefixtures("extension")


def test_copy_is_where_the_mesh_is_and_starting_and_cancelling_leave_nothing(bent):
    ob, _ = bent
    before, shown = state(), scenes.world_positions(ob)
    copy = start()
    assert copy != ob
    assert np.abs(scenes.world_positions(copy) - shown).max() < 1e-5
    assert ob.hide_get()
    assert not copy.modifiers
    assert copy.data.shape_keys is None
    assert bpy.context.selected_objects == [copy]
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert state() == before


def test_one_copy_may_be_shown_at_a_time_and_kept(bent):
    ob, _ = bent
    first = start()
    second = start()
    assert bpy.ops.skinning.show_fit_copy(name=first.name) == {"FINISHED"}
    assert bpy.context.view_layer.objects.active == first
    assert (first.hide_get(), second.hide_get(), ob.hide_get()) == (False, True, True)
    refused("show_fit_copy", "no posed copy", name="Limb")
    first.data.vertices[150].co.z += 0.05
    fit(keep_copies=True)
    assert posed_copies.copies_of(ob, bpy.context.scene) == [first, second]
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert not ob.hide_get()


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT", "SCULPT"])
def test_fit_from_the_mode_that_the_copy_is_in(bent, mode):
    """The armature returns to Pose Mode unchanged."""
    ob, rig = bent
    targets = with_other_weights(ob, CHOSEN)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    selected = bpy.context.selected_objects
    copy = start()
    move_to(copy, CHOSEN, targets)
    bpy.ops.object.mode_set(mode=mode)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5
    assert bpy.context.view_layer.objects.active == rig
    assert rig.mode == "POSE"
    assert bpy.context.selected_objects == selected


def test_vertices_moved_in_edit_mode_count(bent):
    """In Edit Mode, the mesh data is not up to date."""
    ob, _ = bent
    start()
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.transform.translate(value=(0, 0, 0.05))
    fit()
    assert ob.data.attributes["skinning_fit_error"].data[100].value > 0
    assert "Limb_fit" not in bpy.data.objects


def test_an_unkeyed_pose_counts(bent):
    ob, rig = bent
    bone = rig.pose.bones["lower"]
    bone.keyframe_insert("rotation_quaternion", frame=1)
    pose(rig, [("lower", "Z", -60)])
    shown = scenes.world_positions(ob)
    copy = start()
    assert np.abs(scenes.world_positions(copy) - shown).max() < 1e-5
    assert np.abs(scenes.world_positions(ob) - shown).max() < 1e-5


def test_the_armature_may_move_on_and_the_file_be_saved(bent, tmp_path):
    """As the copy has the pose that it was made in."""
    ob, rig = bent
    targets = with_other_weights(ob, CHOSEN)
    move_to(start(), CHOSEN, targets)
    pose(rig)
    rig.location.x += 3
    ob.location.x += 1
    scenes.reopened(tmp_path / "shot.blend")
    ob, rig = bpy.data.objects["Limb"], bpy.data.objects["Limb rig"]
    assert ob.hide_get()
    fit(candidates="ALL", max_influences=3)
    assert not ob.hide_get()
    assert bpy.context.view_layer.objects.active == ob
    rig.location.x -= 3
    ob.location.x -= 1
    pose(rig, [("lower", "X", 70), ("upper", "Z", 40)])
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5


def test_the_place_of_the_copy_does_not_count(bent):
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    copy = start()
    move_to(copy, CHOSEN, targets)
    copy.location.x += 3
    fit(candidates="ALL", max_influences=3)
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5


def test_a_shared_mesh_is_reported(bent, capfd):
    ob, _ = bent
    other = ob.copy()
    bpy.context.scene.collection.objects.link(other)
    copy = start()
    assert copy.data != ob.data
    assert not other.hide_get()
    copy.data.vertices[150].co.z += 0.05
    fit()
    assert "the mesh has 2 users" in capfd.readouterr().out


def test_a_copy_that_is_edited_beside_another_mesh_is_left_first(bent):
    copy = start()
    assert copy.hide_render
    other = scenes.grid()
    copy.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    assert (copy.mode, other.mode) == ("EDIT", "EDIT")
    assert bpy.ops.skinning.show_fit_copy.poll() is False, "the grid is active, and has no copy"
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb rig"]
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert "Limb_fit" not in bpy.data.objects
    assert bpy.context.view_layer.objects.active.name == "Limb rig"


def test_no_copy_yet(bent):
    refused("fit_weights_to_pose", 'no posed copy of object "Limb" yet')
    refused("show_fit_copy", "no posed copy")
    refused("cancel_weight_fit", "no posed copy")
    refused("show_fit_error", "have not been fitted yet")


def test_copy_with_other_vertices(bent):
    copy = start()
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.subdivide()
    refused("fit_weights_to_pose", 'OTHER_VERTEX_COUNT copy "Limb_fit" has')
    bpy.ops.object.mode_set(mode="OBJECT")
    refused("fit_weights_to_pose", "OTHER_VERTEX_COUNT")
    assert copy.mode == "OBJECT"


def test_a_copy_with_the_same_number_of_other_vertices(bent):
    copy = start()
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    copy.data.vertices[10].select = True
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.delete(type="VERT")
    bpy.ops.object.mode_set(mode="OBJECT")
    copy.data.vertices.add(1)
    copy.data.vertices[50].co.z += 0.1
    refused("fit_weights_to_pose", "were replaced")


def test_mesh_edited_meanwhile(bent):
    ob, _ = bent
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    ob.data.vertices[3].co.x += 0.1
    refused("fit_weights_to_pose", 'was edited after "Limb_fit" was copied')
    ob.data.vertices.add(2)
    refused("fit_weights_to_pose", "OTHER_VERTEX_COUNT")
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}


def test_a_copy_that_an_earlier_version_made_can_be_fitted(bent):
    """It noted a checksum of another kind."""
    ob, _ = bent
    rest = np.array([vertex.co for vertex in ob.data.vertices], np.float32)
    copy = start()
    copy.skinning_fit_copy.fingerprint = f"{zlib.crc32(rest.tobytes()):08x}"
    targets = with_other_weights(ob, CHOSEN)
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5


def test_armature_changed_meanwhile(bent):
    ob, rig = bent
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    rig.data.bones["upper"].name = "humerus"
    refused("fit_weights_to_pose", 'deforming bone "humerus"', "Undo what was renamed")
    rig.data.bones["humerus"].name = "upper"
    rig.data.bones["lower"].use_deform = False
    refused("fit_weights_to_pose", 'has no deforming bone "lower"')
    rig.data.bones["lower"].use_deform = True
    bpy.data.objects.remove(rig)
    refused("fit_weights_to_pose", "NOT_SKINNED")
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert not ob.hide_get()


def test_mesh_deleted_meanwhile(bent):
    ob, _ = bent
    copy = start()
    bpy.data.objects.remove(ob)
    refused("fit_weights_to_pose", 'The mesh that "Limb_fit" was copied from is gone')
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    with pytest.raises(ReferenceError):
        copy.name  # noqa: B018 - that it raises is the point


def test_dyntopo_is_refused(bent):
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    bpy.ops.object.mode_set(mode="SCULPT")
    bpy.ops.sculpt.dynamic_topology_toggle()
    with pytest.raises(RuntimeError, match="Dyntopo is on"):
        bpy.ops.skinning.fit_weights_to_pose()
