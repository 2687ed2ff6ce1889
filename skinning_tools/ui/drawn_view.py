# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing over the 3D views that an error ends, instead of one traceback for each redraw."""

import logging
from collections.abc import Callable

import bpy

from ..blender.areas import redraw_views
from ..core.errors import SkinningError

logger = logging.getLogger(__name__)

Draw = Callable[[bpy.types.Context], None]


class DrawnView:
    """Draws over all 3D views from ``start`` to ``stop``. While it is off, Blender calls none of its callbacks.

    After an error it draws no more, and ends by a timer once Blender has finished drawing. shown: whether it is on;
    failure: why an error ended it, "" if none did.
    """

    def __init__(self, fault: str, stop: Callable[[str], None], **draws: Draw):
        """fault: what to say of a bug. stop: called with the reason after an error, to call ``stop`` of this object.
        draws: what draws, by the stage (POST_VIEW, POST_PIXEL)."""
        self.failure = ""
        self._fault, self._stop, self._draws = fault, stop, draws
        self._handles: list = []
        # Blender knows a timer by its identity, which a method has only where it is kept.
        self._timer = self._end

    @property
    def shown(self) -> bool:
        return bool(self._handles)

    @property
    def ending(self) -> bool:
        """Whether an error has occurred, and the timer will end the view."""
        return bpy.app.timers.is_registered(self._timer)

    def start(self) -> None:
        """Draw with the next redraw, and forget the last failure."""
        self.failure = ""
        if not self._handles:
            for stage in self._draws:
                handle = bpy.types.SpaceView3D.draw_handler_add(self.draw, (stage,), "WINDOW", stage)
                self._handles.append(handle)
        redraw_views()

    def stop(self, reason: str = "") -> None:
        """End drawing; reason: the new ``failure``."""
        self.failure = reason
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")
        if self.ending:
            bpy.app.timers.unregister(self._timer)
        redraw_views()

    def draw(self, stage: str) -> None:
        """What Blender calls at each redraw of a 3D view."""
        if self.ending:
            return
        try:
            self._draws[stage](bpy.context)
        except Exception as error:  # noqa: BLE001 - its traceback is logged
            self.failure = self.told(error)
            bpy.app.timers.register(self._timer, first_interval=0.0)

    def told(self, error: Exception) -> str:
        """The message for the user; the traceback of a bug goes to the terminal."""
        if isinstance(error, SkinningError):
            return str(error)
        logger.error(self._fault, exc_info=error)
        return f"{self._fault} ({type(error).__name__}: {error}). The system console has the details to report"

    def _end(self) -> None:
        """Timer."""
        self._stop(self.failure)
