# SPDX-License-Identifier: GPL-3.0-or-later
"""What a panel shows of a bake of centers of rotation: right, and without reading the mesh at each redraw."""

import logging
import time

import bpy
import pytest

import skinning_tools
from skinning_tools.blender import center_records, vertex_groups
from skinning_tools.features.centers import bake_state, baking
from skinning_tools.features.centers.bake_state import is_being_checked, shown_bake_state
from skinning_tools.features.centers.baking import FRESH, MISSING, STALE, UNKNOWN
from tests.blender import scenes
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def tube():
    """A baked mesh that no panel has drawn yet."""
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
    exact = baking.bake_state
    monkeypatch.setattr(baking, "bake_state", lambda ob: found.append(ob) or exact(ob))
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
    exact = baking.bake_state
    monkeypatch.setattr(baking, "bake_state", lambda ob: UNKNOWN)
    assert shown_bake_state(tube) == UNKNOWN
    assert not bpy.app.timers.is_registered(bake_state._read_edited), "no redraw is asked for"
    monkeypatch.setattr(baking, "bake_state", exact)
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
    finish()
    assert shown_bake_state(tube) == FRESH
    edit(tube)
    assert shown_bake_state(tube) == FRESH
    finish()
    assert shown_bake_state(tube) == STALE
    assert not readings


@pytest.fixture
def in_small_parts(tube, monkeypatch):
    """As for a large mesh in a window: the timer takes one part at a time, of 40 vertices."""
    for name, value in (("_LONGEST_WAIT", -1.0), ("_TICK_SECONDS", 0.0), ("_QUIET_SECONDS", 0.0)):
        monkeypatch.setattr(bake_state, name, value)
    monkeypatch.setattr(bake_state, "_can_wait", lambda: True)
    monkeypatch.setattr(vertex_groups, "_PART", 40)
    return tube


def finish() -> int:
    """Call the timer as Blender does until it ends; returns the number of calls."""
    for count in range(10_000):
        pause = bake_state._read_edited()
        if pause is None:
            return count
        time.sleep(pause)
    raise AssertionError("the timer does not end")


def test_the_window_gets_its_turn_between_the_parts_of_a_large_mesh(in_small_parts):
    tube = in_small_parts
    assert shown_bake_state(tube) == UNKNOWN
    assert is_being_checked(tube)
    assert finish() >= len(tube.data.vertices) / 40
    assert (shown_bake_state(tube), is_being_checked(tube)) == (FRESH, False)
    edit(tube)
    for _ in range(5):
        assert (shown_bake_state(tube), is_being_checked(tube)) == (FRESH, True)
        bake_state._read_edited()
    finish()
    assert (shown_bake_state(tube), is_being_checked(tube)) == (STALE, False)


def _half_edited(ob) -> str:
    edit(ob)
    return STALE


def _edited_and_back(ob) -> str:
    edit(ob)
    ob.data.vertices[0].co.x -= 0.1
    edit(ob)
    ob.data.vertices[0].co.x -= 0.1
    ob.data.update()
    bpy.context.view_layer.update()
    return STALE


def _with_more_vertices(ob) -> str:
    ob.data.vertices.add(3)
    edit(ob)
    return STALE


def _with_fewer_vertices(ob) -> str:
    import bmesh

    mesh = bmesh.new()
    mesh.from_mesh(ob.data)
    mesh.verts.ensure_lookup_table()
    bmesh.ops.delete(mesh, geom=mesh.verts[:500])
    mesh.to_mesh(ob.data)
    mesh.free()
    edit(ob)
    return STALE


def _with_another_mesh(ob) -> str:
    ob.data = ob.data.copy()
    return FRESH


def _in_edit_mode_and_out(ob) -> str:
    bpy.ops.object.mode_set(mode="EDIT")
    bake_state._read_edited()
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.transform.translate(value=(1, 0, 0))
    bpy.ops.object.mode_set(mode="OBJECT")
    return STALE


def _unbaked(ob) -> str:
    center_records.remove_centers(ob.data)
    return MISSING


def _stopped_by_undo(ob) -> str:
    bpy.ops.ed.undo_push(message="start")
    edit(ob)
    bpy.ops.ed.undo_push(message="edit")
    bake_state._read_edited()
    bpy.ops.ed.undo()
    assert bake_state._reading is None
    return FRESH


def _without_bones(ob) -> str:
    ob.modifiers["Armature"].object = None
    return FRESH


CHANGES = (
    _half_edited,
    _edited_and_back,
    _with_more_vertices,
    _with_fewer_vertices,
    _with_another_mesh,
    _in_edit_mode_and_out,
    _unbaked,
    _stopped_by_undo,
    _without_bones,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("parts", [1, 4, 14])
def test_a_change_during_a_reading_starts_the_reading_again(change, parts, in_small_parts):
    bpy.context.view_layer.update()
    shown_bake_state(in_small_parts)
    for _ in range(parts):
        bake_state._read_edited()
    assert bake_state._reading is not None
    expected = change(in_small_parts)
    tube = bpy.data.objects["Arm"]
    finish()
    shown_bake_state(tube)
    finish()
    known = change is not _without_bones
    assert shown_bake_state(tube) == expected if known else shown_bake_state(tube) in (UNKNOWN, FRESH)
    assert bake_state._reading is None
    assert not is_being_checked(tube)


@pytest.mark.parametrize("how", ["removed", "another file", "unregistered"])
def test_a_reading_ends_with_its_mesh(how, in_small_parts):
    shown_bake_state(in_small_parts)
    bake_state._read_edited()
    if how == "removed":
        bpy.data.objects.remove(in_small_parts)
        assert bake_state._read_edited() is None
    elif how == "another file":
        scenes.empty_scene()
    else:
        skinning_tools.unregister()
        skinning_tools.register()
    assert bake_state._reading is None
    assert finish() == 0


class Unforeseen(Exception):
    pass


FAULTS = [MemoryError(), ModuleNotFoundError("No module named 'scipy'"), ReferenceError("removed"), Unforeseen("x")]


def fail(monkeypatch, where, fault, after=0):
    """In the worker that compares, or after a number of parts of the mesh in the timer itself."""

    def parts(ob):
        yield from range(after)
        raise fault

    def compare(skin):
        raise fault

    name, instead = ("read_in_parts", parts) if where == "parts" else ("fingerprint", compare)
    monkeypatch.setattr(baking, name, instead)


def tracebacks(caplog) -> list:
    return [record for record in caplog.records if record.levelno >= logging.ERROR and record.exc_info]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize(("where", "after"), [("parts", 0), ("parts", 3), ("worker", 0)])
def test_an_unforeseen_fault_of_a_reading_does_not_leave_the_panel_waiting(
    where, after, fault, in_small_parts, monkeypatch, caplog
):
    tube = in_small_parts
    assert shown_bake_state(tube) == UNKNOWN
    with monkeypatch.context() as faulty:
        fail(faulty, where, fault, after)
        finish()
        assert (shown_bake_state(tube), is_being_checked(tube)) == (UNKNOWN, False)
        for _ in range(3):
            edit(tube)
            shown_bake_state(tube)
            finish()
        assert not is_being_checked(tube)
    assert bake_state._reading is None
    assert len(tracebacks(caplog)) == 1
    edit(tube)
    shown_bake_state(tube)
    finish()
    assert (shown_bake_state(tube), is_being_checked(tube)) == (STALE, False)


def test_one_mesh_whose_reading_fails_does_not_keep_others_from_being_read(in_small_parts, monkeypatch):
    other = in_small_parts.copy()
    other.data = in_small_parts.data.copy()
    scenes.link(other)
    bpy.context.view_layer.update()
    exact = baking.bake_state_in_parts

    def parts(ob):
        if ob == in_small_parts:
            raise Unforeseen
        return (yield from exact(ob))

    monkeypatch.setattr(baking, "bake_state_in_parts", parts)
    for ob in (in_small_parts, other):
        shown_bake_state(ob)
    finish()
    assert (shown_bake_state(in_small_parts), shown_bake_state(other)) == (UNKNOWN, FRESH)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_unforeseen_fault_does_not_end_a_redraw(fault, tube, monkeypatch, caplog):
    """Of a small mesh, which is read by the redraw itself."""
    monkeypatch.setattr(bake_state, "_REST_FACTOR", 0.0)
    with monkeypatch.context() as faulty:
        fail(faulty, "parts", fault)
        assert [shown_bake_state(tube) for _ in range(3)] == [UNKNOWN] * 3
    assert len(tracebacks(caplog)) == 1
    assert shown_bake_state(tube) == FRESH


def test_the_panel_does_not_wait_for_a_timer_that_is_gone(in_small_parts):
    shown_bake_state(in_small_parts)
    assert is_being_checked(in_small_parts)
    bpy.app.timers.unregister(bake_state._read_edited)
    assert not is_being_checked(in_small_parts)


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
