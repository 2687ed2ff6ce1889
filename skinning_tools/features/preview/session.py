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

# Of type skin_view.SkinView, whose module needs scipy: it is imported when a preview starts.
_running = None
# While the mesh is read, which may evaluate it in a temporary scene: that is no edit.
_is_reading = False


def running() -> "SkinView | None":
    """The running skin_view.SkinView, or None."""
    return _running


def failure() -> str:
    """Why the last preview was ended by an error, "" if it was not."""
    return _view.failure


def start(context: bpy.types.Context, mesh_object: bpy.types.Object | None, mode: str) -> None:
    """Show ``mode`` of the object instead of the previous preview, which stays if this raises SkinningError."""
    global _running
    if _running is not None and mesh_object is not None and _running.target() == mesh_object and not _running.stale:
        _running.set_mode(mode)
    else:
        from .skin_view import SkinView

        view = SkinView(context, mesh_object, mode)
        stop()
        _running = view
        add_handlers(_while_running)
    _view.start()


def stop(reason: str = "") -> None:
    """End the preview, if one runs, and unregister its handlers."""
    global _running
    view, _running = _running, None
    _view.stop(reason)
    if view is None:
        return
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
        stop(_view.told(error))
    finally:
        _is_reading = False
    redraw_views()


def _draw_view(context: bpy.types.Context) -> None:
    _draw("draw_view", context)


def _draw_pixels(context: bpy.types.Context) -> None:
    _draw("draw_pixels", context)


def _draw(stage: str, context: bpy.types.Context) -> None:
    if _running is None:
        return
    getattr(_running, stage)(context)
    if _running.stale and not _running.is_edited():
        _read_again_soon()


_view = DrawnView(
    "The preview has ended because of a bug in Skinning Tools", stop, POST_VIEW=_draw_view, POST_PIXEL=_draw_pixels
)

handlers = {"load_pre": _before_load}


def unregister() -> None:
    stop()
