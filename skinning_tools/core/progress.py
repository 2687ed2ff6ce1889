# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a long computation, and the caller's way to cancel it.

A progress function takes ``(fraction, stage)``: the share done from 0 to 1 and a short name of the current stage.
It cancels the work by returning False (any other value, None among them, goes on).
"""

from collections.abc import Callable

from .errors import Cancelled

Progress = Callable[[float, str], bool | None]


def ignore(fraction: float, stage: str) -> None:
    """A progress function that does nothing."""


def checkpoint(progress: Progress, fraction: float, stage: str) -> None:
    """Report to ``progress``; raise Cancelled where it answers False."""
    if progress(fraction, stage) is False:
        raise Cancelled("Cancelled")


def span(progress: Progress, start: float, end: float) -> Progress:
    """A progress function whose 0 to 1 is the part ``start`` to ``end`` of the given one."""

    def inner(fraction: float, stage: str) -> bool | None:
        return progress(start + (end - start) * fraction, stage)

    return inner
