# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert-shots`: `convert` for many files, or a finished character's motion in many clips, each in a separate Blender
process."""

import argparse
import contextlib
import time
from collections import deque
from collections.abc import Generator
from typing import NamedTuple

from ...blender import dependencies
from ...blender.cache_clips import ENDINGS
from ...blender.figures import Figure
from ...blender.written_files import Target, remove_halves
from ...core.errors import BadPath
from ...ui.command_line.arguments import READ, WRITTEN, whole_number
from ...ui.command_line.blend_mark import RESULT
from ...ui.command_line.common import UsageError, progress_of
from ...ui.command_line.fingerprints import is_same
from ...ui.command_line.outcome import Outcome
from ...ui.command_line.report import DONE, FAILED, REPORT, Report, json_bytes
from ...ui.command_line.report_reading import UnreadableReport, read_report
from ...ui.command_line.running import EXIT_FAILED
from ...ui.command_line.saving import reason
from ...ui.command_line.stopping import held
from ...ui.command_line.terminal import say, shown
from ..convert import command as convert
from .blender_child import LOG, Child, end, end_text
from .shots import BLEND_FILES, Shot, add_shots, find_shots, numbered
from .table import aligned, shot_row
from .work import Work, finished_report, is_earlier_failure, work_of

POLL_SECONDS = 0.05
SKIPPED = "skipped"


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
        "--character",
        type=READ,
        metavar="FILE.blend",
        help="the shots are cache files, clips of --object in this file, which was converted, or of the only file in "
        "this folder: for each, solve for the motion of its bones alone, and save the character with that action",
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
    endings = ENDINGS if options.character else BLEND_FILES
    shots = numbered(find_shots(options.shots, folder, options.recursive, endings), options.only)
    work = work_of(options)
    if options.list:
        return Outcome([Figure(f"{number}", str(shot.path)) for number, shot in shots.items()])
    # What every shot would fail for is said once, before the first.
    dependencies.require_dependencies()
    if work.character is not None:
        if not work.character.is_file():
            raise UsageError(f"There is no file {work.character}, which --character names")
        options.files.keep(work.character, "the character")
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
        report = None if options.again else finished_report(shot, work)
        # In the order of the shots' numbers, whichever ends first.
        rows[shot] = shot_row(shot.name, report, SKIPPED) if report else {}
        if not report:
            waiting.append(shot)
        elif places[shot].log.is_own():
            # Left by a run that was killed after the shot was done.
            with contextlib.suppress(OSError, BadPath):
                places[shot].log.remove()
    converting = _Converting(options, work, places, len(waiting))
    with contextlib.closing(converting.run(waiting)) as ended:
        for shot, report in ended:
            rows[shot] = shot_row(shot.name, report)
    say(aligned(rows.values()))
    return _outcome(options, rows)


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

    def __init__(self, options: argparse.Namespace, work: Work, places: dict[Shot, _Places], count: int):
        self._work, self._places, self._count = work, places, count
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
            *self._work.arguments_for(shot), "--output", str(shot.output), "--report", str(shot.report),
            "--progress", "openjd",
        ]  # fmt: skip
        # Earlier versions left no mark in results and logs; then the report identifies them.
        with contextlib.suppress(UnreadableReport):
            report = read_report(shot.report)
            known = report["output"]
            places.output.allowed = places.output.allowed or (known is not None and is_same(shot.output, known))
            if is_earlier_failure(shot, report):
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
        report = Report(self._places[shot].report, self._work.command, self._work.settings_for(shot))
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
