# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the pictures of docs/first_conversion.md. Started by run.py --docs-pictures."""

from types import SimpleNamespace

import bpy
from driver import (
    after,
    can_take_pictures,
    enable,
    idle,
    in_window,
    open_tab,
    picture,
    press,
    press_button,
    settled,
    switch_off,
    views,
)
from mathutils import Vector

from skinning_tools.blender import background
from skinning_tools.features.convert.panel import (
    SKINNING_PT_conversion_result,
    SKINNING_PT_conversions,
    SKINNING_PT_convert_animation,
)

FRAMES = 60
SHOWN_FRAME = 30


def cloth_on_cube() -> bpy.types.Object:
    """What the page tells its reader to do, in the scene that Blender opens with."""
    scene = bpy.context.scene
    bpy.context.view_layer.objects.active = bpy.data.objects["Cube"]
    bpy.ops.object.modifier_add(type="COLLISION")
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=40, y_subdivisions=40, size=4, location=(0, 0, 2))
    bpy.ops.object.shade_smooth()
    bpy.ops.object.modifier_add(type="CLOTH")
    scene.frame_end = FRAMES
    return bpy.context.object


def play(last: int):
    """Generator: the scene's frames up to ``last``, which simulates them."""
    for frame in range(1, last + 1):
        with in_window():
            bpy.context.scene.frame_set(frame)
        yield after(0)


def show_properties(tab: str) -> None:
    screen = bpy.context.window_manager.windows[0].screen
    next(area for area in screen.areas if area.type == "PROPERTIES").spaces.active.context = tab


def part(width: int, height: int, right: int = 0, top: int = 0) -> SimpleNamespace:
    """A part of the window as large as the pages show without scaling it down much, from its upper right corner."""
    window = bpy.context.window_manager.windows[0]
    return SimpleNamespace(
        x=window.width - right - width, y=window.height - top - height, width=width, height=height
    )  # fmt: skip


def of_view(width: int, height: int) -> SimpleNamespace:
    """A part from the upper right corner of the 3D Viewport."""
    area, window = views()[0], bpy.context.window_manager.windows[0]
    return part(width, height, window.width - area.x - area.width, window.height - area.y - area.height)


def look(space, sideways: float, distance: float) -> None:
    """At the cloth, with it so far to the left of the viewport's middle."""
    with in_window():
        bpy.ops.view3d.view_selected()
    view = space.region_3d
    view.view_location += view.view_rotation @ Vector((sideways, -0.1, 0))
    view.view_distance *= distance


def tests():
    assert can_take_pictures(), "Blender's process cannot take pictures: ImageMagick's import or a display is missing"
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result, SKINNING_PT_conversions)
    yield after(0.5)
    # The splash screen, which was shown before the extension was enabled.
    press("ESC")
    with in_window():
        cloth = cloth_on_cube()
    show_properties("PHYSICS")
    space = views()[0].spaces.active
    space.show_region_toolbar = False
    yield from play(SHOWN_FRAME)
    look(space, -1.8, 1.8)
    yield from settled()
    picture("scene", part(840, 900))

    space.show_region_ui = True
    look(space, 0.25, 1.9)
    yield after(0.5)
    yield from open_tab("Skinning")
    yield from settled()
    picture("panel", of_view(800, 640))

    yield from press_button("skinning.convert_animation")
    yield lambda: background.running_job() is not None and background.running_job().fraction > 0.5
    yield after(0.2)
    picture("progress", of_view(800, 640))
    yield idle
    with in_window():
        bpy.context.scene.frame_set(SHOWN_FRAME)
    yield from press_button("compare_result(show='RESULT')", across=0.6)
    yield from settled()
    picture("result", of_view(800, 786))

    yield from press_button("skinning.show_error")
    yield after(0.5)
    space.show_region_ui = False
    look(space, 0.9, 1.6)
    yield from settled()
    picture("error", SimpleNamespace(x=views()[0].x, y=views()[0].y, width=800, height=640))
    assert cloth.name in bpy.data.objects
    switch_off()
