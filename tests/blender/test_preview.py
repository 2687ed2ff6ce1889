# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview's operator: what it refuses, what it survives, and that it leaves nothing behind."""

import gc
import weakref
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.features.preview import session
from tests.blender import preview_samples, refusals, scenes

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture(autouse=True)
def switched_off():
    yield
    bpy.ops.skinning.preview(mode="OFF")


@pytest.fixture
def tube():
    return preview_samples.posed_tube()


def shown():
    """The running preview."""
    return session.display.subject


def app_handler_count() -> int:
    handlers = bpy.app.handlers
    return sum(len(value) for name in dir(handlers) if isinstance(value := getattr(handlers, name), list))


# Starting and ending leave no trace


def test_off_leaves_nothing(tube):
    before = app_handler_count()
    bpy.ops.skinning.preview(mode="LBS")
    assert app_handler_count() > before
    assert session.display.shown
    view = weakref.ref(shown())
    assert bpy.ops.skinning.preview(mode="OFF") == {"FINISHED"}
    gc.collect()
    assert shown() is None
    assert view() is None, "arrays and buffers are kept"
    assert app_handler_count() == before
    assert not session.display.shown
    assert not any(map(bpy.app.timers.is_registered, (session._refresh, session.display._timer)))


def test_unregistering_ends_it(tube):
    bpy.ops.skinning.preview(mode="DQS")
    skinning_tools.unregister()
    try:
        assert session.display.subject is None
        assert not session.display.shown
    finally:
        skinning_tools.register()


def test_mode_changes_without_reading_the_mesh_again(tube):
    bpy.ops.skinning.preview(mode="LBS")
    view = shown()
    bpy.ops.skinning.preview(mode="CRS")
    assert shown() is view
    assert view.mode == "CRS"


def test_another_file_ends_it_and_skips_no_other_handler(tube):
    loads = []
    note = bpy.app.handlers.persistent(lambda *_: loads.append(1))
    bpy.ops.skinning.preview(mode="LBS")
    before = app_handler_count()
    bpy.app.handlers.load_pre.append(note)
    try:
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    finally:
        bpy.app.handlers.load_pre.remove(note)
    assert loads == [1]
    assert shown() is None
    assert not session.display.shown
    assert app_handler_count() < before


def test_renamed_object_stays(tube):
    bpy.ops.skinning.preview(mode="LBS")
    tube.name = "Renamed"
    scenes.mesh_object([(0, 0, 0)], name="Arm")
    assert shown().target() == tube
    assert shown().name == "Renamed"


def test_deleted_object_ends_it(tube):
    bpy.ops.skinning.preview(mode="LBS")
    bpy.data.objects.remove(tube)
    assert shown().target() is None
    session.display.draw("POST_VIEW")
    # What cannot be drawn ends after drawing, by a timer.
    assert bpy.app.timers.is_registered(session.display._timer)
    session.display._end()
    assert shown() is None
    assert '"Arm" was deleted' in session.display.failure
    assert not session.display.shown


def test_undo_keeps_it_or_ends_it(tube):
    bpy.context.preferences.edit.use_global_undo = True
    bpy.ops.ed.undo_push(message="Tube")
    tube.location.x += 1
    bpy.ops.ed.undo_push(message="Moved")
    bpy.ops.skinning.preview(mode="CRS")
    bpy.ops.ed.undo()
    assert shown().target() == bpy.data.objects["Arm"]
    assert shown().stale
    session._refresh()
    assert not shown().stale
    bpy.ops.ed.redo()
    assert shown().target() == bpy.data.objects["Arm"]


def test_change_of_weights_is_noticed_and_posing_is_not(tube):
    bpy.ops.skinning.preview(mode="LBS")
    rig = bpy.data.objects["Rig"]
    rig.pose.bones[1].rotation_euler.x += 0.5
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(6)
    assert not shown().stale
    tube.vertex_groups["Bone 4"].add([5], 0.9, "REPLACE")
    tube.data.update()
    bpy.context.view_layer.update()
    assert shown().stale
    before = shown().data.weights[5].copy()
    session._refresh()
    assert not shown().stale
    assert not np.array_equal(before, shown().data.weights[5])


def test_edit_mode_is_waited_for(tube):
    bpy.ops.skinning.preview(mode="LBS")
    data = shown().data
    bpy.context.view_layer.objects.active = tube
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.subdivide()
    session._refresh()
    assert shown().data is data
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.update()
    assert shown().stale
    session._refresh()
    assert len(shown().data.rest) == len(tube.data.vertices) > len(data.rest)


def test_renamed_bone_is_found_again(tube):
    bpy.ops.skinning.preview(mode="LBS")
    rig = bpy.data.objects["Rig"]
    rig.data.bones["Bone 2"].name = "Elbow"
    bpy.context.view_layer.update()
    assert "Elbow" in tube.vertex_groups
    session._refresh()
    matrices = bone_matrices(read_skin(bpy.context, tube), bpy.context.evaluated_depsgraph_get())
    assert len(matrices) == 5
    assert "Elbow" in shown().bone_names


def test_lost_armature_ends_it_with_the_reason(tube):
    bpy.ops.skinning.preview(mode="LBS")
    bpy.data.objects.remove(bpy.data.objects["Rig"])
    session._refresh()
    assert shown() is None
    refusals.assert_says(session.display.failure, "NOT_SKINNED")


def test_armature_stands_for_its_mesh(tube):
    rig = bpy.data.objects["Rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.skinning.preview(mode="LBS")
    assert shown().target() == tube


def delete_all(ob) -> None:
    """In Edit Mode, as an artist does."""
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.delete(type="VERT")
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.update()


def test_empty_mesh_ends_it_with_the_reason(tube):
    bpy.ops.skinning.preview(mode="LBS")
    delete_all(tube)
    assert shown().stale
    session._refresh()
    assert shown() is None
    refusals.assert_says(session.display.failure, 'NO_VERTICES "Arm"')


@pytest.mark.parametrize("stage", ["refresh", "draw"])
def test_a_bug_ends_the_preview_and_nothing_else(tube, monkeypatch, stage):
    bpy.ops.skinning.preview(mode="LBS")
    view = shown()
    view.stale = True

    def fail(*_):
        raise ZeroDivisionError("so it is")

    if stage == "refresh":
        monkeypatch.setattr(view, "_take", fail)
        session._refresh()
        assert view.stale, "nothing was read"
    else:
        monkeypatch.setattr(view, "draw_view", fail)
        session.display.draw("POST_VIEW")
        assert shown() is view, "not while drawing"
        session.display._end()
    assert shown() is None
    failure = session.display.failure
    assert "because of a bug in Skinning Tools (ZeroDivisionError: so it is)" in failure


def test_off_takes_its_timers_away(tube):
    bpy.ops.skinning.preview(mode="LBS")
    session._read_again_soon()
    bpy.app.timers.register(session.display._timer, first_interval=100.0)
    assert bpy.app.timers.is_registered(session._refresh)
    bpy.ops.skinning.preview(mode="OFF")
    assert not any(map(bpy.app.timers.is_registered, (session._refresh, session.display._timer)))


def test_a_bone_that_no_longer_deforms_is_noticed(tube):
    bpy.ops.skinning.preview(mode="LBS")
    bpy.data.objects["Rig"].data.bones["Bone 2"].use_deform = False
    bpy.context.view_layer.update()
    assert shown().stale
    session._refresh()
    assert "Bone 2" not in shown().bone_names


def test_crs_ends_where_the_bake_is_gone(tube):
    bpy.ops.skinning.preview(mode="CRS")
    tube.data.attributes.remove(tube.data.attributes["rotation_center"])
    session._refresh()
    assert shown() is None
    assert "baked centers of rotation are gone" in session.display.failure


def view_context() -> SimpleNamespace:
    """That of a 3D view."""
    space = next(area.spaces[0] for area in bpy.data.screens["Layout"].areas if area.type == "VIEW_3D")
    return SimpleNamespace(
        space_data=space,
        view_layer=bpy.context.view_layer,
        evaluated_depsgraph_get=bpy.context.evaluated_depsgraph_get,
    )


def test_drawn_where_the_mesh_and_overlays_are_shown(tube):
    bpy.ops.skinning.preview(mode="LBS")
    context = view_context()
    assert shown()._shown_in(context)[0] == tube
    context.space_data.overlay.show_overlays = False
    assert shown()._shown_in(context) is None
    context.space_data.overlay.show_overlays = True
    tube.hide_viewport = True
    bpy.context.view_layer.update()
    assert shown()._shown_in(context) is None
    tube.hide_viewport = False
    tube.hide_set(True)
    bpy.context.view_layer.update()
    assert shown()._shown_in(context) is None
    tube.hide_set(False)
    bpy.context.view_layer.update()
    assert shown()._shown_in(context)[0] == tube
    scenes.home().objects.unlink(tube)
    bpy.context.view_layer.update()
    assert shown()._shown_in(context) is None


@pytest.mark.parametrize("mode", ["EDIT", "WEIGHT_PAINT", "VERTEX_PAINT", "SCULPT"])
def test_faint_while_the_mesh_is_worked_on(tube, mode):
    bpy.ops.skinning.preview(mode="LBS")
    settings = bpy.context.window_manager.skinning_preview
    bpy.context.view_layer.objects.active = tube
    assert shown().look(settings).opacity == 1
    bpy.ops.object.mode_set(mode=mode)
    assert shown().look(settings).opacity == 0.35
    settings.opacity = 0.2
    assert shown().look(settings).opacity == pytest.approx(0.2)
    settings.opacity = 1.0
    bpy.ops.object.mode_set(mode="OBJECT")
    assert shown().look(settings).opacity == 1


def test_side_by_side_stays_as_the_user_has_it(tube):
    settings = bpy.context.window_manager.skinning_preview
    settings.side_by_side = True
    bpy.ops.skinning.preview(mode="LBS")
    assert settings.side_by_side
    bpy.ops.skinning.preview(mode="DQS", side_by_side=False)
    assert not settings.side_by_side


# Bad input


def test_centers_must_be_baked(tube):
    tube.data.attributes.remove(tube.data.attributes["rotation_center"])
    with refusals.raises_unmet("NO_CENTERS"):
        bpy.ops.skinning.preview(mode="CRS")
    assert shown() is None
    bpy.ops.skinning.preview(mode="LBS", side_by_side=True)
    assert shown().look(bpy.context.window_manager.skinning_preview).methods == ("LBS", "DQS")


def test_the_preview_stays_if_another_object_cannot_be_previewed(tube):
    bpy.ops.skinning.preview(mode="LBS")
    scenes.grid(name="Plain")
    with refusals.raises_unmet("NOT_SKINNED"):
        bpy.ops.skinning.preview(mode="DQS")
    assert shown().target() == tube
    assert shown().mode == "LBS"


def test_uneven_scale_is_refused_and_ends_it(tube):
    bpy.ops.skinning.preview(mode="LBS")
    tube.scale = (1, 2, 1)
    bpy.context.view_layer.update()
    session._refresh()
    assert shown() is None
    refusals.assert_says(session.display.failure, "UNEVEN_SCALE")
    with refusals.raises_unmet("UNEVEN_SCALE"):
        bpy.ops.skinning.preview(mode="DQS")


def test_nothing_active_is_refused():
    scenes.empty_scene()
    with refusals.raises_unmet("NO_ACTIVE_OBJECT"):
        bpy.ops.skinning.preview(mode="LBS")


def test_armature_of_several_meshes_asks_for_one(tube):
    copy = tube.copy()
    bpy.context.scene.collection.objects.link(copy)
    rig = bpy.data.objects["Rig"]
    for ob in bpy.context.selected_objects:
        ob.select_set(False)
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    with refusals.raises_unmet("SEVERAL_MESHES"):
        bpy.ops.skinning.preview(mode="LBS")
    copy.select_set(True)
    bpy.ops.skinning.preview(mode="LBS")
    assert shown().target() == copy
    # The preview continues with any selection.
    tube.select_set(True)
    bpy.ops.skinning.preview(mode="DQS")
    assert shown().target() == copy
