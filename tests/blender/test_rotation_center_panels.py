# SPDX-License-Identifier: GPL-3.0-or-later
"""The buttons of the panels of the centers of rotation in each state; a recorder replaces Blender's layout."""

import bpy
import pytest

from skinning_tools.features.centers import bake_state, modifier
from skinning_tools.features.centers.panel import SKINNING_PT_export_centers, SKINNING_PT_rotation_centers
from skinning_tools.features.preview.panel import SKINNING_PT_preview
from tests.blender import refusals, scenes
from tests.blender.panel_recorder import drawn, pressable
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")


NATIVE = pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="the native modifier needs Blender 5.1")


@pytest.fixture
def tube():
    yield rigged_tube()[0]
    bpy.ops.skinning.preview(mode="OFF")


def test_unbaked(tube):
    layout = drawn(SKINNING_PT_rotation_centers)
    assert "Not baked yet" in layout.texts
    assert set(layout.buttons) == {"Bake Centers"}


@NATIVE
def test_the_modifier_and_its_update(tube):
    bpy.ops.skinning.bake_rotation_centers()
    assert "Add Modifier" in pressable(drawn(SKINNING_PT_rotation_centers))
    bpy.ops.skinning.add_center_of_rotation_modifier()
    layout = drawn(SKINNING_PT_rotation_centers)
    assert "Remove Modifier" in layout.buttons
    assert not {"Add Modifier", "Update Modifier"} & set(layout.buttons)
    bpy.data.objects["Rig"].data.bones["Bone 1"].name = "Spine"
    layout = drawn(SKINNING_PT_rotation_centers)
    assert "Modifier older than the rig" in layout.texts
    assert {"Update Modifier", "Remove Modifier"} <= pressable(layout)


@NATIVE
def test_the_modifier_can_be_removed_where_it_cannot_play(tube, monkeypatch):
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.data.objects["Rig"].data.bones["Bone 1"].name = "Spine"
    monkeypatch.setattr(modifier, "reason_not_available", lambda: "Too old")
    layout = drawn(SKINNING_PT_rotation_centers)
    assert "Remove Modifier" in pressable(layout)
    assert "Update Modifier" not in layout.buttons
    assert "Too old" in layout.texts
    monkeypatch.undo()
    bpy.data.objects.remove(bpy.data.objects["Rig"])
    layout = drawn(SKINNING_PT_rotation_centers)
    assert refusals.says(" ".join(layout.texts), "NOT_SKINNED")
    assert "Remove Modifier" in pressable(layout)


@NATIVE
def test_modifiers_that_add_vertices_above_it_are_reported(tube):
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.skinning.add_center_of_rotation_modifier()
    tube.modifiers.new("Halves", "MIRROR")
    assert not any("adds vertices" in text for text in drawn(SKINNING_PT_rotation_centers).texts)
    for place in (1, 0):
        tube.modifiers.move(tube.modifiers.find("Halves"), place)
        layout = drawn(SKINNING_PT_rotation_centers)
        assert any('"Halves" adds vertices above the modifier' in text for text in layout.texts)
        assert "Remove Modifier" in pressable(layout)


@NATIVE
@pytest.mark.parametrize("lose", ["modifier_remove", "modifier_apply"])
def test_a_deleted_modifier_can_be_restored(tube, lose):
    bpy.ops.skinning.bake_rotation_centers()
    assert "Restore Armature Modifier" not in drawn(SKINNING_PT_rotation_centers).buttons
    bpy.ops.skinning.add_center_of_rotation_modifier()
    getattr(bpy.ops.object, lose)(modifier="Center of Rotation")
    layout = drawn(SKINNING_PT_rotation_centers)
    assert any("Armature modifier is still off" in text for text in layout.texts)
    assert "Restore Armature Modifier" in pressable(layout)
    assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    assert (tube.modifiers["Armature"].show_viewport, tube.modifiers["Armature"].show_render) == (True, True)
    assert not any(attribute.name.startswith("skinning_") for attribute in tube.data.attributes)
    assert "Restore Armature Modifier" not in drawn(SKINNING_PT_rotation_centers).buttons


@NATIVE
def test_adding_again_knows_that_the_armature_was_on(tube):
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.ops.object.modifier_remove(modifier="Center of Rotation")
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert (tube.modifiers["Armature"].show_viewport, tube.modifiers["Armature"].show_render) == (True, True)


def test_edit_mode_keeps_what_was_known_of_the_bake(tube):
    bpy.ops.skinning.bake_rotation_centers()
    tube.vertex_groups["Bone 1"].add([300], 0.1, "REPLACE")
    older = "Older than the mesh or its weights: bake again"
    assert older in drawn(SKINNING_PT_rotation_centers).texts
    bpy.ops.object.mode_set(mode="EDIT")
    layout = drawn(SKINNING_PT_rotation_centers)
    assert older in layout.texts
    assert refusals.says(" ".join(layout.texts), "MODE Edit Mode")
    bpy.ops.object.mode_set(mode="OBJECT")


def test_an_unreadable_bake_is_not_reported(tube):
    bpy.ops.skinning.bake_rotation_centers()
    bake_state._known_states.clear()
    rig = bpy.data.objects["Rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.context.view_layer.objects.active = tube
    for panel in (SKINNING_PT_rotation_centers, SKINNING_PT_preview):
        layout = drawn(panel)
        assert not any("older" in text or "no centers" in text for text in layout.texts)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="OBJECT")


def test_point_cache_needs_a_saved_file(tube, tmp_path):
    bpy.ops.skinning.bake_rotation_centers()
    layout = drawn(SKINNING_PT_rotation_centers)
    assert "skinning.crs_to_shape_keys" in pressable(layout)
    assert "skinning.crs_to_pc2" not in pressable(layout)
    assert any("Save the .blend file" in text for text in layout.texts)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert "skinning.crs_to_pc2" in pressable(drawn(SKINNING_PT_rotation_centers))
    scenes.empty_scene()
    rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.scene.skinning_rotation_centers.cache_path = str(tmp_path / "chosen.pc2")
    assert "skinning.crs_to_pc2" in pressable(drawn(SKINNING_PT_rotation_centers))


def test_preview_bakes_what_it_shows(tube):
    bpy.ops.skinning.preview(mode="LBS")
    bpy.context.view_layer.objects.active = bpy.data.objects["Rig"]
    bpy.ops.object.mode_set(mode="POSE")
    layout = drawn(SKINNING_PT_preview)
    assert any('"Arm" has no centers' in text for text in layout.texts)
    pointers = layout.buttons["Bake Centers"].layout.pointers
    assert pointers == {"active_object": tube}
    with bpy.context.temp_override(**pointers):
        assert bpy.ops.skinning.bake_rotation_centers() == {"FINISHED"}
    assert "Bake Centers" not in drawn(SKINNING_PT_preview).buttons


def test_preview_says_why_it_cannot_start(tube):
    assert {"Linear", "Dual Quat.", "Centers"} <= pressable(drawn(SKINNING_PT_preview))
    scenes.grid(name="Plain")
    layout = drawn(SKINNING_PT_preview)
    assert refusals.says(" ".join(layout.texts), "NOT_SKINNED")
    assert not pressable(layout)


def test_export_asks_for_another_preparation(tube):
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.skinning.prepare_centers_for_export()
    assert not any("again" in text for text in drawn(SKINNING_PT_export_centers).texts)
    tube.location.x += 1
    bpy.context.view_layer.update()
    assert any("prepare again" in text for text in drawn(SKINNING_PT_export_centers).texts)
