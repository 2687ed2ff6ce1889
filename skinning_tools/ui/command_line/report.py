# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a subcommand as a JSON file, for the programs that start it (docs/command_line.md describes it)."""

import argparse
import json
import math
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from ...blender.written_files import Kind, Target
from .fingerprints import Json, fingerprint, trace
from .outcome import Outcome
from .versions import versions

SCHEMA, SCHEMA_VERSION = "skinning_tools.report", 1
DONE, FAILED, STOPPED = "done", "failed", "stopped"

# Options that control how a command runs, not what it makes.
NOT_SETTINGS = {"run", "command", "parse", "opens", "saves", "input", "output", "overwrite", "report", "progress"} | {
    "quiet", "files", "path_options"
}  # fmt: skip

# The beginning of a report, which identifies even a damaged one.
_BEGINNING = re.compile(rb'\s*\{\s*"schema"\s*:\s*"' + re.escape(SCHEMA.encode()) + rb'"')


class Report:
    """Collects the results; ``write`` saves them to a file, completely or not at all."""

    def __init__(self, target: Target, command: str, settings: dict):
        self.target = target
        self.command = command
        self.settings = settings
        self.input: dict | None = None  # the file that the work starts from, even if unreadable
        self.output: dict | None = None
        self.figures: dict = {}
        self.notes: list[str] = []
        self.files: dict[str, str] = {}
        self.stages: dict[str, float] = {}
        self._started = datetime.now(UTC)
        self._clock = time.perf_counter()

    def add_input(self, path: Path) -> None:
        """The open file, and the files that it refers to. Raises OSError."""
        self.input = fingerprint(path)
        self.input["refers_to"] = _referred_to()

    def add_output(self, path: Path) -> None:
        self.output = trace(path)

    def add_outcome(self, outcome: Outcome) -> None:
        """An ``outcome.Outcome``, and the files that the scene refers to since then, such as caches that were read."""
        if self.input is not None:
            known = self.input["refers_to"]
            paths = {other["path"] for other in known}
            known += [other for other in _referred_to() if other["path"] not in paths]
        self.figures, self.notes = outcome.figures(), list(outcome.notes)
        self.files = {name: str(path) for name, path in outcome.files.items()}
        seconds = outcome.seconds
        self.stages = dict(seconds) if isinstance(seconds, dict) else {} if seconds is None else {"work": seconds}

    def document(self, status: str, exit_code: int, message: str = "") -> dict:
        """The whole report for the file."""
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "command": self.command,
            "status": status,
            "exit_code": exit_code,
            "message": message,
            "settings": self.settings,
            "input": self.input,
            "output": self.output,
            "files": self.files,
            "figures": self.figures,
            "notes": self.notes,
            "times": {
                "started": self._started.isoformat(timespec="milliseconds"),
                "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "seconds": time.perf_counter() - self._clock,
                "stages": self.stages,
            },
            "versions": versions(),
        }

    def write(self, status: str, exit_code: int, message: str = "") -> None:
        """Save the report. Raises OSError; then there is none."""
        try:
            self.target.write(json_bytes(self.document(status, exit_code, message)))
        finally:
            self.target.forget_aside()


def _referred_to() -> list[dict[str, Json]]:
    others = {Path(other) for other in bpy.utils.blend_paths(absolute=True, packed=False, local=False)}
    return [trace(other) for other in sorted(others) if other.name]


def settings_of(options: argparse.Namespace) -> dict[str, Json]:
    """The settings of a command, defaults included, by the names of its options."""
    return {name: plain(value) for name, value in vars(options).items() if name not in NOT_SETTINGS}


def is_report(path: Path) -> bool:
    """Whether any version of the extension wrote the file, even if it is damaged. Raises OSError."""
    with path.open("rb") as file:
        return _BEGINNING.match(file.read(200)) is not None


def json_bytes(document: dict) -> bytes:
    """A document as the content of a file."""
    return text_bytes(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def text_bytes(text: str) -> bytes:
    """A text in UTF-8. Bytes of file names that are not valid UTF-8 are written as JSON escapes, such as \\udce9, from
    which Python restores the name."""
    return text.encode("utf-8", "backslashreplace")


def plain(value: Any) -> Json:
    """Numpy numbers, paths and tuples as JSON values; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


REPORT = Kind("report", is_report)
