# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads reports. Other versions, programs, editors and full disks may have changed the file, so its content is checked:
a report that is read has everything that the callers use, in the types that they expect."""

import json
import math
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .fingerprints import Json
from .report import DONE, FAILED, SCHEMA, SCHEMA_VERSION, STOPPED

# A report of ten thousand caches has about 2 MB.
MOST_BYTES = 32 << 20


class UnreadableReport(Exception):
    """Says why a file cannot be read as a report. foreign: it is an intact file of another kind."""

    def __init__(self, message: str, foreign: bool = False):
        super().__init__(message)
        self.foreign = foreign


def read_report(path: Path) -> dict:
    """The report in that file. Raises UnreadableReport."""
    document = _parsed(_content(path))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UnreadableReport("the file at its path is not a report", foreign=True)
    version = document.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise UnreadableReport(f"the report has another version than {SCHEMA_VERSION}")
    shape = _REPORT | {"figures": _FIGURES.get(str(document.get("command")), _REPORT["figures"])}
    fault = _fault(document, shape)
    if fault:
        raise UnreadableReport(f"the report is damaged: {fault}")
    return document


def _content(path: Path) -> bytes:
    try:
        status = path.stat()
        # Reading a pipe in place of a report would wait forever.
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
            raise UnreadableReport(f"its path is {kind}", foreign=True)
        if status.st_size > MOST_BYTES:
            raise UnreadableReport(f"the report is damaged: its size is {status.st_size / 1e6:.0f} MB")
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise UnreadableReport("the report cannot be read: it is a link to a file that is missing") from error
        raise UnreadableReport("there is no report") from error
    except (OSError, ValueError) as error:
        raise UnreadableReport(f"the report cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _parsed(data: bytes) -> Json:
    if not data.strip():
        raise UnreadableReport("the report is damaged: it is empty")
    try:
        # json detects the encoding of bytes: an editor may have saved another one, or a byte order mark.
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport("the report is damaged: it is not valid JSON, or incomplete") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _is_number(value: Json) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_path(value: Json) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_whole(value: Json) -> bool:
    return _is_number(value) and isinstance(value, int)


def _is_anything(value: Json) -> bool:
    return True


def _or_none(check: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda value: value is None or check(value)


def _one_of(*values: Json) -> Callable[[Json], bool]:
    return lambda value: any(type(value) is type(each) and value == each for each in values)


# A shape is a check of one value; {name: shape} for an object with these names, in which names with "?" are optional,
# and others are allowed; {"*": shape} for an object with any names; [shape] for a list; a tuple for one of several
# shapes.
_Shape = Callable[[Json], bool] | dict[str, "_Shape"] | list["_Shape"] | tuple["_Shape", ...]
_TRACE: dict[str, _Shape] = {"path": _is_path, "size": _or_none(_is_whole), "modified_ns": _or_none(_is_whole)}
_REPORT: dict[str, _Shape] = {
    "schema_version": _one_of(SCHEMA_VERSION),
    "command": _is_text,
    "status": _one_of(DONE, FAILED, STOPPED),
    "exit_code": _is_whole,
    "message": _is_text,
    "settings": {"*": _is_anything},
    "input": (
        _one_of(None),
        {"path": _is_path, "size?": _is_whole, "modified_ns?": _is_whole, "sha256?": _is_text, "refers_to?": [_TRACE]},
    ),
    "output": (_one_of(None), _TRACE),
    "files": {"*": _is_path},
    "figures": {"*": _is_anything},
    "notes": [_is_text],
    "times": {"started": _is_text, "ended": _is_text, "seconds": _is_number, "stages": {"*": _is_number}},
    "versions": {"*": _is_text},
}
# Missing after a failure.
_OF_SHOT: dict[str, _Shape] = {
    "object?": _is_text,
    "objects?": [_is_text],
    "bones?": _is_whole,
    "vertices?": _is_whole,
    "frames?": {"count": _is_whole},
    "e_rms?": _or_none(_is_number),
    "largest_error?": _or_none(_is_number),
}
# In reports of shots, by the command.
_FIGURES = {"convert": _OF_SHOT, "solve-transforms": _OF_SHOT | {"frames?": [_is_number]}}


def _fault(value: Json, shape: _Shape, name: str = "") -> str:
    """The part of the value that does not have the shape, or ""."""
    if isinstance(shape, tuple):
        faults = [_fault(value, each, name) for each in shape]
        # The fault for the last shape, which is the one with parts.
        return "" if "" in faults else faults[-1]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"its {name} is not a list"
        parts = [(each, shape[0], name) for each in value]
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"its {name} is not a table"
        if "*" in shape:
            parts = [(each, shape["*"], f"{name}.{key}") for key, each in value.items()]
        else:
            missing = [key for key in shape if not key.endswith("?") and key not in value]
            if missing:
                return f"it lacks {f'{name}.{missing[0]}'.lstrip('.')}"
            known = [(key.rstrip("?"), each) for key, each in shape.items()]
            parts = [(value[key], each, f"{name}.{key}".lstrip(".")) for key, each in known if key in value]
    else:
        return "" if shape(value) else f"its {name} has an invalid value"
    return next(filter(None, (_fault(*part) for part in parts)), "")
