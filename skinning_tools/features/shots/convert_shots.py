# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert-shots`: `convert` for many files, each in a Blender of its own."""

import argparse
import contextlib
import shlex
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from ...blender.animation.omissions import KINDS
from ...blender.written_files import Target, identity, remove_halves
from ...core.errors import BadPath
from ...ui.command_line.arguments import WRITTEN, whole_number
from ...ui.command_line.blend_mark import RESULT
from ...ui.command_line.common import UsageError, progress_of
from ...ui.command_line.fingerprints import is_same
from ...ui.command_line.outcome import Outcome, Row
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

# What versions before these settings did, whose reports are without them: they took whatever Blender had left, and the
# object of that very name.
_BEFORE = {"allow_incomplete": ",".join(KINDS), "on_result": CONVERT}
# Later than those; a report without it is of a run without it.
_LATER = {"run_scripts": False}


def add(commands) -> None:
    command = commands.add_parser(
        "convert-shots",
        help="turn the animations of many files into bones, weights and keyframes",
        description="Convert the same objects of many .blend files with the same settings, each in a Blender of its "
        "own. Results, reports and the logs of what failed go into one folder. Shots whose report says that they are "
        "done, with the same settings and from the same file, are skipped, so that the same command goes on where it "
        "was stopped.",
    )
    add_shots(command)
    command.add_argument("--output", type=WRITTEN, metavar="FOLDER", required=True, help="where to save the results")
    command.add_argument("--overwrite", action="store_true", help="save over files in that folder, whoever wrote them")
    command.add_argument(
        "--jobs", type=whole_number, default=1, metavar="N", help="how many to convert at once (default: %(default)s)"
    )
    command.add_argument("--list", action="store_true", help="only print the shots with their numbers")
    command.add_argument("--again", action="store_true", help="convert finished shots, too")
    command.add_argument(
        "--on-failure",
        choices=("fail", "report"),
        default="fail",
        help="where shots fail: end with exit code 1 after the others, or with 0, as the reports say it "
        "(default: %(default)s)",
    )
    command.add_argument(
        "--settings",
        default="",
        metavar="TEXT",
        help="more options of convert in one text, for render managers that cannot leave an option out",
    )
    convert.add_settings(command.add_argument_group("what is made, as of convert"))
    command.set_defaults(run=_run)


def _run(options) -> Outcome:
    if options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    folder = options.output
    shots = numbered(find_shots(options.shots, folder, options.recursive), options.only)
    settings = convert_arguments(options)
    expected = settings_of(options.parse(["convert", *settings]))
    if options.list:
        return Outcome([Row(f"{number}", str(shot.path)) for number, shot in shots.items()])
    for shot in shots.values():
        options.files.keep(shot.path, "a shot that is converted")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder for the results cannot be made: {error}") from error
    places = {shot: _places(options, shot) for shot in shots.values()}

    rows = {}
    waiting = deque()
    for shot in shots.values():
        report = None if options.again else _finished_report(shot, expected)
        # In the order of their numbers, whichever ends first.
        rows[shot] = shot_row(shot.name, report, SKIPPED) if report else {}
        if not report:
            waiting.append(shot)
        elif places[shot].log.is_own():
            # Of a run that was killed after the shot was done.
            with contextlib.suppress(OSError, BadPath):
                places[shot].log.remove()
    converting = _Converting(options, settings, expected, places, len(waiting))
    with contextlib.closing(converting.run(waiting)) as ended:
        for shot, report in ended:
            rows[shot] = shot_row(shot.name, report)
    say(aligned(rows.values()))
    return _outcome(options, rows)


def convert_arguments(options) -> list[str]:
    """The options of ``convert`` among the given ones, as its command line. Raises UsageError."""
    parser = argparse.ArgumentParser(add_help=False)
    convert.add_settings(parser)
    arguments = []
    # The only list of a parser's options that argparse has.
    for action in parser._actions:
        value, name = getattr(options, action.dest), action.option_strings[0]
        if action.nargs == 0:
            arguments += [name] if value != action.default else []
        elif value is not None:
            arguments += [f"{name}={item}" for item in (value if isinstance(value, list) else [value])]
    return arguments + _more_settings(options)


def _more_settings(options) -> list[str]:
    """Those of --settings. Raises UsageError, also for an option that says how a conversion is run: each shot has its
    own file, result and report."""
    try:
        more = shlex.split(options.settings)
    except ValueError as error:
        raise UsageError(f"--settings: {error}") from error
    reader = _SettingsReader(add_help=False, usage=argparse.SUPPRESS)
    convert.add_settings(reader)
    reader.parse_args([*more, "--object=any"])
    return more


class _SettingsReader(argparse.ArgumentParser):
    def error(self, message: str):
        raise UsageError(f"--settings: {message}")


def _finished_report(shot: Shot, settings: dict) -> dict | None:
    """The report of a shot that is done. Whatever else is in its place costs this shot a conversion."""
    try:
        report = read_report(shot.report)
    except UnreadableReport:
        return None
    return report if is_finished(shot, report, settings) else None


def is_finished(shot: Shot, report: dict, settings: dict) -> bool:
    """Whether the report says that the shot is done, with these settings and from what is there now."""
    source = report["input"] or {}
    return (
        (report["command"], report["status"], _BEFORE | _LATER | report["settings"]) == ("convert", DONE, settings)
        and shot.output.is_file()
        and shot.path.is_file()
        and is_same(shot.path, source)
        and all(is_same(Path(other["path"]), other) for other in source.get("refers_to", ()))
    )


def _is_earlier_failure(shot: Shot, report: dict) -> bool:
    """Whether the report is that of a version before the marks in logs, which has failed on this very shot."""
    source = report["input"] or {}
    return (
        report["command"] == "convert"
        and report["status"] != DONE
        and not _BEFORE.keys() <= report["settings"].keys()
        and "path" in source
        and identity(source["path"]) == identity(shot.path)
    )


class _Places(NamedTuple):
    """Where the files of a shot go."""

    output: Target
    report: Target
    log: Target


def _places(options, shot: Shot) -> _Places:
    """Raises BadPath where a source or another shot's file is in one of the places; what else is there costs that shot
    alone, once it is its turn."""
    hint = "Choose another folder"
    kinds = (shot.output, RESULT), (shot.report, REPORT), (shot.log, LOG)
    return _Places(*(options.files.claim(path, kind, hint, options.overwrite, check=False) for path, kind in kinds))


class _Converting:
    """Runs conversions, several at once."""

    def __init__(self, options, settings: list[str], expected: dict, places: dict[Shot, _Places], count: int):
        self._settings, self._expected, self._places, self._count = settings, expected, places, count
        self._jobs = max(1, min(options.jobs, count))
        self._progress = progress_of(options)
        self._says_lines = options.progress == "lines"
        self._done = 0

    def run(self, waiting: deque[Shot]):
        """Generator: shot and report of each that has ended. Closing it, or an exception, ends those that run."""
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
        """Raises OSError where no Blender can be started, BadPath where something is in the place of its files."""
        places = self._places[shot]
        arguments = [
            "convert", *self._settings, "--input", str(shot.path), "--output", str(shot.output),
            "--report", str(shot.report), "--progress", "openjd",
        ]  # fmt: skip
        # Earlier versions left no mark in results and logs; but then the report tells of them.
        with contextlib.suppress(UnreadableReport):
            report = read_report(shot.report)
            known = report["output"]
            places.output.allowed |= known is not None and is_same(shot.output, known)
            if _is_earlier_failure(shot, report):
                places.log.allowed = True
                # Whatever else is in the way, the report that comes next cannot tell of it any more.
                places.log.remove()
        shot.report.parent.mkdir(parents=True, exist_ok=True)
        for place in places:
            place.check()
        if places.output.allowed:
            arguments.append("--overwrite")
        # The old report would be taken for that of this conversion.
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
        """Say it; returns the report."""
        self._done += 1
        if self._says_lines:
            seconds = report["times"]["seconds"]
            message = f": {report['message']}" if report["message"] else ""
            line = f"{shot.name}  {report['status']}, {seconds:.1f} s{message}"
            say(f"[{self._done}/{self._count}] {shown(line)}")
        return report

    def _failed(self, shot: Shot, exit_code: int, message: str) -> dict:
        """The report of a conversion that could not leave one itself. Its message says where none can be written."""
        report = Report(self._places[shot].report, "convert", self._expected)
        report.input = {"path": str(shot.path)}
        document = report.document(FAILED, exit_code, message)
        try:
            report.target.check()
            report.target.write(json_bytes(document))
        except (OSError, BadPath) as error:
            # What is in its place may be the very reason why the conversion was not started.
            why = "" if reason(error) in message else f": {reason(error)}"
            document["message"] = f"{message}. This shot has no report{why}"
        return document

    def _tell(self, running: dict[Shot, Child]) -> None:
        if self._progress is None or not running:
            return
        stage = ", ".join(f"{shot.name} {child.stage}".strip() for shot, child in running.items())
        fraction = (self._done + sum(child.fraction for child in running.values())) / self._count
        self._progress(fraction, stage)


def _outcome(options, rows: dict[Shot, dict]) -> Outcome:
    statuses = [row["status"] for row in rows.values()]
    counts = {name: statuses.count(name) for name in (DONE, SKIPPED)}
    failed = len(statuses) - sum(counts.values())
    shots = {shot.name: row for shot, row in rows.items()}
    return Outcome(
        [
            Row("Shots", shots, str(len(rows))),
            Row("Converted", counts[DONE]),
            Row("Skipped", counts[SKIPPED], f"{counts[SKIPPED]}, finished before"),
            Row("Failed", failed),
        ],
        exit_code=1 if failed and options.on_failure == "fail" else 0,
        message=f"{failed} of {len(rows)} shots failed" if failed else "",
    )
