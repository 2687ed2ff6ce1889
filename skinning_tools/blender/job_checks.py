# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job works on, and why it cannot start now."""

import bpy

from ..core.errors import SkinningError
from . import background, dependencies, look_ups


def active_object(context: bpy.types.Context) -> bpy.types.Object | None:
    """What operators and panels work on, or None: also where it is hidden, as that is then what is to be said."""
    return context.active_object or context.view_layer.objects.active


def reason_not_to_work(context: bpy.types.Context, check) -> str:
    """Text for poll and panel, or "": ``check`` takes context and object, and raises SkinningError with the reason."""
    missing = dependencies.missing_dependency()
    if missing:
        return missing
    job = background.running_job()
    if job is not None:
        return f"{job.title} is still running. Wait for it to end, or press Esc to cancel it"
    try:
        with look_ups.sharing():
            check(context, active_object(context))
    except SkinningError as error:
        return str(error)
    return ""
