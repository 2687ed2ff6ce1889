# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators declared by their settings and their work: fast work runs at once; long work runs in steps in the window,
shows its progress, and can be cancelled."""

import inspect
import time
from collections.abc import Callable
from typing import Any, ClassVar

import bpy
from bpy_extras.io_utils import ExportHelper

from ..blender import background, dependencies
from ..blender.areas import redraw_sidebars
from ..blender.job_checks import active_object
from ..blender.translation import translated
from ..blender.wording import sentence
from ..core.errors import Cancelled, SkinningError
from .boundary import reported
from .events import clicks_in_own_tab, navigates
from .settings import Settings

TIMER_SECONDS = 0.05
# The part of a timer's interval in which a job may use the main thread; the rest is for drawing and events.
TICK_SECONDS = 0.035


class WithSettings:
    """Mix-in of an operator whose ``settings`` are its properties."""

    bl_options = {"REGISTER", "UNDO"}
    settings: type[Settings] = Settings
    work: ClassVar[Callable]
    bl_label: str
    properties: bpy.types.OperatorProperties
    options: Any
    report: Callable[[set[str], str], None]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "settings" in vars(cls):
            # The class's own annotations, which Python 3.14 and newer evaluates on access.
            own = inspect.get_annotations(cls)
            cls.__annotations__ = cls.settings.operator_annotations() | own

    def prepare(self, context: bpy.types.Context) -> None:
        """Fill properties that the caller left unset from the interface's settings."""
        self.settings.fill(self, context)

    def finish(self, context: bpy.types.Context, result: Any) -> str:
        """The line to report: the result itself, or its summary; "" for no result."""
        if result is None:
            return ""
        if isinstance(result, str):
            return translated(result)
        self.leave_notes(result)
        return result.summary()

    def leave_notes(self, result: Any) -> None:
        """Show the notes of a result in the panel, too: the status bar cuts them off."""
        notes = getattr(result, "notes", ())
        if notes and self.options.is_invoke:
            text = "\n".join(sentence(translated(note)) for note in notes)
            background.note_failure(background.Failure(self.bl_label, text, icon="INFO"))


class AtOnce(WithSettings):
    """Mix-in for operators with fast work.

    Subclasses declare their ``settings`` and ``work``, a static function of (context, active object) and the settings,
    which returns the line to report, None, or a result with a ``summary``. If that is not enough, they define
    ``act(context, active)``, which does the work and returns the line to report, if any. needs_scipy: whether the work
    fails without the libraries that the extension includes.
    """

    needs_scipy = False

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str | None:
        return self.finish(context, self.work(context, active, **self.settings.of_operator(self)))

    def execute(self, context: bpy.types.Context) -> set[str]:
        with reported(self):
            if self.needs_scipy:
                dependencies.require_dependencies()
            if background.last_failure(self.bl_label) is not None:
                background.forget_failure()
            line = self.act(context, active_object(context))
            if line:
                self.report({"INFO"}, line)
            return {"FINISHED"}
        return {"CANCELLED"}

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        self.prepare(context)
        return self.execute(context)


class SavesFile(AtOnce, ExportHelper):
    """Mix-in for operators with fast work that writes a file and changes nothing in the scene: the user chooses it in
    the file browser, and ``work`` takes its path as ``filepath``."""

    bl_options = {"REGISTER"}

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        return self.finish(
            context, self.work(context, active, filepath=self.filepath, **self.settings.of_operator(self))
        )

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        self.prepare(context)
        return ExportHelper.invoke(self, context, event)


class SkinningJob(WithSettings):
    """Mix-in for operators whose work is a generator of (fraction, stage).

    Subclasses declare their ``settings`` and ``work``, a static generator function of (context, active object) and the
    settings, whose result has a ``summary``. If that is not enough, they define ``steps(context)``, which makes the
    generator; ``finish(context, result)``, which returns the line to report; and ``prepare(context)``, which fills
    unset properties before an interactive run. ``execute`` runs the generator to its end; ``invoke`` advances it on a
    timer until it ends or the user presses Esc. Closing the generator must undo all its changes.
    """

    _steps: background.Steps[Any] | None

    def steps(self, context: bpy.types.Context) -> background.Steps[Any]:
        """The generator that does the work."""
        dependencies.require_dependencies()
        return (yield from self.work(context, active_object(context), **self.settings.of_operator(self)))

    def execute(self, context: bpy.types.Context) -> set[str]:
        with reported(self):
            result = background.drain(self.steps(context))
            self.report({"INFO"}, self.finish(context, result))
            return {"FINISHED"}
        return {"CANCELLED"}

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
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
        # The first step checks the input, so that errors are reported before a handler is added.
        outcome = self._advance(context, 0.0)
        if outcome:
            return outcome
        self._manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
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
        passes = navigates(context, event) or clicks_in_own_tab(context, event)
        return {"PASS_THROUGH"} if passes else {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """End the job: the window closes, another file is loaded, or Blender quits."""
        self._end()

    def _advance(self, context: bpy.types.Context, seconds: float) -> set[str] | None:
        """Take steps for ``seconds``; the operator's result if the job ended, else None."""
        assert self._steps is not None
        deadline = time.perf_counter() + seconds
        with reported(self):
            try:
                while True:
                    step = next(self._steps)
                    unchanged = step == (self._job.fraction, self._job.stage)
                    self._job.fraction, self._job.stage = step
                    # No progress: the main thread would only wait for the worker.
                    if unchanged or time.perf_counter() >= deadline:
                        self._show()
                        return None
            except StopIteration as end:
                self.report({"INFO"}, self.finish(context, end.value))
                self._end()
                return {"FINISHED"}
        self._end()
        return {"CANCELLED"}

    def _stop(self, reason: SkinningError) -> set[str]:
        self._end()
        with reported(self):
            raise reason
        return {"CANCELLED"}

    def _show(self) -> None:
        stage = f"{translated(self._job.title)}: {translated(self._job.stage)}, {self._job.fraction:.0%}"
        text = f"{stage}   |   {translated('Cancel (Esc)')}"
        # Each redraw of the sidebar takes time from the worker: skip it if nothing has changed.
        if text != self._shown:
            self._shown = text
            self._workspace.status_text_set(text)
            redraw_sidebars()

    def _end(self) -> None:
        """Close the generator, which cleans up if it had not ended, and remove the job's traces from the interface."""
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
            redraw_sidebars()


_modal_job: SkinningJob | None = None


@bpy.app.handlers.persistent
def _stop_before_change(*_: Any) -> None:
    """End the job before an undo or another file removes the data that it works on."""
    stop_modal_job()


def stop_modal_job() -> None:
    """End the running modal job, if any, like a cancelled one."""
    if _modal_job is not None:
        _modal_job._end()


class SKINNING_OT_cancel_job(bpy.types.Operator):
    """Stop the running job and undo its changes"""

    bl_idname = "skinning.cancel_job"
    bl_label = "Cancel"
    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return background.running_job() is not None

    def execute(self, context: bpy.types.Context) -> set[str]:
        job = background.running_job()
        if job is not None:
            job.cancelled = True
        return {"FINISHED"}


registry = [SKINNING_OT_cancel_job]


# Not only while a job runs: see ``app_handlers``.
handlers = dict.fromkeys(("undo_pre", "redo_pre", "load_pre"), _stop_before_change)


def unregister() -> None:
    stop_modal_job()
