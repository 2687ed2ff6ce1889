# SPDX-License-Identifier: GPL-3.0-or-later
"""The object that a job works on, and the reason why it cannot start."""

from collections.abc import Callable

import bpy

from ..core.errors import SkinningError
from . import background, dependencies, look_ups
from .preconditions import unmet


def active_object(context: bpy.types.Context) -> bpy.types.Object | None:
    """The object that operators and panels work on, or None. It may be hidden: checks then say so."""
    return context.active_object or context.view_layer.objects.active


def still_running() -> str:
    """That a job is running, so that no other can start, or ""."""
    job = background.running_job()
    return "" if job is None else str(unmet("JOB_RUNNING", job=job.title))


def reason_not_to_work(context: bpy.types.Context, check: Callable) -> str:
    """The reason for poll and panel, or "": ``check`` takes context and object, and raises SkinningError with it."""
    reason = dependencies.missing_dependency() or still_running()
    if reason:
        return reason
    try:
        with look_ups.sharing():
            check(context, active_object(context))
    except SkinningError as error:
        return str(error)
    return ""
