# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs long computations off the main thread, and holds the state of the running job for the interface.

Only arrays are passed to the worker: bpy is for the main thread only.
"""

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..core.progress import Progress

Result = TypeVar("Result")
Steps = Generator[tuple[float, str], None, Result]

POLL_SECONDS = 0.01
# A cancelled worker stops at its next report of progress. The main thread waits no longer than this: the worker owns
# only arrays, so it may end on its own.
CANCEL_SECONDS = 1.0
# Before so many seconds, and so much of the whole, a job's speed does not predict the remaining time.
_FIRST_GUESS, _FIRST_PART = 2.0, 0.03


def run_in_worker(work: Callable[[Progress], Result]) -> Steps[Result]:
    """Generator: run ``work(progress)`` in a worker thread, yield its latest (fraction, stage), return its result.

    Raises what ``work`` raises. Closing the generator makes ``progress`` return False, which cancels the work.
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
    """Run a generator of (fraction, stage) to its end and return its result. Without ``progress``, it may yield
    anything."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        if progress is not None:
            progress(*step)


def part_of(steps: Generator[Any, Any, Result], start: float, end: float, text: str = "") -> Steps[Result]:
    """Generator: ``steps``, (fraction, stage) or bare fractions, as the part from ``start`` to ``end`` of the whole.

    text: the stage of all of them; "" keeps their own.
    """
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as stop:
                return stop.value
            fraction, stage = step if isinstance(step, tuple) else (step, text)
            yield start + (end - start) * min(max(fraction, 0.0), 1.0), text or stage
    finally:
        steps.close()


@dataclass
class RunningJob:
    """The state of a modal job for the panel. cancelled: set by its button, read at the job's next step."""

    title: str
    fraction: float = 0.0
    stage: str = ""
    cancelled: bool = False
    begin: float = field(default_factory=time.perf_counter)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the job's speed so far; None while it is too early."""
        passed = time.perf_counter() - self.begin
        if passed < _FIRST_GUESS or self.fraction < _FIRST_PART:
            return None
        return passed * (1 - self.fraction) / self.fraction


_running: list[RunningJob] = []


def running_job() -> RunningJob | None:
    """The running modal job, or None. There is never more than one."""
    return _running[-1] if _running else None


def begin_job(title: str) -> RunningJob:
    """Register a running modal job; ``end_job`` must follow in any case."""
    forget_failure()
    job = RunningJob(title)
    _running.append(job)
    return job


class Failure(NamedTuple):
    """Why the job of that title failed, and the code of the precondition that did not hold, if it was one; or, with
    another ``icon``, what a finished one left to note, a line each."""

    title: str
    text: str
    code: str = ""
    icon: str = "ERROR"


_failure: Failure | None = None


def note_failure(failure: Failure) -> None:
    """Store the last failure for the panel, until the next job begins."""
    global _failure
    _failure = failure


def last_failure(*titles: str) -> Failure | None:
    """The failure of the last job, if the job has one of these titles."""
    return _failure if _failure is not None and _failure.title in titles else None


def forget_failure() -> None:
    global _failure
    _failure = None


def end_job(job: RunningJob) -> None:
    if job in _running:
        _running.remove(job)
