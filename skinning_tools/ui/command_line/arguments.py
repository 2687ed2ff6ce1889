# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of several subcommands of the command line."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from ...blender.animation.omissions import KINDS


@dataclass(frozen=True)
class PathType:
    """For argparse: the type of options that name a file or folder, so that the rules for written files apply to it.

    written: the command writes it, or into it. pattern: the text may match several files.
    """

    written: bool = False
    pattern: bool = False

    def __call__(self, text: str) -> Path | str:
        return text if self.pattern else named_path(text)


def named_path(text: str) -> Path:
    """The file or folder that a text of the command line names."""
    return Path(os.path.expanduser(text)).absolute()


def whole_number(text: str) -> int:
    """For argparse: a whole number in the range of Blender's properties."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number") from None
    if not -LARGEST <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is too large")
    return number


def frame_number(text: str) -> int:
    """For argparse: a frame number that Blender supports."""
    number = whole_number(text)
    if not -LAST_FRAME <= number <= LAST_FRAME:
        raise argparse.ArgumentTypeError(f"{text} is not a frame: frames go from {-LAST_FRAME} to {LAST_FRAME}")
    return number


def number(text: str) -> float:
    """For argparse: a number in the range of single precision, in which Blender calculates."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None
    if not abs(value) <= LARGEST_FLOAT:
        raise argparse.ArgumentTypeError(f"{text} is not a usable number")
    return value if abs(value) >= LEAST_FLOAT else 0.0


LARGEST = 2**31 - 1
LARGEST_FLOAT, LEAST_FLOAT = 3e38, 1e-37
LAST_FRAME = 1_048_574

READ, READ_PATTERN, WRITTEN = PathType(), PathType(pattern=True), PathType(written=True)


def path_options(command: argparse.ArgumentParser) -> dict[str, str]:
    """Destination and name of each of a parser's options that names files or folders, one by one."""
    # argparse has no public list of a parser's options.
    actions = [each for each in command._actions if isinstance(each.type, PathType) and not each.type.pattern]
    return {action.dest: "".join(action.option_strings[:1]) or action.dest for action in actions}


def add_incomplete(command: argparse._ActionsContainer) -> None:
    """Add the options for what may be missing from the shapes that are read from the scene."""
    command.add_argument(
        "--allow-incomplete",
        type=_kinds,
        default="",
        metavar="KIND,KIND",
        help="continue although Blender leaves something out of what is read, which otherwise is an error: "
        f"{', '.join(KINDS)}, or all",
    )
    command.add_argument(
        "--run-scripts",
        action="store_true",
        help="run the scripts and drivers of the file of --input, or of each shot, like blender -y: for files that "
        "you trust",
    )


def _kinds(text: str) -> str:
    """For argparse: kinds of omissions, in the order of KINDS."""
    given = name_list(text.lower())
    unknown = [kind for kind in given if kind not in (*KINDS, "all")]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no kind {unknown[0]}. Choose from {', '.join(KINDS)}, all")
    return ",".join(kind for kind in KINDS if kind in given or "all" in given)


def add_input(command: argparse.ArgumentParser) -> None:
    """Add the option of all commands that open a file."""
    command.add_argument(
        "--input",
        type=READ,
        metavar="FILE.blend",
        help="the file to work on (default: the one named before --command)",
    )
    command.set_defaults(opens=True)


def add_target(command: argparse.ArgumentParser) -> None:
    """Add the options of all commands that open a file, change it and save it."""
    add_input(command)
    command.add_argument("--output", type=WRITTEN, metavar="FILE.blend", help="where to save the result")
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="save over the file that was opened; with --output: over the file there, whoever wrote it",
    )
    command.set_defaults(saves=True)


def add_common(command: argparse.ArgumentParser) -> None:
    """Add the options of all commands."""
    command.add_argument(
        "--report",
        type=WRITTEN,
        metavar="FILE.json",
        help="write settings, versions, figures and times to this file, also after a failure",
    )
    command.add_argument(
        "--progress",
        choices=("lines", "openjd", "none"),
        default="lines",
        help="how to report progress: for people, as Open Job Description, or not at all (default: %(default)s)",
    )
    command.add_argument(
        "--quiet", action="store_const", const="none", dest="progress", help="the same as --progress none"
    )


def add_skinned_object(command: argparse.ArgumentParser) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")


def add_objects(command: argparse._ActionsContainer, help: str) -> None:
    command.add_argument("--object", metavar="NAME", required=True, action="append", help=help)


def add_skinned_objects(command: argparse.ArgumentParser) -> None:
    add_objects(command, "a mesh object that an armature deforms, or a pattern for several; may be repeated")


def add_rig_object(command: argparse.ArgumentParser) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the armature, or a mesh that it deforms")


def add_frames(command: argparse._ActionsContainer, use: str) -> None:
    """Add first and last frame, and a step. use: what is done with the frames, such as "convert"."""
    for end, which in (("start", "first"), ("end", "last")):
        command.add_argument(
            f"--frame-{end}", type=frame_number, metavar="F", help=f"{which} frame to {use} (default: the scene's)"
        )
    command.add_argument(
        "--frame-step", type=whole_number, default=1, metavar="N", help=f"{use} every N-th frame (default: %(default)s)"
    )


def name_list(text: str) -> tuple[str, ...]:
    """For argparse: names separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
