# SPDX-License-Identifier: GPL-3.0-or-later
"""Where exceptions become what Blender tells its user: reports, and the reason why a button is grayed out."""

import logging
from contextlib import contextmanager

import bpy

from ..blender import background
from ..blender.app_handlers import add_handlers, remove_handlers
from ..blender.job_checks import active_object, reason_not_to_work
from ..blender.wording import in_two_lines, sentence
from ..core.errors import Cancelled, SkinningError

logger = logging.getLogger(__name__)


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


class Immediate(Checked):
    """Mix-in of such an operator whose work takes no time: ``act(context, object)`` does it, and returns the line to
    report, if any."""

    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        with reported(self):
            line = self.act(context, active_object(context))
            if line:
                self.report({"INFO"}, line)
            return {"FINISHED"}
        return {"CANCELLED"}


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


registry = [SKINNING_OT_dismiss_failure]


def _handlers():
    return ((bpy.app.handlers.load_pre, _forget_failure),)


def register() -> None:
    add_handlers(_handlers())


def unregister() -> None:
    remove_handlers(_handlers())
