# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: vertices of a bent elbow are dragged with the mouse, put back, undone, and dragged while
other vertices follow. Started by run.py."""

from typing import NamedTuple

import bpy
import numpy as np
from driver import (
    after,
    begin_with,
    click,
    enable,
    event,
    in_window,
    look,
    looks_unlike,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    region,
    switch_off,
    switch_on,
    views,
)
from fit_weights_window import ELBOW, bent_human, body, look_at, rig

from skinning_tools.features.fit import drag_tool
from skinning_tools.features.fit.panel import SKINNING_PT_fit_weights
from skinning_tools.ui.view_drawing import View
from tests.blender import scenes
from tests.blender.fit_scenes import memberships


def bent_human_with_adjoining_bones() -> None:
    bent_human()
    bpy.context.scene.skinning_weight_fit.candidates = "NEAR"


def on_screen(point) -> tuple[int, int]:
    """Where the window shows a place of the world."""
    main = region("WINDOW")
    view = View.of(views()[0].spaces.active.region_3d)
    x, y = view.on_screen(np.array(point, dtype=float)[None], (main.width, main.height))[0]
    return int(main.x + x), int(main.y + y)


def move(place) -> None:
    event("MOUSEMOVE", "NOTHING", *place)


def drag_to(start, end, steps=6):
    """Generator: press at one place of the window, and move to another."""
    move(start)
    yield after(0.3)
    event("LEFTMOUSE", "PRESS", *start)
    for step in range(1, steps + 1):
        yield after(0.1)
        move([int(a + (b - a) * step / steps) for a, b in zip(start, end, strict=True)])
    yield after(0.3)


class Scene(NamedTuple):
    """tool: running. start, end: of each drag, in the window. before, weights, size: of the mesh as it was posed."""

    tool: drag_tool.DragTool
    start: tuple[int, int]
    end: tuple[int, int]
    before: np.ndarray
    weights: list
    size: float


def tests():
    enable(SKINNING_PT_fit_weights)
    yield from begin_with(bent_human_with_adjoining_bones)
    yield from open_tab("Skinning")
    elbow = rig().matrix_world @ rig().pose.bones[ELBOW].head
    size = max(body().dimensions)
    look_at(elbow, 0.35 * size)
    yield after(0.5)
    before, weights = scenes.world_positions(body()), memberships(body())
    picture("drag_1_posed")
    tool = yield from pointed_at(elbow)
    assert memberships(body()) == weights
    start, end = on_screen(tool.region.place), on_screen(tool.region.predictions.mean(axis=0))
    scene = Scene(tool, start, end, before, weights, size)
    yield from cancelled(scene)
    yield from undone(scene)
    yield from with_neighbors(scene)
    yield from ended(scene)
    yield from interrupted(elbow, size, weights)


def pointed_at(elbow):
    """Generator: the tool begun, and the pointer over a vertex; returns the tool."""
    unlike = look(views()[0], "WINDOW")
    yield from press_button("skinning.drag_vertex")
    yield lambda: drag_tool.display.subject is not None
    tool = drag_tool.display.subject
    # A vertex in the middle of the view, nearest to the eye.
    middle = on_screen(elbow)
    move(middle)
    yield lambda: tool.region is not None
    yield after(0.3)
    picture("drag_2_pointed_at")
    yield looks_unlike(unlike, views()[0], "WINDOW")
    passes("the region of the vertex under the pointer is drawn")
    return tool


def cancelled(scene):
    """Generator: a drag, and Esc."""
    tool, start, end, before, weights, size = scene
    yield from drag_to(start, end)
    assert tool.dragging
    vertex = tool._drag.vertex
    landing = tool.region.landing
    shown = scenes.world_positions(body())
    assert np.linalg.norm(shown[vertex] - before[vertex]) > 0.002 * size
    assert np.linalg.norm(shown[vertex] - landing) < 1e-5 * size
    # In the middle of the region, so that the vertex is where the pointer is.
    assert np.abs(np.subtract(on_screen(landing), end)).max() <= 3
    picture("drag_3_dragging")
    passes(f"vertex {vertex} follows the mouse")

    press("ESC", *end)
    yield lambda: not tool.dragging
    event("LEFTMOUSE", "RELEASE", *end)
    yield after(0.3)
    assert memberships(body()) == weights
    assert drag_tool.display.subject is tool
    passes("Esc puts the weights back exactly, and the tool goes on")


def undone(scene):
    """Generator: a drag to its end, undone, redone and undone."""
    tool, start, end, _, weights, size = scene
    yield from drag_to(start, end)
    vertex, landing = tool._drag.vertex, tool.region.landing
    event("LEFTMOUSE", "RELEASE", *end)
    yield lambda: not tool.dragging
    yield after(0.3)
    dragged = memberships(body())
    assert [index for index, each in enumerate(dragged) if each != weights[index]] == [vertex]
    assert np.linalg.norm(scenes.world_positions(body())[vertex] - landing) < 1e-5 * size
    press("Z", *end, ctrl=True)
    yield lambda: memberships(body()) == weights
    yield after(0.3)
    assert drag_tool.display.subject is tool
    move(start)
    yield lambda: tool.region is not None
    press("Z", *start, ctrl=True, shift=True)
    yield lambda: memberships(body()) == dragged
    press("Z", *start, ctrl=True)
    yield lambda: memberships(body()) == weights
    passes("a drag is one undo step, and undo and redo do not end the tool")


def with_neighbors(scene):
    """Generator: a drag whose radius the wheel enlarges, confirmed."""
    tool, start, end, before, _, size = scene
    yield after(0.3)
    yield from drag_to(start, end)
    for _ in range(9):
        press("WHEELDOWNMOUSE", *end)
        yield after(0.05)
    yield after(0.3)
    assert len(tool._drag.vertices) > 5
    picture("drag_4_radius")
    shown = scenes.world_positions(body())
    moved = np.flatnonzero(np.linalg.norm(shown - before, axis=1) > 1e-6 * size)
    assert set(moved) <= set(tool._drag.vertices)
    assert len(moved) > 5
    press("RET", *end)
    yield lambda: not tool.dragging
    event("LEFTMOUSE", "RELEASE", *end)
    yield after(0.3)
    picture("drag_5_confirmed")
    radius = bpy.context.scene.skinning_weight_fit.radius
    assert radius > 0
    passes(f"the wheel lets {len(moved)} vertices follow, and Enter confirms")


def ended(scene):
    """Generator: keys of other tools, and the tool's end."""
    _, _, end, _, weights, _ = scene
    # What only moves the view passes, what edits does not.
    press("NUMPAD_1", *end)
    yield after(0.3)
    press("X", *end)
    yield after(0.3)
    assert len(bpy.data.objects) == 2
    press("RIGHTMOUSE", *end)
    yield lambda: drag_tool.display.subject is None
    assert not drag_tool.display.shown
    assert rig().mode == "POSE"
    press("Z", *end, ctrl=True)
    yield lambda: memberships(body()) == weights
    passes("right-click ends the tool without a step of its own")


def interrupted(elbow, size, weights):
    """Generator: the tool ends in the middle of a drag, in Weight Paint Mode."""
    with in_window():
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.context.view_layer.objects.active = body()
        bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
        bpy.ops.ed.undo_push(message="Painting")
    look_at(elbow, 0.35 * size)
    yield after(0.5)
    start = on_screen(elbow)
    end = start[0] + 30, start[1] - 30
    for ending in ("undone", "disabled", "loaded"):
        with in_window():
            bpy.ops.skinning.drag_vertex("INVOKE_DEFAULT")
        yield from drag_to(start, end)
        assert drag_tool.display.subject.dragging
        assert memberships(body()) != weights
        if ending == "undone":
            picture("drag_6_painting")
            with in_window():
                bpy.ops.ed.undo_push(message="By a script")
                bpy.ops.ed.undo()
            yield lambda: not drag_tool.display.subject.dragging
            assert memberships(body()) == weights
            click(end)
            press("ESC", *end)
        elif ending == "disabled":
            switch_off()
            assert memberships(body()) == weights
            event("LEFTMOUSE", "RELEASE", *end)
            switch_on()
        else:
            bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
        yield lambda: drag_tool.display.subject is None
        yield after(0.5)
        assert not drag_tool.display.shown
    passes("an undo by a script, disabling and another file end a drag, and leave nothing")
