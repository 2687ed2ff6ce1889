# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary between the extension's exceptions and what Blender tells its user, and the base of modal jobs."""

import logging
import time
from contextlib import contextmanager

import bpy

from ..blender import background
from ..blender.app_handlers import add_handlers, remove_handlers
from ..blender.job_checks import reason_not_to_work
from ..blender.wording import TAB, in_two_lines, sentence
from ..core.errors import Cancelled, SkinningError

logger = logging.getLogger(__name__)

TIMER_SECONDS = 0.05
# The part of a timer's tick that a job may keep the main thread; the rest draws and handles the user's events.
TICK_SECONDS = 0.035

# The sidebar's tab with all of the extension's panels.
NAVIGATION = {"MIDDLEMOUSE", "WHEELUPMOUSE", "WHEELDOWNMOUSE", "WHEELINMOUSE", "WHEELOUTMOUSE", "TRACKPADPAN"} | {
    "TRACKPADZOOM", "MOUSEROTATE", "MOUSESMARTZOOM", "NDOF_MOTION", "MOUSEMOVE", "INBETWEEN_MOUSEMOVE"
}  # fmt: skip
VIEW_KEYS = {f"NUMPAD_{digit}" for digit in range(10)} | {"NUMPAD_PERIOD", "NUMPAD_PLUS", "NUMPAD_MINUS", "HOME"}


@contextmanager
def reported(operator: bpy.types.Operator):
    """Turn an exception of the body into a report of ``operator``; the statement after the block returns CANCELLED."""
    try:
        yield
    except Cancelled:
        operator.report({"WARNING"}, f"{operator.bl_label} cancelled: nothing was changed")
    except SkinningError as error:
        _tell(operator, str(error))
    except MemoryError:
        logger.exception("%s ran out of memory", operator.bl_label)
        _tell(
            operator,
            f"{operator.bl_label} ran out of memory. Choose a shorter frame range, a larger frame step or fewer bones",
        )
    except ReferenceError:
        logger.exception("%s lost a data-block", operator.bl_label)
        _tell(
            operator,
            f"{operator.bl_label} stopped: something it works on was deleted or undone meanwhile. Start it again",
        )
    except Exception as error:
        # Whatever it is, the user needs a line and the developer the traceback, which goes to the terminal.
        logger.exception("%s failed", operator.bl_label)
        _tell(
            operator,
            f"{operator.bl_label} failed through a fault of its own ({type(error).__name__}: {error}). "
            "Nothing was changed; the system console has the details to report",
        )


def _tell(operator, text: str) -> None:
    """Scripts get the whole text. In the interface it pops up, so it is two lines there; the whole is in the panel and
    in the Info editor."""
    if not operator.options.is_invoke or bpy.app.background:
        operator.report({"ERROR"}, text)
        return
    text = sentence(text)
    short = in_two_lines(text)
    if short.replace("\n", " ") != text:
        operator.report({"INFO"}, text)
    # The status bar leaves out the line's end.
    operator.report({"ERROR"}, short.replace("\n", " \n"))
    background.note_failure(operator.bl_label, text)


class Checked:
    """Mix-in of an operator that works on ``job_checks.active_object``: it is grayed out, with the reason as its tip.

    Subclasses define ``require(context, object)``, a static method that raises SkinningError; it must be cheap.
    (Not ``check``: Blender calls an operator's method of that name itself, with other arguments.)
    """

    @classmethod
    def poll(cls, context):
        reason = reason_not_to_work(context, cls.require)
        if reason:
            cls.poll_message_set(reason)
        return not reason


class SkinningJob:
    """Mix-in of an operator whose work is a generator of (fraction, stage).

    Subclasses define ``steps(context)``, which makes that generator, and ``finish(context, result)``, which returns the
    line to report; they may define ``prepare(context)``, which fills unset properties before an interactive run.
    ``execute`` drains the generator in line; ``invoke`` advances it on a timer until it ends or the user presses Esc.
    Closing the generator must undo all that it has done.
    """

    bl_options = {"REGISTER", "UNDO"}

    def prepare(self, context) -> None:
        """Fill the properties that the caller left unset from the interface's settings."""

    def fill(self, names, source) -> None:
        """Take the properties ``names`` from ``source`` where the caller has not set them."""
        for name in names:
            if not self.properties.is_property_set(name):
                setattr(self, name, getattr(source, name))

    def given(self, names) -> dict:
        """Those of the properties ``names`` that the caller has set, or ``prepare``, with their values."""
        return {name: getattr(self, name) for name in names if self.properties.is_property_set(name)}

    def execute(self, context):
        with reported(self):
            result = background.drain(self.steps(context))
            self.report({"INFO"}, self.finish(context, result))
            return {"FINISHED"}
        return {"CANCELLED"}

    def invoke(self, context, event):
        self.prepare(context)
        if bpy.app.background or context.window is None:
            return self.execute(context)
        if context.screen.is_animation_playing:
            # Playback would move the frame between the steps of the job.
            bpy.ops.screen.animation_cancel(restore_frame=False)
        global _modal_job
        _modal_job = self
        self._job = background.begin_job(self.bl_label)
        self._steps = self.steps(context)
        self._scene = context.scene
        self._view_layer = context.view_layer
        self._workspace = context.workspace
        self._manager = context.window_manager
        self._shown = ""
        self._timer = self._manager.event_timer_add(TIMER_SECONDS, window=context.window)
        # The first step checks the input: what is wrong is said at once, before there is a handler to take away.
        outcome = self._advance(context, 0.0)
        if outcome:
            return outcome
        self._manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        if self._steps is None or self._job.cancelled:
            return self._stop(Cancelled())
        if event.type == "ESC" and event.value == "PRESS":
            return self._stop(Cancelled())
        if context.scene != self._scene or context.view_layer != self._view_layer:
            return self._stop(
                SkinningError(f"{self.bl_label} stopped: the scene was switched meanwhile. Start it again")
            )
        if event.type == "TIMER":
            return self._advance(context, TICK_SECONDS) or {"PASS_THROUGH"}
        passes = _navigates(context, event) or _clicks_in_own_tab(context, event)
        return {"PASS_THROUGH"} if passes else {"RUNNING_MODAL"}

    def cancel(self, context):
        """The window closes, another file is read, or Blender quits."""
        self._end()

    def _advance(self, context, seconds):
        """Take steps for ``seconds``; the operator's result where the job ended, else None."""
        deadline = time.perf_counter() + seconds
        with reported(self):
            try:
                while True:
                    step = next(self._steps)
                    unchanged = step == (self._job.fraction, self._job.stage)
                    self._job.fraction, self._job.stage = step
                    # The same step again: the main thread waits for the worker and had better do something else.
                    if unchanged or time.perf_counter() >= deadline:
                        self._show()
                        return None
            except StopIteration as end:
                self.report({"INFO"}, self.finish(context, end.value))
                self._end()
                return {"FINISHED"}
        self._end()
        return {"CANCELLED"}

    def _stop(self, reason: SkinningError):
        self._end()
        with reported(self):
            raise reason
        return {"CANCELLED"}

    def _show(self) -> None:
        text = f"{self._job.title}: {self._job.stage}, {self._job.fraction:.0%}   |   Esc: Cancel"
        # Each redraw of the sidebar takes time from the worker: none where nothing has changed.
        if text != self._shown:
            self._shown = text
            self._workspace.status_text_set(text)
            _redraw_sidebars(self._manager)

    def _end(self) -> None:
        """Close the generator, which cleans up where it had not ended, and take the job's traces off the interface."""
        global _modal_job
        steps, self._steps = self._steps, None
        if steps is None:
            return
        _modal_job = None
        self._manager.event_timer_remove(self._timer)
        background.end_job(self._job)
        try:
            steps.close()
        finally:
            self._workspace.status_text_set(None)
            _redraw_sidebars(self._manager)


_modal_job: SkinningJob | None = None


@bpy.app.handlers.persistent
def _stop_before_change(*_) -> None:
    """An undo or another file takes away what the job works on: end it while that is still there."""
    stop_modal_job()


def stop_modal_job() -> None:
    """End the modal job that runs, if any, as if it had been cancelled."""
    if _modal_job is not None:
        _modal_job._end()


def _navigates(context, event) -> bool:
    """Whether an event only moves a view: the rest would edit what the job works on."""
    if event.type in NAVIGATION:
        # Wheel with Ctrl over a field changes its value; with Alt over the timeline it changes the frame.
        return not (event.type.startswith("WHEEL") and (event.ctrl or event.alt))
    return event.type in VIEW_KEYS and _area_type(context, event) == "VIEW_3D"


def _clicks_in_own_tab(context, event) -> bool:
    """Whether a click goes where nothing but the button that cancels can be pressed while a job runs."""
    if event.type != "LEFTMOUSE":
        return False
    area = _at(context.screen.areas, event)
    if area is None or area.type != "VIEW_3D":
        return False
    # It lies over the view itself.
    sidebar = _at([region for region in area.regions if region.type == "UI"], event)
    return sidebar is not None and sidebar.active_panel_category == TAB


def _area_type(context, event) -> str:
    area = _at(context.screen.areas, event)
    return area.type if area is not None else ""


def _at(places, event):
    """The area or region under the pointer, or None."""
    for place in places:
        if place.x <= event.mouse_x < place.x + place.width and place.y <= event.mouse_y < place.y + place.height:
            return place
    return None


class SKINNING_OT_cancel_job(bpy.types.Operator):
    """Stop what is running. Nothing of it stays behind"""

    bl_idname = "skinning.cancel_job"
    bl_label = "Cancel"
    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, context):
        return background.running_job() is not None

    def execute(self, context):
        background.running_job().cancelled = True
        return {"FINISHED"}


class SKINNING_OT_dismiss_failure(bpy.types.Operator):
    """Take this message away"""

    bl_idname = "skinning.dismiss_failure"
    bl_label = "Dismiss"
    bl_options = {"INTERNAL"}

    def execute(self, context):
        background.forget_failure()
        return {"FINISHED"}


@bpy.app.handlers.persistent
def _forget_failure(*_) -> None:
    """It was about the file that is left."""
    background.forget_failure()


registry = [SKINNING_OT_cancel_job, SKINNING_OT_dismiss_failure]


def _redraw_sidebars(manager) -> None:
    for window in manager.windows:
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                for region in area.regions:
                    if region.type == "UI":
                        region.tag_redraw()


def _handlers():
    """Blender's lists, each with what is in it as long as the extension is registered.

    Not as long as a job runs: one that takes itself off a list while Blender goes through it makes Blender pass over
    the next, which may be another add-on's.
    """
    handlers = bpy.app.handlers
    return (
        (handlers.undo_pre, _stop_before_change),
        (handlers.redo_pre, _stop_before_change),
        (handlers.load_pre, _stop_before_change),
        (handlers.load_pre, _forget_failure),
    )


def register() -> None:
    add_handlers(_handlers())


def unregister() -> None:
    stop_modal_job()
    remove_handlers(_handlers())
