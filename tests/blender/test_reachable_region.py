# SPDX-License-Identifier: GPL-3.0-or-later
"""The region that weights can reach: where a vertex's bones take it, and its drawing."""

from collections import Counter
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.blender.vertex_groups import put_weights
from skinning_tools.features.fit import reachable_view as reachable
from skinning_tools.features.fit.reachable_region import read_region
from skinning_tools.features.fit.settings import FitSettings
from skinning_tools.ui import drawn_view
from tests.blender import scenes
from tests.blender.eigenskin_scenes import pose
from tests.blender.fit_scenes import (
    NAMES,
    local,
    positions,
    raw_weights,
    start,
)

pytestmark = pytest.mark.usefixtures("extension")


def select_only(copy, index: int) -> None:
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    copy.data.vertices[index].select = True


def region(**given):
    return read_region(bpy.context, FitSettings(**given))


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT"])
def test_region_of_a_copys_vertex(bent, mode):
    """Where each bone alone puts it, in the pose that the copy was made in."""
    ob, rig = bent
    alone = []
    before = raw_weights(ob)
    for bone in range(3):
        put_weights(ob, NAMES, np.full((len(before), 1), bone), np.ones((len(before), 1)))
        bpy.context.view_layer.update()
        alone.append(scenes.world_positions(ob)[150])
    put_weights(ob, NAMES, np.tile(np.arange(3), (len(before), 1)), before)
    bpy.context.view_layer.update()
    copy = start()
    pose(rig)
    copy.location.x += 0.5
    bpy.context.view_layer.update()
    select_only(copy, 150)
    bpy.ops.object.mode_set(mode=mode)
    found = region(candidates="ALL")
    assert found.bones == tuple(NAMES)
    assert np.abs(found.predictions - alone - (0.5, 0, 0)).max() < 3e-6
    assert np.abs(found.place - found.landing).max() < 3e-6
    assert len(found.edges) == 3
    assert region().bones == tuple(np.array(NAMES)[before[150] > 0])
    if mode == "EDIT":
        # Twice as far as the second bone: only the end of the segment toward it can be reached.
        beyond = local(copy, (2 * found.predictions[1] - found.predictions[2])[None])[0]
        bpy.ops.transform.translate(value=np.array(copy.matrix_world.to_3x3()) @ (beyond - positions(copy.data)[150]))
        far = region(candidates="ALL")
        assert np.abs(far.predictions - found.predictions).max() < 1e-6
        assert np.linalg.norm(far.place - found.place) > 0.05
        spread = np.linalg.norm(far.predictions - far.place, axis=1).min()
        assert np.linalg.norm(far.landing - far.place) <= spread + 1e-6


def test_region_of_the_mesh_follows_the_pose(bent):
    ob, rig = bent
    select_only(ob, 150)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    first = region(candidates="ALL")
    assert first.landing is None
    assert np.abs(first.place - scenes.world_positions(ob)[150]).max() < 3e-6
    pose(rig, [("lower", "X", -70)])
    assert np.abs(region(candidates="ALL").predictions - first.predictions).max() > 0.1
    scenes.select_bones(rig, "lower")
    assert region(candidates="SELECTED").bones == ("lower",)
    ob.vertex_groups["lower"].lock_weight = True
    assert region(candidates="SELECTED") is None


def test_locked_groups_narrow_the_region(bent):
    ob, _ = bent
    chosen = int(np.argmax((raw_weights(ob)[:, 1:] > 0.3).all(axis=1)))
    select_only(ob, chosen)
    whole = region(candidates="ALL")
    ob.vertex_groups["lower"].lock_weight = True
    rest = region(candidates="ALL")
    assert rest.bones == ("trunk", "upper")
    length = [np.linalg.norm(each.predictions[1] - each.predictions[0]) for each in (whole, rest)]
    assert length[1] == pytest.approx(length[0] * (1 - raw_weights(ob)[chosen, 2]), rel=1e-4)


def test_no_region_without_a_vertex(bent):
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    assert region() is None
    bpy.ops.mesh.select_all(action="DESELECT")
    assert region() is None
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = None
    assert region() is None
    scenes.grid()
    select_only(bpy.context.view_layer.objects.active, 0)
    assert region() is None


def test_drawing_comes_and_goes_without_a_trace(bent):
    handlers = Counter(bpy.app.handlers.load_pre)
    for end in ("off", "load", "unregister", "twice"):
        assert bpy.ops.skinning.show_reachable() == {"FINISHED"}
        assert reachable.display.shown
        if end == "off":
            bpy.ops.skinning.show_reachable(show=False)
        elif end == "load":
            bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
        elif end == "unregister":
            skinning_tools.unregister()
            skinning_tools.register()
        else:
            bpy.ops.skinning.show_reachable()
            bpy.ops.skinning.show_reachable(show=False)
        assert not reachable.display.shown
        assert Counter(bpy.app.handlers.load_pre) == handlers


def test_loading_a_file_ends_drawing_and_skips_no_other_handler(bent):
    loads = []
    note = bpy.app.handlers.persistent(lambda *_: loads.append(1))
    assert bpy.ops.skinning.show_reachable() == {"FINISHED"}
    bpy.app.handlers.load_pre.append(note)
    try:
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    finally:
        bpy.app.handlers.load_pre.remove(note)
    assert not reachable.display.shown
    assert loads == [1]


def test_a_fault_in_drawing_ends_it_with_the_reason(bent, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("so it is")

    monkeypatch.setattr(reachable, "read_region", fail)
    overlay = SimpleNamespace(show_overlays=True)
    context = SimpleNamespace(space_data=SimpleNamespace(overlay=overlay), scene=bpy.context.scene)
    monkeypatch.setattr(drawn_view, "bpy", SimpleNamespace(context=context, app=bpy.app, types=bpy.types))
    reachable.display.start()
    reachable.display.draw("POST_PIXEL")
    assert reachable.display.ending
    reachable.display._end()
    assert not reachable.display.shown
    assert "so it is" in reachable.display.failure
    reachable.display.stop()


def test_labels_do_not_cover_each_other():
    points = np.array([[100.0, 100.0], [101.0, 101.0], [102.0, 99.0], [400.0, 100.0], [np.nan, np.nan]])
    places = reachable.label_places(points, 1.0)
    heights = np.sort(places[:3, 1])
    assert (np.diff(heights) >= reachable.LINE_HEIGHT - 1e-9).all()
    assert places[3, 1] == 96
