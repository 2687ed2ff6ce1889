# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that several subcommands of the command line have."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from ...blender.animation.omissions import KINDS


@dataclass(frozen=True)
class PathType:
    """For argparse: the type of options that name a file or folder, of which the rule for written files is to know.

    written: the command writes it, or into it. pattern: a text that may stand for several files.
    """

    written: bool = False
    pattern: bool = False

    def __call__(self, text: str) -> Path | str:
        return text if self.pattern else named_path(text)


def named_path(text: str) -> Path:
    """The file or folder that a text of the command line names."""
    return Path(os.path.expanduser(text)).absolute()


def whole_number(text: str) -> int:
    """For argparse: as many digits as Blender's own properties hold."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no whole number") from None
    if not -LARGEST <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is too large a number")
    return number


def frame_number(text: str) -> int:
    """For argparse: the number of a frame that Blender has."""
    number = whole_number(text)
    if not -LAST_FRAME <= number <= LAST_FRAME:
        raise argparse.ArgumentTypeError(f"{text} is no frame: they go from {-LAST_FRAME} to {LAST_FRAME}")
    return number


def number(text: str) -> float:
    """For argparse: what single precision, in which Blender calculates, holds as well."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no number") from None
    if not abs(value) <= LARGEST_FLOAT:
        raise argparse.ArgumentTypeError(f"{text} is no number that can be used")
    return value if abs(value) >= LEAST_FLOAT else 0.0


LARGEST = 2**31 - 1
LARGEST_FLOAT, LEAST_FLOAT = 3e38, 1e-37
LAST_FRAME = 1_048_574

READ, READ_PATTERN, WRITTEN = PathType(), PathType(pattern=True), PathType(written=True)


def path_options(command) -> dict[str, str]:
    """Destination and name of each of a parser's options that names one file or folder."""
    # The only list of a parser's options that argparse has.
    actions = [each for each in command._actions if isinstance(each.type, PathType) and not each.type.pattern]
    return {action.dest: "".join(action.option_strings[:1]) or action.dest for action in actions}


def add_incomplete(command) -> None:
    """What may be missing from the shapes that are read from the scene."""
    command.add_argument(
        "--allow-incomplete",
        type=_kinds,
        default="",
        metavar="KIND,KIND",
        help="go on where Blender leaves something out of what is read, which is a failure otherwise: "
        f"{', '.join(KINDS)}, or all",
    )
    command.add_argument(
        "--run-scripts",
        action="store_true",
        help="let the file of --input, or each shot, run its scripts and drivers, as blender -y does: for files that "
        "you trust",
    )


def _kinds(text: str) -> str:
    """For argparse: kinds of omissions in their order."""
    given = name_list(text.lower())
    unknown = [kind for kind in given if kind not in (*KINDS, "all")]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no kind {unknown[0]}. Choose from {', '.join(KINDS)}, all")
    return ",".join(kind for kind in KINDS if kind in given or "all" in given)


def add_target(command) -> None:
    """What all commands share that change a file and save it."""
    command.add_argument(
        "--input",
        type=READ,
        metavar="FILE.blend",
        help="the file to work on (default: the one named before --command)",
    )
    command.add_argument("--output", type=WRITTEN, metavar="FILE.blend", help="where to save the result")
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="save over the file that was opened; with --output: over the file there, whoever wrote it",
    )
    command.set_defaults(saves=True)


def add_common(command) -> None:
    """What all commands share, whatever they do."""
    command.add_argument(
        "--report",
        type=WRITTEN,
        metavar="FILE.json",
        help="write settings, versions, figures and times to this file, failed or not",
    )
    command.add_argument(
        "--progress",
        choices=("lines", "openjd", "none"),
        default="lines",
        help="how progress is told: for people, by Open Job Description, or not (default: %(default)s)",
    )
    command.add_argument(
        "--quiet", action="store_const", const="none", dest="progress", help="the same as --progress none"
    )


def add_skinned_object(command) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")


def add_rig_object(command) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the armature, or a mesh that it deforms")


def add_enumeration(command, name: str, items, default, help: str) -> None:
    """One of an enumeration's items, written in small letters and with hyphens as well."""
    command.add_argument(
        name,
        choices=tuple(item[0] for item in items),
        type=lambda text: text.upper().replace("-", "_"),
        default=default,
        help=help,
    )


def add_range(command, of: str = "") -> None:
    """First and last frame; ``of``, what they are frames of."""
    command.add_argument(
        "--frame-start", type=frame_number, metavar="F", help=f"first frame{of} (default: the scene's)"
    )
    command.add_argument("--frame-end", type=frame_number, metavar="F", help=f"last frame{of} (default: the scene's)")


def add_frames(command, use: str, of: str = "") -> None:
    """``add_range``, and a step; ``use``, such as "convert", what is done with every N-th."""
    add_range(command, of)
    command.add_argument(
        "--frame-step", type=whole_number, default=1, metavar="N", help=f"{use} every N-th frame (default: %(default)s)"
    )


def name_list(text: str) -> tuple[str, ...]:
    """For argparse: names that are separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
