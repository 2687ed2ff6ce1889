# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing over the 3D views that an error ends, instead of one traceback for each redraw."""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import bpy

from ..blender.areas import redraw_views
from ..core.errors import SkinningError

logger = logging.getLogger(__name__)

Draw = Callable[[bpy.types.Context], None]
Subject = TypeVar("Subject")


class DrawnView(Generic[Subject]):
    """Draws over all 3D views from ``start`` to ``stop``. While it is off, Blender calls none of its callbacks.

    After an error it draws no more, and ends by a timer once Blender has finished drawing. shown: whether it is on;
    subject: what it shows, if that is more than the scene tells; failure: why an error ended it, "" if none did.
    handlers: for its module, whose ``unregister`` is ``stop``, so that it ends with the file and the extension.
    """

    def __init__(self, fault: str, ended: Callable[[Subject], None] | None = None, **draws: Draw):
        """fault: what to say of a bug. ended: called with a subject that is shown no more. draws: what draws, by the
        stage (POST_VIEW, POST_PIXEL)."""
        self.failure = ""
        self.subject: Subject | None = None
        self._fault, self._ended, self._draws = fault, ended, draws
        self._handles: list = []
        # Blender knows a timer by its identity, which a method has only where it is kept.
        self._timer = self._end

        @bpy.app.handlers.persistent
        def before_load(*_: Any) -> None:
            self.stop()

        self.handlers = {"load_pre": before_load}

    @property
    def shown(self) -> bool:
        return bool(self._handles)

    @property
    def ending(self) -> bool:
        """Whether an error has occurred, and the timer will end the view."""
        return bpy.app.timers.is_registered(self._timer)

    def start(self, subject: Subject | None = None) -> None:
        """Draw with the next redraw, in place of an earlier subject, and forget the last failure."""
        if subject is not self.subject:
            self.stop()
        self.failure, self.subject = "", subject
        if not self._handles:
            for stage in self._draws:
                handle = bpy.types.SpaceView3D.draw_handler_add(self.draw, (stage,), "WINDOW", stage)
                self._handles.append(handle)
        redraw_views()

    def stop(self, reason: str = "") -> None:
        """End drawing; reason: the new ``failure``."""
        subject, self.subject = self.subject, None
        self.failure = reason
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")
        if self.ending:
            bpy.app.timers.unregister(self._timer)
        redraw_views()
        if subject is not None and self._ended is not None:
            self._ended(subject)

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
        self.stop(self.failure)
