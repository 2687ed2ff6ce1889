# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job on the active object cannot start now."""

from ..core.errors import SkinningError
from . import background, dependencies


def reason_not_to_work(context, check) -> str:
    """Text for poll and panel, or "": ``check`` takes context and object, and raises SkinningError with the reason."""
    missing = dependencies.missing_dependency()
    if missing:
        return missing
    job = background.running_job()
    if job is not None:
        return f"{job.title} is still running. Wait for it to end, or press Esc to cancel it"
    try:
        # Not context.active_object, which is None for an object that is hidden.
        check(context, context.view_layer.objects.active)
    except SkinningError as error:
        return str(error)
    return ""
