# SPDX-License-Identifier: GPL-3.0-or-later
"""`gather-reports`: the reports of many conversions in one table."""

from pathlib import Path

from ..core.errors import BadScene
from ..scene.written_files import Target
from .arguments import READ, READ_PATTERN, WRITTEN
from .common import UsageError, say
from .outcome import Outcome, Row
from .report import DONE, read_report
from .shot_table import TABLE, aligned, comma_separated, shot_row
from .shots import add_choice, chosen, find_shots


def add(commands) -> None:
    gather = commands.add_parser(
        "gather-reports",
        help="put the reports of many conversions into one table",
        description="Print the reports of convert that a folder has as one table. Ends with exit code 1 where one of "
        "the shots failed or has no report.",
    )
    gather.add_argument(
        "folder", type=READ, metavar="FOLDER", help="where the reports are, as convert-shots leaves them"
    )
    gather.add_argument(
        "--shots",
        action="append",
        default=[],
        type=READ_PATTERN,
        metavar="SHOTS",
        help="the shots as given to convert-shots: the table has these alone, also those without a report",
    )
    add_choice(gather)
    gather.add_argument("--output", type=WRITTEN, metavar="FILE.csv", help="save the table to this file, too")
    gather.add_argument("--overwrite", action="store_true", help="save the table over the file there, whoever wrote it")
    gather.set_defaults(run=_run)


def _run(options) -> Outcome:
    folder = options.folder
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}")
    if options.only and not options.shots:
        raise UsageError("--only goes with --shots")
    table = _table_target(options)
    reports = dict(_reports(folder, options.recursive))
    shots = chosen(find_shots(options.shots, folder, options.recursive), options.only)
    names = [shot.name for shot in shots] or list(reports)
    if not names:
        raise BadScene(f"There are no reports of conversions in {folder}")
    rows = [shot_row(name, reports.get(name)) for name in names]
    say(aligned(rows))
    if table is not None:
        _save(table, comma_separated(rows))
    failed = sum(row["status"] != DONE for row in rows)
    return Outcome(
        [Row("Shots", {row["shot"]: row for row in rows}, str(len(rows))), Row("Failed", failed)],
        files={"table": table.path} if table else {},
        exit_code=1 if failed else 0,
        message=f"{failed} of {len(rows)} shots failed or have no report" if failed else "",
    )


def _reports(folder: Path, recursive: bool):
    """Name and report of each conversion."""
    for path in sorted(folder.rglob("*.json") if recursive else folder.glob("*.json")):
        report = read_report(path)
        if report is not None and report["command"] == "convert":
            yield path.relative_to(folder).with_suffix("").as_posix(), report


def _table_target(options) -> Target | None:
    """Where the table is to go, checked before the work."""
    path = options.output
    if path is None:
        return None
    if path.suffix.lower() != ".csv":
        raise UsageError(f"--output must name a .csv file, not {path.name}")
    return options.files.claim(path, TABLE, "Name another file with --output", allowed=options.overwrite)


def _save(table: Target, text: str) -> None:
    try:
        table.write(text.encode("utf-8"))
    except OSError as error:
        raise BadScene(f"The table could not be saved to {table.path}: {error.strerror or error}") from error
