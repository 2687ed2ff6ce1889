# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert-shots`: `convert` for many files, each in a separate Blender process."""

import argparse
import contextlib
import shlex
import time
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple, NoReturn

from ...blender.animation.omissions import KINDS
from ...blender.figures import Figure
from ...blender.written_files import Target, identity, remove_halves
from ...core.errors import BadPath
from ...ui.command_line.arguments import WRITTEN, whole_number
from ...ui.command_line.blend_mark import RESULT
from ...ui.command_line.common import UsageError, progress_of
from ...ui.command_line.fingerprints import is_same
from ...ui.command_line.outcome import Outcome
from ...ui.command_line.report import DONE, FAILED, REPORT, Report, json_bytes, settings_of
from ...ui.command_line.report_reading import UnreadableReport, read_report
from ...ui.command_line.running import EXIT_FAILED
from ...ui.command_line.saving import reason
from ...ui.command_line.stopping import held
from ...ui.command_line.terminal import say, shown
from ..convert import command as convert
from ..convert.settings import CONVERT
from .blender_child import LOG, Child, end, end_text
from .shots import Shot, add_shots, find_shots, numbered
from .table import aligned, shot_row

POLL_SECONDS = 0.05
SKIPPED = "skipped"

# Values for reports of versions before these settings: those versions ignored omissions by Blender, and took object
# names literally.
_BEFORE = {"allow_incomplete": ",".join(KINDS), "on_result": CONVERT}
# A newer setting; a report without it is of a run without it.
_LATER = {"run_scripts": False}


def add(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "convert-shots",
        help="turn the animations of many files into bones, weights and keyframes",
        description="Convert the same objects of many .blend files with the same settings, each in a separate Blender "
        "process. Results, reports and the logs of failures go into one folder. Shots whose report says that they are "
        "done, with the same settings and from the same file, are skipped, so that the same command continues where it "
        "was stopped.",
    )
    add_shots(command)
    command.add_argument("--output", type=WRITTEN, metavar="FOLDER", required=True, help="where to save the results")
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="overwrite all files in that folder, even those that this command did not write",
    )
    command.add_argument(
        "--jobs",
        type=whole_number,
        default=1,
        metavar="N",
        help="number of shots to convert at once (default: %(default)s)",
    )
    command.add_argument("--list", action="store_true", help="only print the shots with their numbers")
    command.add_argument("--again", action="store_true", help="also convert finished shots")
    command.add_argument(
        "--on-failure",
        choices=("fail", "report"),
        default="fail",
        help="if shots fail: end with exit code 1 after the others, or with 0, since the reports list failures "
        "(default: %(default)s)",
    )
    command.add_argument(
        "--settings",
        default="",
        metavar="TEXT",
        help="more options of convert in one text, for render managers that cannot leave an option out",
    )
    convert.add_settings(command.add_argument_group("settings of convert"))
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> Outcome:
    if options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    folder = options.output
    shots = numbered(find_shots(options.shots, folder, options.recursive), options.only)
    settings = convert_arguments(options)
    expected = settings_of(options.parse(["convert", *settings]))
    if options.list:
        return Outcome([Figure(f"{number}", str(shot.path)) for number, shot in shots.items()])
    for shot in shots.values():
        options.files.keep(shot.path, "a shot to convert")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder for the results cannot be made: {error}") from error
    places = {shot: _places(options, shot) for shot in shots.values()}

    rows = {}
    waiting: deque[Shot] = deque()
    for shot in shots.values():
        report = None if options.again else _finished_report(shot, expected)
        # In the order of the shots' numbers, whichever ends first.
        rows[shot] = shot_row(shot.name, report, SKIPPED) if report else {}
        if not report:
            waiting.append(shot)
        elif places[shot].log.is_own():
            # Left by a run that was killed after the shot was done.
            with contextlib.suppress(OSError, BadPath):
                places[shot].log.remove()
    converting = _Converting(options, settings, expected, places, len(waiting))
    with contextlib.closing(converting.run(waiting)) as ended:
        for shot, report in ended:
            rows[shot] = shot_row(shot.name, report)
    say(aligned(rows.values()))
    return _outcome(options, rows)


def convert_arguments(options: argparse.Namespace) -> list[str]:
    """The given options that belong to ``convert``, as its command line. Raises UsageError."""
    parser = argparse.ArgumentParser(add_help=False)
    convert.add_settings(parser)
    arguments = []
    # The only list of a parser's options that argparse keeps.
    for action in parser._actions:
        value, name = getattr(options, action.dest), action.option_strings[0]
        if action.nargs == 0:
            arguments += [name] if value != action.default else []
        elif value is not None:
            arguments += [f"{name}={item}" for item in (value if isinstance(value, list) else [value])]
    return arguments + _more_settings(options)


def _more_settings(options: argparse.Namespace) -> list[str]:
    """The options in --settings. Raises UsageError, also for an option that is not a setting: each shot has its own
    file, result and report."""
    try:
        more = shlex.split(options.settings)
    except ValueError as error:
        raise UsageError(f"--settings: {error}") from error
    reader = _SettingsReader(add_help=False, usage=argparse.SUPPRESS)
    convert.add_settings(reader)
    reader.parse_args([*more, "--object=any"])
    return more


class _SettingsReader(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"--settings: {message}")


def _finished_report(shot: Shot, settings: dict) -> dict | None:
    """The report of a finished shot, else None: anything else there means that the shot is converted again."""
    try:
        report = read_report(shot.report)
    except UnreadableReport:
        return None
    return report if is_finished(shot, report, settings) else None


def is_finished(shot: Shot, report: dict, settings: dict) -> bool:
    """Whether the report says that the shot is done, with these settings and from the present file."""
    source = report["input"] or {}
    return (
        (report["command"], report["status"], _BEFORE | _LATER | report["settings"]) == ("convert", DONE, settings)
        and shot.output.is_file()
        and shot.path.is_file()
        and is_same(shot.path, source)
        and all(is_same(Path(other["path"]), other) for other in source.get("refers_to", ()))
    )


def _is_earlier_failure(shot: Shot, report: dict) -> bool:
    """Whether the report says that this shot failed in a version that left no marks in logs."""
    source = report["input"] or {}
    return (
        report["command"] == "convert"
        and report["status"] != DONE
        and not _BEFORE.keys() <= report["settings"].keys()
        and "path" in source
        and identity(source["path"]) == identity(shot.path)
    )


class _Places(NamedTuple):
    """The files of a shot to write."""

    output: Target
    report: Target
    log: Target


def _places(options: argparse.Namespace, shot: Shot) -> _Places:
    """The files of a shot to write. Raises BadPath if one is a source or another shot's file; any other obstacle fails
    only that shot, later."""
    hint = "Choose another folder"
    kinds = (shot.output, RESULT), (shot.report, REPORT), (shot.log, LOG)
    return _Places(*(options.files.claim(path, kind, hint, options.overwrite, check=False) for path, kind in kinds))


class _Converting:
    """Run conversions, several at once."""

    def __init__(
        self, options: argparse.Namespace, settings: list[str], expected: dict, places: dict[Shot, _Places], count: int
    ):
        self._settings, self._expected, self._places, self._count = settings, expected, places, count
        self._jobs = max(1, min(options.jobs, count))
        self._progress = progress_of(options)
        self._says_lines = options.progress == "lines"
        self._done = 0

    def run(self, waiting: deque[Shot]) -> Generator[tuple[Shot, dict], None, None]:
        """Generator: yield shot and report as each one ends. Closing it, or an exception, ends the running ones."""
        running: dict[Shot, Child] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._jobs:
                    shot = waiting.popleft()
                    try:
                        with held():
                            running[shot] = self._start(shot)
                    except (OSError, BadPath) as error:
                        message = f"The conversion of {shot.path} cannot be started: {reason(error)}"
                        yield shot, self._ended(shot, self._failed(shot, EXIT_FAILED, message))
                for shot, child in list(running.items()):
                    code = child.exit_code()
                    if code is not None:
                        report = self._finish(shot, child, code)
                        del running[shot]
                        yield shot, report
                self._tell(running)
                time.sleep(POLL_SECONDS)
            if self._progress is not None and not self._says_lines:
                self._progress(1.0, "finished")
        finally:
            end(list(running.values()))
            for shot, child in running.items():
                remove_halves(child.log.real.parent)
                self._remove_log(shot)

    def _start(self, shot: Shot) -> Child:
        """Start the conversion of a shot. Raises OSError if Blender cannot be started, BadPath if its files cannot be
        written."""
        places = self._places[shot]
        arguments = [
            "convert", *self._settings, "--input", str(shot.path), "--output", str(shot.output),
            "--report", str(shot.report), "--progress", "openjd",
        ]  # fmt: skip
        # Earlier versions left no mark in results and logs; then the report identifies them.
        with contextlib.suppress(UnreadableReport):
            report = read_report(shot.report)
            known = report["output"]
            places.output.allowed = places.output.allowed or (known is not None and is_same(shot.output, known))
            if _is_earlier_failure(shot, report):
                places.log.allowed = True
                # The next report cannot identify any other file in the way.
                places.log.remove()
        shot.report.parent.mkdir(parents=True, exist_ok=True)
        for place in places:
            place.check()
        if places.output.allowed:
            arguments.append("--overwrite")
        # The old report would be mistaken for that of this conversion.
        places.report.remove()
        return Child(arguments, places.log, self._jobs)

    def _remove_log(self, shot: Shot) -> None:
        with contextlib.suppress(OSError, BadPath):
            self._places[shot].log.remove()

    def _finish(self, shot: Shot, child: Child, code: int) -> dict:
        try:
            report = read_report(shot.report)
        except UnreadableReport:
            words = child.last_words()
            message = f"{end_text(code)}. Its log is {shot.log}" + (f", the end of it: {words}" if words else "")
            report = self._failed(shot, code if code > 0 else 128 - code, message)
        if report["status"] == DONE:
            self._remove_log(shot)
        else:
            remove_halves(child.log.real.parent)
        return self._ended(shot, report)

    def _ended(self, shot: Shot, report: dict) -> dict:
        """Print the end of a shot's conversion; returns the report."""
        self._done += 1
        if self._says_lines:
            seconds = report["times"]["seconds"]
            message = f": {report['message']}" if report["message"] else ""
            line = f"{shot.name}  {report['status']}, {seconds:.1f} s{message}"
            say(f"[{self._done}/{self._count}] {shown(line)}")
        return report

    def _failed(self, shot: Shot, exit_code: int, message: str) -> dict:
        """The report for a conversion that left none. If it cannot be written, its message says so."""
        report = Report(self._places[shot].report, "convert", self._expected)
        report.input = {"path": str(shot.path)}
        document = report.document(FAILED, exit_code, message)
        try:
            report.target.check()
            report.target.write(json_bytes(document))
        except (OSError, BadPath) as error:
            # A file in its place may be the reason why the conversion did not start.
            why = "" if reason(error) in message else f": {reason(error)}"
            document["message"] = f"{message}. This shot has no report{why}"
        return document

    def _tell(self, running: dict[Shot, Child]) -> None:
        if self._progress is None or not running:
            return
        stage = ", ".join(f"{shot.name} {child.stage}".strip() for shot, child in running.items())
        fraction = (self._done + sum(child.fraction for child in running.values())) / self._count
        self._progress(fraction, stage)


def _outcome(options: argparse.Namespace, rows: dict[Shot, dict]) -> Outcome:
    statuses = [row["status"] for row in rows.values()]
    counts = {name: statuses.count(name) for name in (DONE, SKIPPED)}
    failed = len(statuses) - sum(counts.values())
    shots = {shot.name: row for shot, row in rows.items()}
    return Outcome(
        [
            Figure("Shots", shots, str(len(rows))),
            Figure("Converted", counts[DONE]),
            Figure("Skipped", counts[SKIPPED], "{}, finished before"),
            Figure("Failed", failed),
        ],
        exit_code=1 if failed and options.on_failure == "fail" else 0,
        message=f"{failed} of {len(rows)} shots failed" if failed else "",
    )
