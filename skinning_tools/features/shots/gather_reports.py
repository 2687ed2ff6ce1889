# SPDX-License-Identifier: GPL-3.0-or-later
"""`gather-reports`: the reports of many conversions in one table."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from ...blender.cache_clips import ENDINGS
from ...blender.figures import Figure
from ...blender.written_files import Target
from ...core.errors import BadScene
from ...ui.command_line.arguments import READ, READ_PATTERN, WRITTEN
from ...ui.command_line.common import UsageError
from ...ui.command_line.fingerprints import Json
from ...ui.command_line.outcome import Outcome
from ...ui.command_line.report import DONE, text_bytes
from ...ui.command_line.report_reading import UnreadableReport, read_report
from ...ui.command_line.terminal import say
from .shots import BLEND_FILES, add_choice, find_shots, numbered
from .table import COMMANDS, MISSING, TABLE, UNREADABLE, aligned, comma_separated, row_without_report, shot_row


def add(commands: argparse._SubParsersAction) -> None:
    gather = commands.add_parser(
        "gather-reports",
        help="put the reports of many conversions into one table",
        description="Print the reports of convert and solve-transforms in a folder as one table. Ends with exit "
        "code 1 if one of the shots failed or has no report.",
    )
    gather.add_argument("folder", type=READ, metavar="FOLDER", help="the folder with the reports of convert-shots")
    gather.add_argument(
        "--shots",
        action="append",
        default=[],
        type=READ_PATTERN,
        metavar="SHOTS",
        help="the shots as given to convert-shots: the table lists only these, including those without a report",
    )
    add_choice(gather)
    gather.add_argument("--clips", action="store_true", help="these shots are cache files, clips of a --character")
    gather.add_argument("--output", type=WRITTEN, metavar="FILE.csv", help="also save the table to this file")
    gather.add_argument(
        "--overwrite", action="store_true", help="overwrite that file, even if this command did not write it"
    )
    gather.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> Outcome:
    folder = options.folder
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}")
    if options.only is not None and not options.shots:
        raise UsageError("--only requires --shots")
    table = _table_target(options)
    others: list[str] = []
    if options.shots:
        endings = ENDINGS if options.clips else BLEND_FILES
        shots = numbered(find_shots(options.shots, folder, options.recursive, endings), options.only)
        rows = [_row(shot.name, shot.report) for shot in shots.values()]
    else:
        rows = list(_rows(folder, options.recursive, others))
    if not rows:
        raise BadScene(f"There are no reports of conversions in {folder}")
    say(aligned(rows))
    if table is not None:
        table.save(text_bytes(comma_separated(rows)))
    failed = sum(row["status"] != DONE for row in rows)
    return Outcome(
        [Figure("Shots", {row["shot"]: row for row in rows}, str(len(rows))), Figure("Failed", failed)],
        notes=[f"Other reports, not in the table: {', '.join(others)}"] if others else (),
        files={"table": table.path} if table else {},
        exit_code=1 if failed else 0,
        message=f"{failed} of {len(rows)} shots failed or have no report" if failed else "",
    )


def _rows(folder: Path, recursive: bool, others: list[str]) -> Iterator[dict]:
    """The row of each conversion that has a report, readable or not. The names of other files go to ``others``."""
    for path in sorted(folder.rglob("*.json") if recursive else folder.glob("*.json")):
        if path.name[0] == ".":  # one that is being written
            continue
        name = path.relative_to(folder).with_suffix("").as_posix()
        try:
            report = read_report(path)
        except UnreadableReport as error:
            if not error.foreign:
                yield row_without_report(name, UNREADABLE, str(error))
                continue
            report = None
        if report is not None and report["command"] in COMMANDS:
            yield shot_row(name, report)
        else:
            others.append(path.name)


def _row(name: str, path: Path) -> dict[str, Json]:
    """The row of a shot, even if its report is not readable."""
    try:
        report = read_report(path)
    except UnreadableReport as error:
        return row_without_report(name, UNREADABLE if os.path.lexists(path) else MISSING, str(error))
    if report["command"] not in COMMANDS:
        return row_without_report(name, UNREADABLE, f"the report in its place is that of {report['command']}")
    return shot_row(name, report)


def _table_target(options: argparse.Namespace) -> Target | None:
    """The file for the table, checked before the work."""
    path = options.output
    if path is None:
        return None
    if path.suffix.lower() != ".csv":
        raise UsageError(f"--output must name a .csv file, not {path.name}")
    return options.files.claim(path, TABLE, "Name another file with --output", allowed=options.overwrite)
