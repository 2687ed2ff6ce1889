# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of many conversions as one table."""

import csv
import io
from collections.abc import Iterable

from ...blender.written_files import Kind, begins_with
from ...ui.command_line.fingerprints import Json
from ...ui.command_line.terminal import shown

MISSING, UNREADABLE = "missing", "unreadable"

# What reports of shots are of.
COMMANDS = ("convert", "solve-transforms")
COLUMNS = (
    "shot",
    "status",
    "object",
    "bones",
    "vertices",
    "frames",
    "e_rms",
    "largest_error",
    "seconds",
    "notes",
    "message",
)


def shot_row(name: str, report: dict, status: str | None = None) -> dict[str, Json]:
    """One row, by ``COLUMNS``. report: of one of the ``COMMANDS``. status: overrides the report's."""
    figures = report["figures"]
    row = {column: figures.get(column) for column in ("object", "bones", "vertices", "e_rms", "largest_error")}
    row |= {"shot": name, "status": status or report["status"], "message": report["message"] or None}
    row |= {"notes": "; ".join(report.get("notes", ())) or None}
    row |= {"frames": _frame_count(report), "seconds": report["times"]["seconds"]}
    if "objects" in figures:
        row["object"] = ", ".join(figures["objects"])
    return {column: row[column] for column in COLUMNS}


def _frame_count(report: dict) -> int | None:
    frames, step = report["figures"].get("frames"), report["settings"].get("frame_step")
    if isinstance(frames, dict):
        return frames["count"]
    # Of a solve: the first and the last one.
    known = isinstance(frames, list) and len(frames) == 2 and isinstance(step, int) and step > 0
    return round((frames[1] - frames[0]) / step) + 1 if known else None


def row_without_report(name: str, status: str, message: str) -> dict[str, Json]:
    """The row of a shot without a readable report."""
    return {"shot": name, "status": status, "message": message}


def aligned(rows: Iterable[dict]) -> str:
    """The table for people: empty columns are left out."""
    lines = [[_text(row.get(column)) for column in COLUMNS] for row in rows]
    kept = [index for index in range(len(COLUMNS)) if any(line[index] for line in lines)]
    lines = [[COLUMNS[index].replace("_", " ").replace("e rms", "E_RMS") for index in kept]] + [
        [line[index] for index in kept] for line in lines
    ]
    widths = [max(len(line[index]) for line in lines) for index in range(len(kept))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def comma_separated(rows: Iterable[dict]) -> str:
    """The table for programs, with full precision."""
    # The first line also identifies a TABLE.
    lines = [COLUMNS, *([row.get(column) for column in COLUMNS] for row in rows)]
    return "".join(map(_comma_separated, lines))


def _comma_separated(cells: Iterable[Json]) -> str:
    """One line. Python before 3.13 quotes a carriage return in a name only if the line ending has one."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _text(value: Json) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else shown(str(value))


# Later versions may add columns after these.
TABLE = Kind("table", lambda path: begins_with(path, ",".join(COLUMNS[:6]).encode() + b","))
