# SPDX-License-Identifier: GPL-3.0-or-later
"""Dragging a vertex in a pose: by a script, and by the tool that the mouse moves; what it changes, and puts back."""

from collections import Counter
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.core.errors import BadScene
from skinning_tools.features.fit import drag_tool
from skinning_tools.features.fit.drag import Drag, PosedMesh
from skinning_tools.features.fit.picking import Picker
from skinning_tools.features.fit.settings import DragSettings
from skinning_tools.ui import drawn_view
from skinning_tools.ui.view_drawing import View
from tests.blender import scenes
from tests.blender.eigenskin_scenes import pose, posed_limb
from tests.blender.fit_scenes import NAMES, fit, memberships, move_to, raw_weights, refused, start
from tests.blender.refusals import raises_unmet

pytestmark = pytest.mark.usefixtures("extension")

# A vertex that two bones of the limb move.
VERTEX = 150
SIZE = (800, 600)


def drag(**given) -> None:
    assert bpy.ops.skinning.drag_vertex(**given) == {"FINISHED"}
    bpy.context.view_layer.update()


def predictions(ob) -> np.ndarray:
    """(3, 3) where each bone alone would put VERTEX."""
    return PosedMesh.read(bpy.context, ob).region(VERTEX, "ALL").predictions


def test_a_vertex_goes_where_it_is_dragged(bent):
    """By Blender's own evaluation, and no other vertex moves."""
    ob, _ = bent
    before, weights = scenes.world_positions(ob), raw_weights(ob)
    target = np.array([0.2, 0.5, 0.3]) @ predictions(ob)
    drag(vertex=VERTEX, position=target, candidates="ALL", max_influences=3)
    moved = np.linalg.norm(scenes.world_positions(ob) - before, axis=1)
    assert np.flatnonzero(moved > 1e-6).tolist() == [VERTEX]
    assert np.abs(scenes.world_positions(ob)[VERTEX] - target).max() < 1e-4
    assert raw_weights(ob)[VERTEX].sum() == pytest.approx(1.0)
    assert np.array_equal(np.delete(raw_weights(ob), VERTEX, axis=0), np.delete(weights, VERTEX, axis=0))


def test_dragging_gives_the_weights_of_the_fit(bent):
    ob, _ = bent
    before = raw_weights(ob)
    target = predictions(ob).mean(axis=0) + np.array([0.05, -0.02, 0.3])
    drag(vertex=VERTEX, position=target, candidates="ALL", max_influences=2)
    dragged = raw_weights(ob)[VERTEX]
    other, _ = posed_limb([("lower", "X", 70), ("upper", "Z", 40)])
    targets = scenes.world_positions(other)
    targets[VERTEX] = target
    move_to(start(), [VERTEX], targets)
    fit(candidates="ALL", max_influences=2)
    assert np.abs(raw_weights(other)[VERTEX] - dragged).max() < 1e-4
    assert np.abs(dragged - before[VERTEX]).max() > 0.05


def test_own_bones_only_by_default(bent):
    ob, _ = bent
    before = raw_weights(ob)
    drag(vertex=VERTEX, position=predictions(ob)[2])
    assert (raw_weights(ob)[VERTEX] > 0).tolist() <= (before[VERTEX] > 0).tolist()
    assert raw_weights(ob)[VERTEX, 2] == 0
    drag(vertex=VERTEX, position=predictions(ob)[2], candidates="ALL")
    assert raw_weights(ob)[VERTEX, 2] == pytest.approx(1.0, abs=1e-4)


def test_vertices_around_follow(bent):
    ob, _ = bent
    before, rest = scenes.world_positions(ob), np.array([vertex.co for vertex in ob.data.vertices])
    drag(vertex=VERTEX, position=predictions(ob)[0], radius=0.4)
    moved = np.linalg.norm(scenes.world_positions(ob) - before, axis=1)
    followed = np.flatnonzero(moved > 1e-6)
    assert len(followed) > 10
    # The way along the edges is no shorter than the straight one.
    assert np.linalg.norm(rest[followed] - rest[VERTEX], axis=1).max() < 0.4
    assert np.argmax(moved) == VERTEX


@pytest.mark.parametrize(("active", "mode"), [("rig", "POSE"), ("mesh", "WEIGHT_PAINT"), ("rig", "OBJECT")])
def test_works_in_the_modes_of_the_panel(bent, active, mode):
    ob, rig = bent
    ob.name = "Body"
    bpy.context.view_layer.objects.active = rig if active == "rig" else ob
    bpy.ops.object.mode_set(mode=mode)
    target = predictions(ob)[0]
    drag(vertex=VERTEX, position=target)
    assert np.abs(scenes.world_positions(ob)[VERTEX] - target).max() < 1e-4
    assert bpy.context.mode == {"WEIGHT_PAINT": "PAINT_WEIGHT"}.get(mode, mode)


def test_a_scaled_object(bent):
    ob, rig = bent
    for each in (ob, rig):
        each.scale = (3, 3, 3)
    ob.scale = (3, 2, 4)
    bpy.context.view_layer.update()
    target = 0.5 * (predictions(ob)[0] + predictions(ob)[1])
    drag(vertex=VERTEX, position=target)
    assert np.abs(scenes.world_positions(ob)[VERTEX] - target).max() < 1e-3


def test_bad_input_changes_nothing(bent):
    ob, rig = bent
    refused("drag_vertex", "no vertex 372", "it has 372", vertex=372)
    refused("drag_vertex", "Vertex must be at least 0", vertex=-1)
    refused("drag_vertex", "Radius must be at least 0", radius=-1.0, vertex=VERTEX)
    refused("drag_vertex", "vertex 0", "all put it in the same place", "Choose other bones than Own Bones", vertex=0)
    refused("drag_vertex", "NO_BONE_SELECTED", vertex=VERTEX, candidates="SELECTED")
    refused("drag_vertex", "not a number", vertex=VERTEX, position=(float("nan"), 0, 0))
    for name in NAMES:
        ob.vertex_groups[name].lock_weight = True
    refused("drag_vertex", "All vertex groups that may move vertex 150", vertex=VERTEX)
    for name in NAMES:
        ob.vertex_groups[name].lock_weight = False
        ob.vertex_groups[name].remove([VERTEX])
    refused("drag_vertex", "No bone moves vertex 150", "other bones than Own Bones", vertex=VERTEX)
    refused("drag_vertex", "No bone moves vertex 150", "than Adjoining", vertex=VERTEX, candidates="NEAR")
    drag(vertex=VERTEX, candidates="ALL")
    pose(rig)
    refused("drag_vertex", "as at rest", vertex=VERTEX)


# The tool


def view_from(direction) -> View:
    """The limb from a direction, in parallel."""
    back = np.array(direction, dtype=float) / np.linalg.norm(direction)
    right = np.cross((0.1, 0.2, 1.0), back)
    right /= np.linalg.norm(right)
    view, projection = np.eye(4), np.diag([1 / 3, 1 / 3 * SIZE[0] / SIZE[1], -1 / 50, 1.0])
    view[:3, :3] = [right, np.cross(back, right), back]
    view[:3, 3] = -view[:3, :3] @ (0.4, 0, 0)
    return View(view, projection, False)


VIEW = view_from((0.3, -1.0, 0.4))


@pytest.fixture
def tool(bent):
    """A tool on the limb, with odd weights of VERTEX, in groups of other things as well."""
    ob, _ = bent
    ob.vertex_groups.new(name="pin").add([VERTEX, 3], 0.3, "REPLACE")
    for name, weight in (("upper", 0.25), ("lower", 0.0), ("trunk", 0.5)):
        ob.vertex_groups[name].remove([VERTEX])
        ob.vertex_groups[name].add([VERTEX], weight, "REPLACE")
    made = drag_tool.DragTool(bpy.context, ob, DragSettings(candidates="ALL"))
    drag_tool.display.start(made)
    yield made
    drag_tool.display.stop()


def pixel_of(place) -> np.ndarray:
    return VIEW.on_screen(np.array(place)[None], SIZE)[0]


def hold(tool, ob) -> np.ndarray:
    """Press where VERTEX is, or one in front of it, and move; returns where to."""
    pixel = pixel_of(scenes.world_positions(ob)[VERTEX])
    assert tool.press(bpy.context, pixel, VIEW, SIZE)
    there = pixel + np.array([14, -20])
    tool.move(there)
    bpy.context.view_layer.update()
    return there


def test_a_drag_follows_the_pointer_and_is_put_back_exactly(bent, tool):
    ob, _ = bent
    before, groups = memberships(ob), ob.vertex_groups.keys()
    ob.vertex_groups.active_index = 1
    places = scenes.world_positions(ob)
    tool.hover(bpy.context, pixel_of(places[VERTEX]), VIEW, SIZE)
    assert tool.region is not None
    hold(tool, ob)
    vertex = tool._drag.vertex
    assert memberships(ob)[vertex] != before[vertex]
    assert np.abs(scenes.world_positions(ob)[vertex] - tool.region.landing).max() < 1e-5
    tool.put_back()
    assert not tool.dragging
    assert memberships(ob) == before
    assert ob.vertex_groups.keys() == groups
    assert ob.vertex_groups.active_index == 1


def test_odd_weights_come_back_in_their_order(bent, tool):
    """Also where the fit makes a group for a bone that has none."""
    ob, _ = bent
    ob.vertex_groups.remove(ob.vertex_groups["lower"])
    tool.forget()
    before = memberships(ob)
    assert len(before[VERTEX]) == 3
    under_way = Drag(PosedMesh.read(bpy.context, ob), VERTEX, DragSettings(candidates="ALL", radius=0.3))
    under_way.to(under_way.region.predictions[2])
    assert "lower" in ob.vertex_groups
    assert memberships(ob) != before
    under_way.put_back()
    assert memberships(ob) == before
    assert "lower" not in ob.vertex_groups


def test_a_released_drag_keeps_its_weights(bent, tool):
    ob, _ = bent
    before = memberships(ob)
    hold(tool, ob)
    tool.scale_radius(larger=True)
    for _ in range(4):
        tool.scale_radius(larger=True)
    followers = len(tool.followers)
    assert followers > 1
    result = tool.release()
    assert result.count == followers + 1
    assert tool.settings.radius > 0
    changed = [index for index, each in enumerate(memberships(ob)) if each != before[index]]
    assert 1 < len(changed) <= result.count
    pixel = pixel_of(scenes.world_positions(ob)[result.vertex])
    assert tool.press(bpy.context, pixel, VIEW, SIZE)
    assert tool.release() is None, "a click does not change anything"


def test_a_vertex_without_room_ends_nothing(bent, tool):
    """Another one may have room. Where none can have any, there is no tool."""
    ob, _ = bent
    for name in NAMES:
        ob.vertex_groups[name].remove(list(range(60, len(ob.data.vertices))))
    tool.forget()
    tool.settings.candidates = "NEAR"
    pixel = pixel_of(scenes.world_positions(ob)[VERTEX])
    tool.hover(bpy.context, pixel, VIEW, SIZE)
    assert tool.region is None
    with pytest.raises(BadScene, match="No bone moves vertex"):
        tool.press(bpy.context, pixel, VIEW, SIZE)
    assert not tool.dragging
    with raises_unmet("NO_BONE_SELECTED"):
        drag_tool.DragTool(bpy.context, ob, DragSettings(candidates="SELECTED"))


def test_the_wheel_ends_with_the_vertex_alone(bent, tool):
    ob, _ = bent
    hold(tool, ob)
    tool.scale_radius(larger=True)
    for _ in range(9):
        tool.scale_radius(larger=False)
    assert tool._drag.radius == 0
    assert len(tool.followers) == 0


def test_another_pose_is_read_again(bent, tool):
    ob, rig = bent
    hold(tool, ob)
    tool.put_back()
    pose(rig, [("lower", "X", -50), ("upper", "Z", 10)])
    hold(tool, ob)
    assert np.abs(scenes.world_positions(ob)[tool._drag.vertex] - tool.region.landing).max() < 1e-5


@pytest.mark.parametrize("change", ["weights", "shape"])
def test_an_edit_meanwhile_is_read_again(bent, tool, change):
    """The drag starts where the vertex is then, with the weights that it has then."""
    ob, _ = bent
    hold(tool, ob)
    vertex = tool._drag.vertex
    tool.put_back()
    if change == "weights":
        ob.vertex_groups["trunk"].add([vertex], 0.9, "REPLACE")
    else:
        ob.data.vertices[vertex].co.z += 0.02
    edited, places = memberships(ob), scenes.world_positions(ob)
    assert tool.press(bpy.context, pixel_of(places[vertex]), VIEW, SIZE)
    assert tool._drag.vertex == vertex
    assert np.abs(tool._drag.start - places[vertex]).max() < 1e-5
    assert np.abs(tool._posed.weights_of(vertex) - raw_weights(ob)[vertex] / raw_weights(ob)[vertex].sum()).max() < 1e-6
    tool.put_back()
    assert memberships(ob) == edited


@pytest.mark.parametrize(("change", "code"), [("EDIT", "MODE"), ("hidden", "HIDDEN")])
def test_no_press_where_nothing_can_be_dragged_any_more(bent, tool, change, code):
    ob, _ = bent
    pixel = pixel_of(scenes.world_positions(ob)[VERTEX])
    tool.hover(bpy.context, pixel, VIEW, SIZE)
    if change == "hidden":
        ob.hide_set(True)
    else:
        bpy.ops.object.mode_set(mode=change)
    with raises_unmet(code):
        tool.press(bpy.context, pixel, VIEW, SIZE)
    assert not tool.dragging


def test_pointing_reads_the_mesh_once(bent, tool, monkeypatch):
    """Neither the reading itself, nor the view's updates, nor a click count as an edit."""
    ob, _ = bent
    tool.forget()
    reads = counted_reads(monkeypatch)
    pixel = pixel_of(scenes.world_positions(ob)[VERTEX])
    for _ in range(3):
        tool.hover(bpy.context, pixel, VIEW, SIZE)
        ob.update_tag(refresh={"OBJECT"})
        bpy.context.view_layer.update()
    assert tool.press(bpy.context, pixel, VIEW, SIZE)
    assert tool.release() is None, "a click does not change anything"
    bpy.context.view_layer.update()
    tool.hover(bpy.context, pixel, VIEW, SIZE)
    assert tool.region is not None
    assert len(reads) == 1


def test_a_fault_in_drawing_ends_it_once_with_the_reason(bent, tool, monkeypatch):
    ob, _ = bent
    before, calls = memberships(ob), []
    hold(tool, ob)
    space = SimpleNamespace(overlay=SimpleNamespace(show_overlays=True))
    fake = SimpleNamespace(context=SimpleNamespace(space_data=space), app=bpy.app, types=bpy.types)
    monkeypatch.setattr(drawn_view, "bpy", fake)
    monkeypatch.setattr(drag_tool.reachable_view, "draw", lambda *given: calls.append(given) or 1 / 0)
    for _ in range(3):
        drag_tool.display.draw("POST_PIXEL")
    assert len(calls) == 1, "at each redraw"
    assert drag_tool.display.subject is tool, "not while drawing"
    drag_tool.display._end()
    assert drag_tool.display.subject is None
    assert not drag_tool.display.shown
    assert not drag_tool.display.ending
    assert tool.ended
    assert "could not be drawn (ZeroDivisionError" in tool.failure
    assert memberships(ob) == before


def counted_reads(monkeypatch) -> list:
    """Has an element for each reading of a posed mesh from now on."""
    reads, read = [], PosedMesh.read
    monkeypatch.setattr(PosedMesh, "read", lambda *given: reads.append(given) or read(*given))
    return reads


@pytest.mark.parametrize("end", ["undo", "load", "unregister", "gone"])
def test_whatever_happens_leaves_nothing(bent, tool, end):
    ob, _ = bent
    before = memberships(ob)
    handlers = [Counter(each) for each in (bpy.app.handlers.load_pre, bpy.app.handlers.undo_pre)]
    pixel = hold(tool, ob)
    assert memberships(ob) != before
    if end == "undo":
        drag_tool._before_undo()
        assert memberships(ob) == before
        assert drag_tool.display.subject is tool
        assert not tool.dragging
        hold(tool, ob)
        drag_tool.display.stop()
        assert memberships(ob) == before
    elif end == "load":
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    elif end == "unregister":
        skinning_tools.unregister()
        assert memberships(ob) == before
        skinning_tools.register()
    else:
        tool.put_back()
        bpy.data.objects.remove(ob)
        with pytest.raises(BadScene, match="whose vertices were dragged is gone"):
            tool.press(bpy.context, pixel, VIEW, SIZE)
        drag_tool.display.stop()
    assert tool.ended
    assert drag_tool.display.subject is None
    assert not drag_tool.display.shown
    assert [Counter(each) for each in (bpy.app.handlers.load_pre, bpy.app.handlers.undo_pre)] == handlers


# Picking


def test_the_vertex_in_front_is_picked(bent):
    """The nearest corner of the triangle that is in front, by another way to find that."""
    ob, _ = bent
    posed = PosedMesh.read(bpy.context, ob)
    picker = Picker(posed.places, posed.triangles)
    pixels, depths = VIEW.on_screen(posed.places, SIZE), posed.places @ VIEW.view[2, :3]
    corners = pixels[posed.triangles]
    random = np.random.default_rng(0)
    found = 0
    for pixel in random.uniform(pixels.min(axis=0), pixels.max(axis=0), (300, 2)):
        # Shares of the corners in the plane of the screen, all positive inside.
        edges = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=2)
        inside = np.linalg.solve(edges, (pixel - corners[:, 0])[..., None])[..., 0]
        shares = np.column_stack([1 - inside.sum(axis=1), inside])
        hit = np.flatnonzero((shares > 0).all(axis=1))
        if not len(hit) or np.abs(shares[hit]).min() < 1e-3:
            continue
        front = hit[np.argmax((shares[hit] * depths[posed.triangles[hit]]).sum(axis=1))]
        nearest = posed.triangles[front][np.argmin(np.linalg.norm(corners[front] - pixel, axis=1))]
        assert picker.vertex_at(pixel, VIEW, SIZE) == nearest
        found += 1
    assert found > 30
    assert picker.vertex_at((2, 2), VIEW, SIZE) is None


def test_beside_the_outline_the_nearest_vertex_is_picked(bent):
    ob, _ = bent
    posed = PosedMesh.read(bpy.context, ob)
    picker = Picker(posed.places, posed.triangles)
    pixels = VIEW.on_screen(posed.places, SIZE)
    lowest = int(np.argmin(pixels[:, 1]))
    assert picker.vertex_at(pixels[lowest] - (0, 10), VIEW, SIZE) == lowest
    assert picker.vertex_at(pixels[lowest] - (0, 30), VIEW, SIZE) is None
    assert picker.vertex_at(pixels[lowest] - (0, 30), VIEW, SIZE, scale=2.0) == lowest


@pytest.mark.parametrize("perspective", [False, True])
def test_a_view_takes_pixels_to_the_world_and_back(perspective):
    view = VIEW
    if perspective:
        projection = np.array([[1.8, 0, 0, 0], [0, 2.4, 0, 0], [0, 0, -1.02, -0.2], [0, 0, -1.0, 0]])
        away = view.view.copy()
        away[2, 3] -= 6
        view = View(away, projection, True)
    point = np.array([0.3, 0.2, -0.4])
    pixel = view.on_screen(point[None], SIZE)[0]
    begin, sight = view.line_of_sight(pixel, SIZE)
    assert np.linalg.norm(np.cross(point - begin, sight)) < 1e-6
    assert (point - begin) @ sight > 0
    there = view.moved(point, (25, -13), SIZE)
    assert view.on_screen(there[None], SIZE)[0] - pixel == pytest.approx([25, -13])
    assert (there - point) @ view.view[2, :3] == pytest.approx(0, abs=1e-9)
