# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``convert-shots`` does for each shot: the subcommand with its arguments, and whether it is done already."""

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ...blender.animation.omissions import KINDS
from ...blender.written_files import identity
from ...ui.command_line.common import UsageError
from ...ui.command_line.fingerprints import Json, is_same
from ...ui.command_line.report import DONE, settings_of
from ...ui.command_line.report_reading import UnreadableReport, read_report
from ..convert import command as convert
from ..convert.settings import CONVERT
from .shots import Shot

# Values for reports of versions before these settings: those versions ignored omissions by Blender, and took object
# names literally.
_BEFORE: dict[str, Json] = {"allow_incomplete": ",".join(KINDS), "on_result": CONVERT}
# A newer setting; a report without it is of a run without it.
_LATER: dict[str, Json] = {"run_scripts": False, "clips": []}
# Settings of ``convert`` that are those of ``solve-transforms``, too.
_OF_MOTION = ("kind", "frame_start", "frame_end", "frame_step", "allow_incomplete")


@dataclass(frozen=True)
class Work:
    """What is done for each shot: the subcommand, its ``arguments`` for all shots, and its ``settings`` in a report.
    character: the file that it opens instead of the shot, with the shot as the clip."""

    command: str
    arguments: list[str]
    settings: dict[str, Json]
    character: Path | None = None

    def arguments_for(self, shot: Shot) -> list[str]:
        if self.character is None:
            return [self.command, *self.arguments, "--input", str(shot.path)]
        return [self.command, *self.arguments, f"--clip={shot.path}", "--input", str(self.character)]

    def settings_for(self, shot: Shot) -> dict[str, Json]:
        return self.settings if self.character is None else self.settings | {"clip": str(shot.path)}


def work_of(options: argparse.Namespace) -> Work:
    arguments = convert_arguments(options)
    parsed = options.parse(["convert", *arguments])
    if options.character is None:
        return Work("convert", arguments, settings_of(parsed))
    if len(parsed.object) != 1:
        raise UsageError("--character needs one --object, the skinned mesh of the character")
    given = {name: getattr(parsed, name) for name in ("object", *_OF_MOTION)} | {"object": parsed.object[0]}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value not in (None, "")]
    arguments += [f"--{name.replace('_', '-')}" for name in ("rotation_only", "run_scripts") if getattr(parsed, name)]
    settings = settings_of(options.parse(["solve-transforms", *arguments]))
    return Work("solve-transforms", arguments, settings, _character(options.character))


def _character(path: Path) -> Path:
    """The file itself, or the only .blend file in a folder. Raises UsageError."""
    if not path.is_dir():
        return path
    found = [each for each in path.glob("*.blend") if each.name[0] != "."]
    if len(found) != 1:
        raise UsageError(f"--character must name a .blend file, or a folder with only one: {path} has {len(found)}")
    return found[0]


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


def finished_report(shot: Shot, work: Work) -> dict | None:
    """The report of a finished shot, else None: anything else there means that the shot is converted again."""
    try:
        report = read_report(shot.report)
    except UnreadableReport:
        return None
    return report if is_finished(shot, report, work.settings_for(shot), work.character) else None


def is_finished(shot: Shot, report: dict, settings: dict, character: Path | None = None) -> bool:
    """Whether the report says that the shot is done, with these settings and from the present file, or as a clip from
    the present ``character``."""
    source, before = report["input"] or {}, _BEFORE | _LATER if character is None else {}
    command = "convert" if character is None else "solve-transforms"
    return (
        (report["command"], report["status"], before | report["settings"]) == (command, DONE, settings)
        and shot.output.is_file()
        and shot.path.is_file()
        and is_same(character or shot.path, source)
        and all(is_same(Path(other["path"]), other) for other in source.get("refers_to", ()))
    )


def is_earlier_failure(shot: Shot, report: dict) -> bool:
    """Whether the report says that this shot failed in a version that left no marks in logs."""
    source = report["input"] or {}
    return (
        report["command"] == "convert"
        and report["status"] != DONE
        and not _BEFORE.keys() <= report["settings"].keys()
        and "path" in source
        and identity(source["path"]) == identity(shot.path)
    )
