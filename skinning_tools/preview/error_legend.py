# SPDX-License-Identifier: GPL-3.0-or-later
"""The scale of the error colors, in the corner of each 3D view that shows them on the active or a selected object."""

import bpy

from ..scene.convert.conversion_figures import figures_of
from ..scene.error_display import red_error

_handle = None


def shown_error(context) -> float | None:
    """The error that is red in the view that is drawn, in scene units; None where it shows no such colors."""
    space = context.space_data
    if not space.overlay.show_overlays or (space.shading.type, space.shading.color_type) != ("SOLID", "VERTEX"):
        return None
    found = (red_error(ob) for ob in _candidates(context) if ob is not None and ob.visible_get())
    return next((error for error in found if error is not None), None)


def _candidates(context):
    active = context.view_layer.objects.active
    yield active
    figures = figures_of(active) if active is not None and active.type == "ARMATURE" else None
    if figures is not None:
        yield bpy.data.objects.get(figures["object"])
    yield from context.selected_objects


def _draw() -> None:
    error = shown_error(bpy.context)
    if error is not None:
        # Needs scipy, without which the extension registers all the same.
        from .legend import draw_scale

        draw_scale(bpy.context, "Error", error)


def register() -> None:
    global _handle
    if not bpy.app.background:
        _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_PIXEL")


def unregister() -> None:
    global _handle
    if _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
        _handle = None
