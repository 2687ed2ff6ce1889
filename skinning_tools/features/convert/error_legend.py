# SPDX-License-Identifier: GPL-3.0-or-later
"""The legend of the error colors in each 3D view that shows them on the active or a selected object, and the ring
around the vertex that Go to Worst Frame marks."""

from collections.abc import Iterator

import bpy

from ...blender.conversions import result_of
from ...blender.error_display import Scale, shown_scale
from ...blender.translation import translated
from ...ui.view_drawing import draw_ring, draw_scale
from .worst_mark import marked, place_of

_handle = None


def scale_in_view(context: bpy.types.Context) -> Scale | None:
    """The scale of the error colors in the view being drawn; None if it shows none."""
    space = context.space_data
    if not space.overlay.show_overlays or (space.shading.type, space.shading.color_type) != ("SOLID", "VERTEX"):
        return None
    found = (shown_scale(ob) for ob in _candidates(context) if ob is not None and ob.visible_get())
    return next((scale for scale in found if scale is not None), None)


def _candidates(context: bpy.types.Context) -> Iterator[bpy.types.Object]:
    active = context.view_layer.objects.active
    yield active
    result = result_of(active) if active is not None and active.type == "ARMATURE" else None
    if result is not None:
        yield result.mesh
    yield from context.selected_objects


def _draw() -> None:
    context = bpy.context
    found = marked(context) if context.space_data.overlay.show_overlays else None
    if found is not None:
        ob, mark = found
        text = translated(f"Worst vertex of {ob.name}: {mark.vertex}")
        draw_ring(context, place_of(context, ob, mark), text)
    scale = scale_in_view(context)
    if scale is not None:
        draw_scale(context, "Error", *scale.texts(context))


def register() -> None:
    global _handle
    if not bpy.app.background:
        _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_PIXEL")


def unregister() -> None:
    global _handle
    if _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
        _handle = None
