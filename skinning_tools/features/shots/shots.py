# SPDX-License-Identifier: GPL-3.0-or-later
"""The shots on the command line, and the files that belong to each."""

import argparse
import codecs
import glob
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ...ui.command_line.arguments import READ_PATTERN
from ...ui.command_line.common import UsageError

LIST_SUFFIX = ".txt"
BLEND_FILES = (".blend",)


@dataclass(frozen=True)
class Shot:
    """One .blend file, or the cache file of a clip. name: of its result, report and log in ``folder``, without a
    suffix."""

    path: Path
    name: str
    folder: Path

    @property
    def output(self) -> Path:
        return self.folder / f"{self.name}.blend"

    @property
    def report(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"


def add_shots(command: argparse.ArgumentParser) -> None:
    """Add the options that name the shots."""
    command.add_argument(
        "shots",
        nargs="+",
        type=READ_PATTERN,
        metavar="SHOTS",
        help="a folder of .blend files, a file, a pattern such as 'shots/sc01_*.blend', or a .txt file with one path a "
        "line; several may be given",
    )
    add_choice(command)


def add_choice(command: argparse.ArgumentParser) -> None:
    """Add the options that choose among the shots."""
    command.add_argument("--recursive", action="store_true", help="include subfolders")
    command.add_argument("--only", metavar="NUMBERS", help="only the shots with these numbers, such as 1-3,7")


def find_shots(
    given: Iterable[str], folder: Path, recursive: bool = False, endings: Collection[str] = BLEND_FILES
) -> list[Shot]:
    """The shots in the order of their numbers, with results in ``folder``. endings: of their files.

    Files are in alphabetical order within a folder or pattern, and keep the order of a list. Raises UsageError for a
    folder without shots, for two results in the same file, and for a result that would replace its own source.
    """
    shots: dict[Path, Shot] = {}
    for text in given:
        for path, name in _named(text, folder, recursive, endings):
            shots.setdefault(path, Shot(path, name, folder))
    outputs: dict[Path, Path] = {}
    for shot in shots.values():
        other = outputs.setdefault(shot.output, shot.path)
        if other != shot.path:
            raise UsageError(
                f"Two shots would be saved to {shot.output}: {other} and {shot.path}. Convert them separately"
            )
        if shot.output.resolve() == shot.path.resolve():
            raise UsageError(f"The result of {shot.path} would replace it. --output must name another folder")
    return list(shots.values())


def numbered(shots: list[Shot], numbers: str | None) -> dict[int, Shot]:
    """The shots with the given numbers, from 1, such as "1-3,7" or, every other one, "1-9:2". Raises UsageError."""
    if numbers is None:
        return dict(enumerate(shots, 1))
    wanted: dict[int, Shot] = {}
    for part in numbers.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9})(?:\s*:\s*(\d{1,9}))?)?\s*", part, re.ASCII)
        if match is None:
            raise UsageError(f"--only takes numbers such as 1-3,7, not {numbers}")
        low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if not (1 <= low <= high <= len(shots) and step):
            raise UsageError(f"--only {numbers}: there are {len(shots)} shots, numbered from 1")
        wanted |= {number: shots[number - 1] for number in range(low, high + 1, step)}
    return wanted


def _named(text: str, folder: Path, recursive: bool, endings: Collection[str]) -> list[tuple[Path, str]]:
    """Path and name of each shot that one argument names."""
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        found = sorted(path.rglob("*") if recursive else path.iterdir())
        found = [file for file in found if file.suffix.lower() in endings and file.is_file()]
        # Results may lie in a subfolder of the shots' folder; a hidden file is still being written.
        found = [file for file in found if file.name[0] != "." and (folder == path or not file.is_relative_to(folder))]
        named = [(file, file.relative_to(path).with_suffix("").as_posix()) for file in found]
    elif path.suffix.lower() == LIST_SUFFIX:
        named = [(file, file.stem) for file in _listed(path)]
    elif path.suffix.lower() in endings and (path.exists() or not glob.has_magic(text)):
        # A missing file fails only its shot, not the others.
        named = [(path, path.stem)]
    else:
        named = [(Path(file), Path(file).stem) for file in sorted(glob.glob(str(path), recursive=True))]
    if not named:
        raise UsageError(f"There are no {', '.join(endings)} files in {text}")
    return named


def _listed(path: Path) -> list[Path]:
    """The files in a list, relative to its folder; empty lines and lines that begin with # are skipped."""
    try:
        # System file names need not be UTF-8; editors on Windows write a byte order mark.
        text = os.fsdecode(path.read_bytes().removeprefix(codecs.BOM_UTF8))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The list {path} cannot be read: {error}") from error
    if "\0" in text:
        raise UsageError(f"The list {path} cannot be read: it is not plain text in UTF-8")
    names = [line.strip() for line in re.split("[\r\n]+", text)]
    return [(path.parent / Path(name).expanduser()).absolute() for name in names if name and name[0] != "#"]
