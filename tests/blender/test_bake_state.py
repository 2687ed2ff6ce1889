# SPDX-License-Identifier: GPL-3.0-or-later
"""What a panel shows of a bake of centers of rotation: right, and without reading the mesh at each redraw."""

import bpy
import pytest

import skinning_tools
from skinning_tools.scene.centers import bake_state, rotation_centers
from skinning_tools.scene.centers.bake_state import shown_bake_state
from skinning_tools.scene.centers.rotation_centers import FRESH, STALE, UNKNOWN
from tests.blender import scenes
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def tube():
    """Baked, and not looked at by any panel."""
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    bake_state._known_states.clear()
    yield ob
    if bpy.app.timers.is_registered(bake_state._read_edited):
        bpy.app.timers.unregister(bake_state._read_edited)


@pytest.fixture
def readings(monkeypatch):
    """The objects that were read."""
    found = []
    exact = rotation_centers.bake_state
    monkeypatch.setattr(rotation_centers, "bake_state", lambda ob: found.append(ob) or exact(ob))
    monkeypatch.setattr(bake_state, "_REST_FACTOR", 0.0)
    return found


def edit(ob) -> None:
    ob.data.vertices[0].co.x += 0.1
    ob.data.update()
    bpy.context.view_layer.update()


def test_read_again_only_after_an_edit(tube, readings):
    for frame in (2, 5, 8):
        bpy.context.scene.frame_set(frame)
        assert shown_bake_state(tube) == FRESH
    assert len(readings) == 1
    edit(tube)
    assert shown_bake_state(tube) == STALE
    assert len(readings) == 2


def test_objects_that_share_a_mesh_have_states_of_their_own(tube, readings):
    other, rig = tube.copy(), bpy.data.objects["Rig"].copy()
    rig.data = rig.data.copy()
    scenes.link(rig)
    scenes.link(other).modifiers["Armature"].object = rig
    rig.data.bones["Bone 1"].use_deform = False
    for _ in range(3):
        assert (shown_bake_state(tube), shown_bake_state(other)) == (FRESH, STALE)
    assert readings == [tube, other]
    edit(tube)
    assert (shown_bake_state(tube), shown_bake_state(other)) == (STALE, STALE)


def test_edit_mode_shows_what_was_known(tube):
    bpy.ops.object.mode_set(mode="EDIT")
    assert shown_bake_state(tube) == UNKNOWN
    bpy.ops.object.mode_set(mode="OBJECT")
    assert shown_bake_state(tube) == FRESH
    bpy.ops.object.mode_set(mode="EDIT")
    assert shown_bake_state(tube) == FRESH
    bpy.ops.object.mode_set(mode="OBJECT")


def test_what_cannot_be_read_is_not_called_old(tube):
    rig = bpy.data.objects["Rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    assert shown_bake_state(tube) == UNKNOWN
    bpy.ops.object.mode_set(mode="OBJECT")
    assert shown_bake_state(tube) == FRESH
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    assert shown_bake_state(tube) == FRESH, "the last that was known"
    bpy.ops.object.mode_set(mode="OBJECT")


def test_a_reading_that_failed_is_tried_again(tube, readings, monkeypatch):
    exact = rotation_centers.bake_state
    monkeypatch.setattr(rotation_centers, "bake_state", lambda ob: UNKNOWN)
    assert shown_bake_state(tube) == UNKNOWN
    assert not bpy.app.timers.is_registered(bake_state._read_edited), "no redraw is asked for"
    monkeypatch.setattr(rotation_centers, "bake_state", exact)
    assert shown_bake_state(tube) == FRESH


def test_weight_painting_is_noticed(tube):
    assert shown_bake_state(tube) == FRESH
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    tube.vertex_groups.active = tube.vertex_groups["Bone 1"]
    bpy.ops.object.vertex_group_smooth(factor=1.0, repeat=5)
    bpy.context.view_layer.update()
    bake_state._known_states[tube.session_uid].rest_until = 0.0
    assert shown_bake_state(tube) == STALE


def test_an_edit_is_rested_for(tube, readings, monkeypatch):
    monkeypatch.setattr(bake_state, "_REST_FACTOR", 1e6)
    assert shown_bake_state(tube) == FRESH
    edit(tube)
    assert shown_bake_state(tube) == FRESH
    assert len(readings) == 1
    assert bpy.app.timers.is_registered(bake_state._read_edited)


def test_a_large_mesh_is_read_by_a_timer(tube, readings, monkeypatch):
    monkeypatch.setattr(bake_state, "_LONGEST_WAIT", -1.0)
    monkeypatch.setattr(bake_state, "_can_wait", lambda: True)
    assert shown_bake_state(tube) == UNKNOWN
    assert not readings
    assert bpy.app.timers.is_registered(bake_state._read_edited)
    bake_state._read_edited()
    assert shown_bake_state(tube) == FRESH
    edit(tube)
    assert shown_bake_state(tube) == FRESH
    bake_state._read_edited()
    assert shown_bake_state(tube) == STALE
    assert len(readings) == 2


def test_objects_that_are_gone_are_forgotten(tube):
    shown_bake_state(tube)
    uid = tube.session_uid
    bpy.data.objects.remove(tube)
    bake_state._read_edited()
    assert uid not in bake_state._known_states


def test_unregisters_where_others_have_cleared_the_handlers(tube):
    shown_bake_state(tube)
    bpy.app.handlers.depsgraph_update_post.clear()
    skinning_tools.unregister()
    try:
        assert not hasattr(bpy.types.Scene, "skinning_rotation_centers")
    finally:
        skinning_tools.register()
