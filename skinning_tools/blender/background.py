# SPDX-License-Identifier: GPL-3.0-or-later
"""Long computations off the main thread, and what the interface may know of the job that runs.

Only arrays cross into the worker: bpy may be touched by the main thread alone.
"""

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..core.progress import Progress

Result = TypeVar("Result")
Steps = Generator[tuple[float, str], None, Result]

POLL_SECONDS = 0.01
# A cancelled worker stops at its next report of progress. Longer than this the main thread does not wait for it: the
# worker owns nothing but arrays, so it may end by itself.
CANCEL_SECONDS = 1.0
# Before, a job's pace says nothing of what is left.
_FIRST_GUESS = 2.0


def run_in_worker(work: Callable[[Progress], Result]) -> Steps[Result]:
    """Generator: run ``work(progress)`` in a worker thread, yield its latest (fraction, stage), return its result.

    Raises what ``work`` raises. Closing the generator makes ``progress`` answer False, which cancels the work.
    """
    latest = (0.0, "")
    cancelled = threading.Event()
    results: list[Result] = []
    errors: list[BaseException] = []

    def progress(fraction: float, stage: str) -> bool:
        nonlocal latest
        latest = (fraction, stage)
        return not cancelled.is_set()

    def target() -> None:
        try:
            results.append(work(progress))
        except BaseException as error:  # noqa: BLE001 - raised again on the main thread
            errors.append(error)

    thread = threading.Thread(target=target, name="skinning_tools worker", daemon=True)
    thread.start()
    try:
        yield latest
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            yield latest
    finally:
        cancelled.set()
        thread.join(CANCEL_SECONDS)
    if errors:
        raise errors[0]
    return results[0]


def drain(steps: Generator[Any, Any, Result], progress: Callable[[float, str], None] | None = None) -> Result:
    """Run a generator of (fraction, stage), or without ``progress`` of anything, to its end, in line, and return its
    result."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        if progress is not None:
            progress(*step)


@dataclass
class RunningJob:
    """What the panel shows of a modal job. cancelled: what its button sets; the job sees it at its next turn."""

    title: str
    fraction: float = 0.0
    stage: str = ""
    cancelled: bool = False
    begin: float = field(default_factory=time.perf_counter)

    @property
    def seconds_left(self) -> float | None:
        """By its pace so far; None as long as that says nothing."""
        passed = time.perf_counter() - self.begin
        if passed < _FIRST_GUESS or self.fraction <= 0:
            return None
        return passed * (1 - self.fraction) / self.fraction


_running: list[RunningJob] = []


def running_job() -> RunningJob | None:
    """The modal job that runs at present, if any. There is never more than one."""
    return _running[-1] if _running else None


def begin_job(title: str) -> RunningJob:
    """Announce a modal job; ``end_job`` must follow, whatever happens."""
    forget_failure()
    job = RunningJob(title)
    _running.append(job)
    return job


_failure: tuple[str, str] | None = None


def note_failure(title: str, text: str) -> None:
    """What went wrong last, for the panel; until the next job begins."""
    global _failure
    _failure = title, text


def last_failure(*titles: str) -> str:
    """Why the last of the jobs with these titles failed, or ""."""
    return _failure[1] if _failure is not None and _failure[0] in titles else ""


def forget_failure() -> None:
    global _failure
    _failure = None


def end_job(job: RunningJob) -> None:
    if job in _running:
        _running.remove(job)
