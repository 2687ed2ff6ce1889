# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs every subcommand: opens the file, works, saves, prints the result, and writes the report."""

import argparse
import logging
import signal
from collections.abc import Iterable
from pathlib import Path

import bpy

from ...blender import dependencies
from ...blender.animation.omissions import KINDS, refused
from ...blender.written_files import WrittenFiles, identity
from ...core.errors import BadPath, SkinningError
from .arguments import named_path
from .common import UsageError, input_path, open_input, output_targets
from .outcome import table
from .report import DONE, FAILED, REPORT, STOPPED, Report, settings_of
from .report_reading import UnreadableReport, read_report
from .saving import save
from .stopping import EXIT_SIGNAL, Stopped, check_stopped, ignore_signals, stopped_by_signals
from .terminal import say, say_error, shown

logger = logging.getLogger(__name__)

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_NO_REPORT = 0, 1, 2, 3

EXIT_CODES = (
    (EXIT_DONE, "done"),
    (EXIT_FAILED, "it failed; the reason is on the error output"),
    (EXIT_USAGE, "the command line is wrong"),
    (EXIT_NO_REPORT, "the work is done and saved, but the report could not be written"),
    # Windows has no name for it.
    (EXIT_SIGNAL + 1, "stopped because its terminal was closed"),
    (EXIT_SIGNAL + signal.SIGINT, "stopped by Ctrl-C"),
    (EXIT_SIGNAL + signal.SIGTERM, "stopped by a termination signal"),
)


def perform(options: argparse.Namespace) -> int:
    """Run the subcommand that the parsed ``options`` name; returns the exit code."""
    options.files = WrittenFiles()
    named = [getattr(options, name) for name in options.path_options if name != "report"]
    others = [path for each in named for path in (each if isinstance(each, list) else [each])]
    if getattr(options, "input", None) is None:
        others.append(bpy.data.filepath)
    with stopped_by_signals():
        try:
            report = _report(options.files, options.report, options.command, settings_of(options), filter(None, others))
        except BadPath as error:
            say_error(str(error))
            return EXIT_USAGE
        except Stopped as stop:
            say_error(str(stop))
            return stop.exit_code
        exit_code, message = _attempt(options, report)
        if message and options.progress == "openjd":
            say(f"{'openjd_fail' if exit_code else 'openjd_status'}: {shown(message)}")
        return conclude(report, exit_code, message)


def refuse(path: str | None, command: str, message: str, others: Iterable[str]) -> int:
    """Say that the command line is wrong, also in the report if there is one; returns the exit code.

    others: texts of the command line that may name files.
    """
    try:
        target = named_path(path) if path else None
        report = _report(WrittenFiles(), target, command, {}, map(named_path, filter(None, others)))
    except BadPath as error:
        report, message = None, f"{message}. {error}"
    return conclude(report, EXIT_USAGE, message)


def conclude(report: Report | None, exit_code: int, message: str) -> int:
    """Print the error, and write the report; returns the exit code."""
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
    """The report to write, or None. Raises BadPath before the work if it cannot be written there.

    others: the files that the rest of the command line names.
    """
    if path is None:
        return None
    if identity(path) in map(identity, others):
        raise BadPath(
            f"The report cannot be saved to {path}, which the command line names for something else, too. {_ANOTHER}"
        )
    report = Report(files.claim(path, REPORT, _ANOTHER), command, settings)
    if command in _OF_MANY and _command_of(path) not in (None, *_OF_MANY):
        raise BadPath(f"The report cannot be saved to {path}, as that is the report of a shot. {_ANOTHER}")
    try:
        # An older report must not be mistaken for this run's if this run ends without one.
        files.set_aside(report.target)
    except OSError as error:
        raise BadPath(f"The older report {path} cannot be replaced ({error.strerror or error}). {_ANOTHER}") from error
    return report


def _command_of(path: Path) -> str | None:
    """The command that wrote the report in that file, or None."""
    try:
        return read_report(path)["command"]
    except UnreadableReport:
        return None


# Commands that read the reports of others.
_OF_MANY = ("convert-shots", "gather-reports")

_ANOTHER = "Name another file with --report. Nothing was done"


def _attempt(options: argparse.Namespace, report: Report | None) -> tuple[int, str]:
    """Do the work; returns exit code and message. No signal stops what follows."""
    try:
        try:
            ended = _work(options, report)
        except (UsageError, BadPath) as error:
            ended = EXIT_USAGE, str(error)
        except SkinningError as error:
            ended = EXIT_FAILED, str(error)
        except Exception as error:
            logger.exception("The work failed")
            ended = EXIT_FAILED, f"The work failed because of a bug in Skinning Tools ({type(error).__name__}: {error})"
        if ended[0] != EXIT_DONE:
            check_stopped()
        ignore_signals()
    except Stopped as stop:
        return stop.exit_code, str(stop)
    return ended


def _work(options: argparse.Namespace, report: Report | None) -> tuple[int, str]:
    opens, saves = getattr(options, "opens", False), getattr(options, "saves", False)
    if opens:
        opened = input_path(options)
        if report is not None:
            report.input = {"path": str(opened)}
    if saves:
        output, backup = output_targets(options, opened, options.files)
        # Saving over the artist's own file does not mark it as the extension's.
        marked = options.output is not None or not opened.exists() or output.is_own()
    if opens:
        dependencies.require_dependencies()
        if options.input:
            open_input(opened, getattr(options, "run_scripts", False))
        options.files.keep_scene(opened if saves and options.output is None else None)
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
        check_stopped()
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
