# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview that runs, if any, and the handlers by which it lives.

While none runs, nothing is registered but what ends it with the file: a handler that takes itself off Blender's list
makes Blender pass over the next, which may be another add-on's.
"""

import logging

import bpy

from ...blender.app_handlers import add_handlers, remove_handlers
from ...blender.areas import redraw_views
from ...core.errors import SkinningError

logger = logging.getLogger(__name__)

_FAULT = "The preview has ended through a fault of its own"

# Of type skin_view.SkinView, whose module needs scipy: it is imported when a preview starts.
_running = None
_draw_handlers: list = []
_failure = ""


def running():
    """The skin_view.SkinView that is shown, or None."""
    return _running


def failure() -> str:
    """Why the last preview ended by itself, empty where it did not."""
    return _failure


def start(context, object, mode: str) -> None:
    """Show ``mode`` of ``object`` instead of what was shown before, which stays where this raises SkinningError."""
    global _running, _failure
    if _running is not None and object is not None and _running.target() == object and not _running.stale:
        _running.set_mode(mode)
    else:
        from .skin_view import SkinView

        view = SkinView(context, object, mode)
        stop()
        _running = view
        _register()
    _failure = ""
    redraw_views()


def stop(reason: str = "") -> None:
    """End the preview, if one runs, and take everything it has registered away."""
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
    add_handlers(_while_running())


def _unregister() -> None:
    while _draw_handlers:
        bpy.types.SpaceView3D.draw_handler_remove(_draw_handlers.pop(), "WINDOW")
    remove_handlers(_while_running())
    for timer in (_refresh, _end):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)


def _while_running():
    handlers = bpy.app.handlers
    return (
        (handlers.depsgraph_update_post, _after_update),
        (handlers.undo_post, _after_undo),
        (handlers.redo_post, _after_undo),
    )


def _after_update(scene, depsgraph) -> None:
    """Something was edited: posing and playback do not concern the mesh, weights and shape do."""
    edited = depsgraph.id_type_updated("MESH") or depsgraph.id_type_updated("ARMATURE")
    if _running.stale or (edited and _running.is_changed_by(depsgraph)):
        _read_again_soon()


def _after_undo(*_) -> None:
    _read_again_soon()


@bpy.app.handlers.persistent
def _before_load(*_) -> None:
    stop()


def _read_again_soon() -> None:
    """Not at once and not while drawing: the strokes of a brush report a change many times a second."""
    _running.stale = True
    if not bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.register(_refresh, first_interval=_running.seconds_to_next_reading)


def _refresh() -> None:
    """Timer."""
    try:
        _running.refresh()
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        stop(_told(error))
    redraw_views()


def _draw_view() -> None:
    _draw("draw_view")


def _draw_pixels() -> None:
    _draw("draw_pixels")


def _draw(stage: str) -> None:
    """A preview that cannot be drawn ends, not here but when Blender is done with drawing."""
    global _failure
    if bpy.app.timers.is_registered(_end):
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
    """What the user is told; the traceback of a fault goes to the terminal."""
    if isinstance(error, SkinningError):
        return str(error)
    logger.error(_FAULT, exc_info=error)
    return f"{_FAULT} ({type(error).__name__}: {error}). The system console has the details to report"


def _end() -> None:
    """Timer."""
    stop(_failure)


def _always():
    return ((bpy.app.handlers.load_pre, _before_load),)


def register() -> None:
    add_handlers(_always())


def unregister() -> None:
    stop()
    remove_handlers(_always())
