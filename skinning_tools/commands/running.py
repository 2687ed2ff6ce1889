# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way in which every subcommand runs: open, work, save, say what came of it, and leave the report."""

import contextlib
import logging
import signal
import threading
from pathlib import Path

from ..core.errors import SkinningError
from ..scene import dependencies
from ..scene.animation.omissions import KINDS, refused
from .common import UsageError, input_path, open_input, output_path, say, say_error
from .outcome import table
from .report import DONE, FAILED, STOPPED, Report, settings_of
from .saving import save

logger = logging.getLogger(__name__)

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_NO_REPORT = 0, 1, 2, 3
# A program that a signal ends: what shells say of it, too.
EXIT_SIGNAL = 128

EXIT_CODES = (
    (EXIT_DONE, "done"),
    (EXIT_FAILED, "it failed; the reason is on the error output"),
    (EXIT_USAGE, "the command line is wrong"),
    (EXIT_NO_REPORT, "the work is done and saved, but the report could not be written"),
    (EXIT_SIGNAL + signal.SIGINT, "stopped by Ctrl-C"),
    (EXIT_SIGNAL + signal.SIGTERM, "stopped by a signal to end"),
)


class Stopped(KeyboardInterrupt):
    """A signal asks the program to end."""

    def __init__(self, number: int):
        super().__init__(f"Stopped by {signal.Signals(number).name}")
        self.exit_code = EXIT_SIGNAL + number


def perform(options) -> int:
    """Run the subcommand that the parsed ``options`` name; returns the exit code."""
    try:
        report = _report(options.report, options.command, settings_of(options))
    except UsageError as error:
        say_error(str(error))
        return EXIT_USAGE
    with stopped_by_signals():
        exit_code, message = _attempt(options, report)
        _ignore_signals()
        if message and options.progress == "openjd":
            say(f"{'openjd_fail' if exit_code else 'openjd_status'}: {message}")
        return conclude(report, exit_code, message)


def refuse(path: str | None, command: str, message: str) -> int:
    """Say that the command line is wrong, in the report as well where there is to be one; returns the exit code."""
    try:
        report = _report(path, command, {})
    except UsageError as error:
        report, message = None, f"{message}. {error}"
    return conclude(report, EXIT_USAGE, message)


def conclude(report: Report | None, exit_code: int, message: str) -> int:
    """Say what went wrong, and write the report; returns the exit code."""
    if message:
        say_error(message)
    if report is None:
        return exit_code
    status = DONE if exit_code == EXIT_DONE else STOPPED if exit_code > EXIT_SIGNAL else FAILED
    try:
        report.write(status, exit_code, message)
    except OSError as error:
        saved = f" The result is saved: {report.output['path']}" if report.output else " Nothing was saved"
        say_error(f"The report {report.path} could not be written ({error.strerror or error}).{saved}")
        return exit_code or EXIT_NO_REPORT
    return exit_code


def _report(path: str | None, command: str, settings: dict) -> Report | None:
    """Raises UsageError where no report can be written there: before the work, as for the result itself."""
    if path is None:
        return None
    report = Report(Path(path).expanduser().absolute(), command, settings)
    if not report.path.parent.is_dir():
        raise UsageError(f"--report names a folder that does not exist: {report.path.parent}")
    if report.path.is_dir():
        raise UsageError(f"--report names a folder, not a file: {report.path}")
    try:
        report.begin()
    except OSError as error:
        raise UsageError(
            f"No report can be written to {report.path.parent} ({error.strerror or error}). Nothing was done"
        ) from error
    return report


def _attempt(options, report: Report | None) -> tuple[int, str]:
    """Exit code, and the message where it is not 0."""
    try:
        return _work(options, report)
    except UsageError as error:
        return EXIT_USAGE, str(error)
    except SkinningError as error:
        return EXIT_FAILED, str(error)
    except Stopped as stop:
        return stop.exit_code, str(stop)
    except Exception as error:
        logger.exception("The work failed")
        return EXIT_FAILED, f"The work failed through a fault of its own ({type(error).__name__}: {error})"


def _work(options, report: Report | None) -> tuple[int, str]:
    saves = getattr(options, "saves", False)
    if saves:
        opened = input_path(options)
        if report is not None:
            report.input = {"path": str(opened)}
        output = output_path(options, opened)
        dependencies.require_dependencies()
        if options.input:
            open_input(opened)
        if report is not None:
            report.add_input(opened)
    # A command that reads no shapes from the scene has no such option.
    allowed = getattr(options, "allow_incomplete", "").split(",")
    with refused(kind for kind in KINDS if kind not in allowed):
        outcome = options.run(options)
    if report is not None:
        report.add_outcome(outcome)
    lines = outcome.lines()
    if saves:
        save(output, options.overwrite)
        if report is not None:
            report.add_output(output)
        lines.append(("Saved to", str(output)))
    if outcome.afterwards is not None:
        outcome.afterwards()
    lines += [(name.capitalize(), str(path)) for name, path in outcome.files.items()]
    if lines:
        say(table(lines))
    return outcome.exit_code, outcome.message


@contextlib.contextmanager
def stopped_by_signals():
    """Raise Stopped on Ctrl-C and on a signal to end. Blender in background mode takes Ctrl-C for itself otherwise."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def stop(number, frame):
        _ignore_signals()
        raise Stopped(number)

    try:
        for number in _SIGNALS:
            signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            # None: a handler of Blender's own, which Python cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _ignore_signals() -> None:
    """The first signal counts: what cleans up and writes the report is not to be stopped by the next."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
