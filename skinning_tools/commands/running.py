# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way in which every subcommand runs: open, work, save, say what came of it, and leave the report."""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterable
from pathlib import Path

import bpy

from ..core.errors import BadPath, SkinningError
from ..scene import dependencies
from ..scene.animation.omissions import KINDS, refused
from ..scene.written_files import WrittenFiles, identity
from .arguments import READ
from .common import UsageError, input_path, open_input, output_targets, say, say_error
from .outcome import table
from .report import DONE, FAILED, REPORT, STOPPED, Report, read_report, settings_of
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
    options.files = WrittenFiles()
    others = [getattr(options, name) for name in options.path_options if name != "report"]
    if getattr(options, "input", None) is None:
        others.append(bpy.data.filepath)
    try:
        report = _report(options.files, options.report, options.command, settings_of(options), filter(None, others))
    except BadPath as error:
        say_error(str(error))
        return EXIT_USAGE
    with stopped_by_signals():
        exit_code, message = _attempt(options, report)
        _ignore_signals()
        if message and options.progress == "openjd":
            say(f"{'openjd_fail' if exit_code else 'openjd_status'}: {message}")
        return conclude(report, exit_code, message)


def refuse(path: str | None, command: str, message: str, others: Iterable[str]) -> int:
    """Say that the command line is wrong, in the report as well where there is to be one; returns the exit code.

    others: texts of the command line that may name files.
    """
    try:
        report = _report(WrittenFiles(), path and READ(path), command, {}, map(READ, filter(None, others)))
    except BadPath as error:
        report, message = None, f"{message}. {error}"
    return conclude(report, EXIT_USAGE, message)


def conclude(report: Report | None, exit_code: int, message: str) -> int:
    """Say what went wrong, and write the report; returns the exit code."""
    if message:
        say_error(message)
    if report is None or report.target.given_up:
        return exit_code
    status = DONE if exit_code == EXIT_DONE else STOPPED if exit_code > EXIT_SIGNAL else FAILED
    try:
        report.write(status, exit_code, message)
    except OSError as error:
        saved = f" The result is saved: {report.output['path']}" if report.output else " Nothing was saved"
        say_error(f"The report {report.target.path} could not be written ({error.strerror or error}).{saved}")
        return exit_code or EXIT_NO_REPORT
    return exit_code


def _report(
    files: WrittenFiles, path: Path | None, command: str, settings: dict, others: Iterable[Path]
) -> Report | None:
    """Raises BadPath where no report can be written there: before the work, as for the result itself.

    others: what the rest of the command line names.
    """
    if path is None:
        return None
    if identity(path) in map(identity, others):
        raise BadPath(
            f"The report cannot be saved to {path}, which the command line names for something else, too. {_ANOTHER}"
        )
    report = Report(files.claim(path, REPORT, _ANOTHER), command, settings)
    older = read_report(path)
    if command in _OF_MANY and older is not None and older["command"] not in _OF_MANY:
        raise BadPath(f"The report cannot be saved to {path}, as that is the report of a shot. {_ANOTHER}")
    try:
        # An older report must not speak for this run should it end without one.
        files.set_aside(report.target)
    except OSError as error:
        raise BadPath(f"The older report {path} cannot be replaced ({error.strerror or error}). {_ANOTHER}") from error
    return report


# Commands that go by the reports of others.
_OF_MANY = ("convert-shots", "gather-reports")

_ANOTHER = "Name another file with --report. Nothing was done"


def _attempt(options, report: Report | None) -> tuple[int, str]:
    """Exit code, and the message where it is not 0."""
    try:
        return _work(options, report)
    except (UsageError, BadPath) as error:
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
        output, backup = output_targets(options, opened, options.files)
        # What was the artist's own work stays so where it is saved over.
        marked = options.output is not None or not opened.exists() or output.is_own()
        dependencies.require_dependencies()
        if options.input:
            open_input(opened)
        options.files.keep_scene(None if options.output else opened)
        if report is not None:
            report.add_input(opened)
    else:
        options.files.keep_scene()
    # A command that reads no shapes from the scene has no such option.
    allowed = getattr(options, "allow_incomplete", "").split(",")
    with refused(kind for kind in KINDS if kind not in allowed):
        outcome = options.run(options)
    if report is not None:
        report.add_outcome(outcome)
    lines = outcome.lines()
    if saves:
        save(output, backup, marked)
        if report is not None:
            report.add_output(output.path)
        lines.append(("Saved to", str(output.path)))
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
