# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the pictures of docs/first_conversion.md. Started by run.py --docs-pictures."""

import bpy
from driver import (
    after,
    can_take_pictures,
    enable,
    idle,
    in_window,
    open_tab,
    picture,
    press_button,
    settled,
    switch_off,
    views,
)
from mathutils import Vector

from skinning_tools.panels.convert_animation import SKINNING_PT_conversion_result, SKINNING_PT_convert_animation
from skinning_tools.panels.results import SKINNING_PT_conversions
from skinning_tools.scene import background

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
    area = next(area for area in bpy.context.window_manager.windows[0].screen.areas if area.type == "PROPERTIES")
    area.spaces.active.context = tab


def tests():
    assert can_take_pictures(), "Blender's process cannot take pictures: ImageMagick's import or a display is missing"
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result, SKINNING_PT_conversions)
    yield after(0.5)
    with in_window():
        cloth = cloth_on_cube()
    show_properties("PHYSICS")
    space = views()[0].spaces.active
    space.show_region_toolbar = False
    space.show_region_ui = True
    yield after(0.5)
    yield from open_tab("Skinning")
    yield from play(SHOWN_FRAME)
    with in_window():
        bpy.ops.view3d.view_selected()
    # Beside the sidebar.
    view = space.region_3d
    view.view_location += view.view_rotation @ Vector((0.9, -0.1, 0))
    view.view_distance *= 1.2
    yield from settled()
    picture("cloth")

    yield from press_button("skinning.convert_animation")
    yield lambda: background.running_job() is not None and background.running_job().fraction > 0.5
    yield after(0.2)
    picture("progress", views()[0])
    yield idle
    with in_window():
        bpy.context.scene.frame_set(SHOWN_FRAME)
    yield from press_button("compare_result(show='RESULT')")
    yield from settled()
    picture("result", views()[0])

    yield from press_button("skinning.show_error")
    yield from settled()
    picture("error", views()[0])
    assert cloth.name in bpy.data.objects
    switch_off()
