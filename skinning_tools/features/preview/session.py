# SPDX-License-Identifier: GPL-3.0-or-later
"""The running preview, if any, and its handlers.

While none runs, only the handler that ends it with the file is registered: a handler that removes itself from
Blender's list makes Blender skip the next one, which may be another add-on's.
"""

import logging
from typing import TYPE_CHECKING, Any

import bpy

from ...blender.app_handlers import add_handlers, remove_handlers
from ...blender.areas import redraw_views
from ...core.errors import SkinningError

if TYPE_CHECKING:
    from .skin_view import SkinView

logger = logging.getLogger(__name__)

_FAULT = "The preview has ended because of a bug in Skinning Tools"

# Of type skin_view.SkinView, whose module needs scipy: it is imported when a preview starts.
_running = None
_draw_handlers: list = []
# While the mesh is read, which may evaluate it in a temporary scene: that is no edit.
_is_reading = False
_failure = ""


def running() -> "SkinView | None":
    """The running skin_view.SkinView, or None."""
    return _running


def failure() -> str:
    """Why the last preview was ended by an error, "" if it was not."""
    return _failure


def start(context: bpy.types.Context, mesh_object: bpy.types.Object | None, mode: str) -> None:
    """Show ``mode`` of the object instead of the previous preview, which stays if this raises SkinningError."""
    global _running, _failure
    if _running is not None and mesh_object is not None and _running.target() == mesh_object and not _running.stale:
        _running.set_mode(mode)
    else:
        from .skin_view import SkinView

        view = SkinView(context, mesh_object, mode)
        stop()
        _running = view
        _register()
    _failure = ""
    redraw_views()


def stop(reason: str = "") -> None:
    """End the preview, if one runs, and unregister its handlers."""
    global _running, _failure
    _failure = reason
    if _running is None:
        return
    _running = None
    _unregister()
    from . import shaders

    shaders.forget()
    redraw_views()


def _register() -> None:
    for draw, stage in ((_draw_view, "POST_VIEW"), (_draw_pixels, "POST_PIXEL")):
        _draw_handlers.append(bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", stage))
    add_handlers(_while_running)


def _unregister() -> None:
    while _draw_handlers:
        bpy.types.SpaceView3D.draw_handler_remove(_draw_handlers.pop(), "WINDOW")
    remove_handlers(_while_running)
    for timer in (_refresh, _end):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)


def _after_update(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """After an edit: changes of weights or shape require reading the mesh again, posing and playback do not."""
    if _is_reading:
        return
    edited = depsgraph.id_type_updated("MESH") or depsgraph.id_type_updated("ARMATURE")
    if _running is not None and (_running.stale or (edited and _running.is_changed_by(depsgraph))):
        _read_again_soon()


def _after_undo(*_: Any) -> None:
    _read_again_soon()


_while_running = {"depsgraph_update_post": _after_update, "undo_post": _after_undo, "redo_post": _after_undo}


@bpy.app.handlers.persistent
def _before_load(*_: Any) -> None:
    stop()


def _read_again_soon() -> None:
    """Read the mesh again after a delay, since brush strokes report changes many times a second."""
    if _running is None:
        return
    _running.stale = True
    if not bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.register(_refresh, first_interval=_running.seconds_to_next_reading)


def _refresh() -> None:
    """Timer."""
    global _is_reading
    if _running is None:
        return
    _is_reading = True
    try:
        _running.refresh(bpy.context)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        stop(_told(error))
    finally:
        _is_reading = False
    redraw_views()


def _draw_view() -> None:
    _draw("draw_view")


def _draw_pixels() -> None:
    _draw("draw_pixels")


def _draw(stage: str) -> None:
    """Draw; after an error, the preview ends once Blender has finished drawing."""
    global _failure
    if _running is None or bpy.app.timers.is_registered(_end):
        return
    try:
        getattr(_running, stage)(bpy.context)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        _failure = _told(error)
        bpy.app.timers.register(_end, first_interval=0.0)
        return
    if _running.stale and not _running.is_edited():
        _read_again_soon()


def _told(error: Exception) -> str:
    """The message for the user; the traceback of a bug goes to the terminal."""
    if isinstance(error, SkinningError):
        return str(error)
    logger.error(_FAULT, exc_info=error)
    return f"{_FAULT} ({type(error).__name__}: {error}). The system console has the details to report"


def _end() -> None:
    """Timer."""
    stop(_failure)


handlers = {"load_pre": _before_load}


def unregister() -> None:
    stop()
