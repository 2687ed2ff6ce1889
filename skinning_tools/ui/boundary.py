# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns exceptions into what Blender shows its user: reports, and the reason why a button is grayed out."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import bpy

from ..blender import background
from ..blender.job_checks import reason_not_to_work
from ..blender.translation import translated
from ..blender.wording import in_two_lines, sentence
from ..core.errors import Cancelled, SkinningError

logger = logging.getLogger(__name__)


@contextmanager
def reported(operator: bpy.types.Operator) -> Iterator[None]:
    """Turn an exception of the body into a report of ``operator``; the statement after the block returns CANCELLED."""
    try:
        yield
    except Cancelled:
        operator.report({"WARNING"}, translated(f"{operator.bl_label} cancelled: nothing was changed"))
    except SkinningError as error:
        _tell(operator, str(error), error.code)
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
            f"{operator.bl_label} stopped: data that it works on was deleted or undone meanwhile. Start it again",
        )
    except Exception as error:
        # For any other error the user needs a line, and the developer the traceback, which goes to the terminal.
        logger.exception("%s failed", operator.bl_label)
        _tell(
            operator,
            f"{operator.bl_label} failed because of a bug in Skinning Tools ({type(error).__name__}: {error}). "
            "Nothing was changed; please report the details in the system console",
        )


def _tell(operator: bpy.types.Operator, text: str, code: str = "") -> None:
    """Report an error: the whole text for scripts, two lines for the popup in the interface, where the panel and the
    Info editor have the rest."""
    text = translated(text)
    if not operator.options.is_invoke or bpy.app.background:
        operator.report({"ERROR"}, text)
        return
    text = sentence(text)
    short = in_two_lines(text)
    if short.replace("\n", " ") != text:
        operator.report({"INFO"}, text)
    # The status bar drops line breaks.
    operator.report({"ERROR"}, short.replace("\n", " \n"))
    background.note_failure(background.Failure(operator.bl_label, text, code))


class Checked:
    """Mix-in for operators on ``job_checks.active_object``, grayed out with the reason as tooltip.

    Subclasses define ``require(context, active)``, a static method that raises SkinningError; it must be cheap.
    (Not ``check``: Blender calls an operator's method of that name itself, with other arguments.)
    """

    require: ClassVar[Callable]
    poll_message_set: ClassVar[Callable[[str], None]]

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = reason_not_to_work(context, cls.require)
        if reason:
            cls.poll_message_set(translated(reason))
        return not reason


class SKINNING_OT_dismiss_failure(bpy.types.Operator):
    """Hide this message"""

    bl_idname = "skinning.dismiss_failure"
    bl_label = "Dismiss"
    bl_options = {"INTERNAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        background.forget_failure()
        return {"FINISHED"}


@bpy.app.handlers.persistent
def _forget_failure(*_: Any) -> None:
    """Remove the failure, which was about the previous file."""
    background.forget_failure()


registry = [SKINNING_OT_dismiss_failure]
handlers = {"load_pre": _forget_failure}
