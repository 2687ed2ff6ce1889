# SPDX-License-Identifier: GPL-3.0-or-later
"""The running preview, if any, and its handlers.

While none runs, only the handler that ends it with the file is registered: a handler that removes itself from
Blender's list makes Blender skip the next one, which may be another add-on's.
"""

from typing import TYPE_CHECKING, Any

import bpy

from ...blender.app_handlers import add_handlers, remove_handlers
from ...blender.areas import redraw_views
from ...ui.drawn_view import DrawnView

if TYPE_CHECKING:
    from .skin_view import SkinView

# While the mesh is read, which may evaluate it in a temporary scene: that is no edit.
_is_reading = False


def start(context: bpy.types.Context, mesh_object: bpy.types.Object | None, mode: str) -> None:
    """Show ``mode`` of the object instead of the previous preview, which stays if this raises SkinningError."""
    running = display.subject
    if running is not None and mesh_object is not None and running.target() == mesh_object and not running.stale:
        running.set_mode(mode)
        display.start(running)
    else:
        # Its module needs scipy.
        from .skin_view import SkinView

        display.start(SkinView(context, mesh_object, mode))
        add_handlers(_while_running)


def _end(view: "SkinView") -> None:
    remove_handlers(_while_running)
    if bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.unregister(_refresh)
    from . import shaders

    shaders.forget()


def _after_update(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """After an edit: changes of weights or shape require reading the mesh again, posing and playback do not."""
    if _is_reading:
        return
    edited = depsgraph.id_type_updated("MESH") or depsgraph.id_type_updated("ARMATURE")
    running = display.subject
    if running is not None and (running.stale or (edited and running.is_changed_by(depsgraph))):
        _read_again_soon()


def _after_undo(*_: Any) -> None:
    _read_again_soon()


_while_running = {"depsgraph_update_post": _after_update, "undo_post": _after_undo, "redo_post": _after_undo}


def _read_again_soon() -> None:
    """Read the mesh again after a delay, since brush strokes report changes many times a second."""
    running = display.subject
    if running is None:
        return
    running.stale = True
    if not bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.register(_refresh, first_interval=running.seconds_to_next_reading)


def _refresh() -> None:
    """Timer."""
    global _is_reading
    if display.subject is None:
        return
    _is_reading = True
    try:
        display.subject.refresh(bpy.context)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        display.stop(display.told(error))
    finally:
        _is_reading = False
    redraw_views()


def _draw_view(context: bpy.types.Context) -> None:
    _draw("draw_view", context)


def _draw_pixels(context: bpy.types.Context) -> None:
    _draw("draw_pixels", context)


def _draw(stage: str, context: bpy.types.Context) -> None:
    running = display.subject
    if running is None:
        return
    getattr(running, stage)(context)
    if running.stale and not running.is_edited():
        _read_again_soon()


display = DrawnView(
    "The preview has ended because of a bug in Skinning Tools", _end, POST_VIEW=_draw_view, POST_PIXEL=_draw_pixels
)

handlers, unregister = display.handlers, display.stop
