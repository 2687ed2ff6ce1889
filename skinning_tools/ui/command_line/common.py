# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the subcommands: opening the input, claiming the output, finding objects, and reporting progress."""

import argparse
import fnmatch
from collections.abc import Callable
from pathlib import Path

import bpy

from ...blender.character import armature_at
from ...blender.preconditions import find_object
from ...blender.written_files import Target, WrittenFiles, identity
from ...core.errors import BadScene
from .blend_mark import BACKUP, RESULT
from .saving import backup_of, reason
from .stopping import check_stopped
from .terminal import say, shown

PROGRESS_STEP = 0.05


class UsageError(Exception):
    """The command line has an error."""


def open_input(path: Path, run_scripts: bool) -> None:
    """Open a .blend file. run_scripts: run its scripts even if Blender was started without them. Raises BadScene."""
    if not path.is_file():
        raise BadScene(f"There is no file {path}")
    try:
        scripts = {"use_scripts": True} if run_scripts else {}
        bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False, **scripts)
    except RuntimeError as error:
        # Blender's text has the path once or twice.
        why = reason(error).rpartition(str(path))[2].strip("\"',: ") or reason(error)
        raise BadScene(
            f"The file {path} cannot be opened: {why}. If it is damaged or incomplete, copy or save it again"
        ) from error


def input_path(options: argparse.Namespace) -> Path:
    """The file to work on. Raises UsageError if none is named."""
    if options.input:
        return options.input
    if getattr(options, "run_scripts", False):
        raise UsageError("--run-scripts requires --input. For a file that is named before --command, add -y there")
    if not bpy.data.filepath:
        raise UsageError(
            "No file is open. Name one: blender -b FILE.blend --command skinning COMMAND ..., or --input FILE.blend"
        )
    return Path(bpy.data.filepath)


def output_targets(options: argparse.Namespace, opened: Path, files: WrittenFiles) -> tuple[Target, Target | None]:
    """The targets for the result and for a backup of the file there, if any, checked before the work starts.

    Raises UsageError, BadPath.
    """
    if options.output is None:
        if not options.overwrite:
            raise UsageError(
                "Specify where to save: --output FILE.blend, or --overwrite to save over the file that was opened"
            )
        output = files.claim(opened, RESULT, "Use --output to save to another file", allowed=True)
    else:
        if options.output.suffix != ".blend":
            raise UsageError(f"--output must name a .blend file, not {options.output.name}")
        files.keep(opened, "the file that was opened")
        alone = identity(options.output) == identity(opened)
        hint = "Use --overwrite alone to save over it" if alone else "Name another file with --output"
        output = files.claim(options.output, RESULT, hint, allowed=options.overwrite)
    path = backup_of(output.real) if options.overwrite and output.real.exists() else None
    backup = files.claim(path, BACKUP, "Rename that file, or save to another one") if path is not None else None
    return output, backup


def find_objects(scene: bpy.types.Scene, names: list[str]) -> list:
    """The objects of those names; a name that no object has may be a pattern, which selects all matching meshes.

    Raises BadScene if there is none.
    """
    found: dict[str, bpy.types.Object] = {}
    for name in names:
        fitting = [ob for ob in scene.objects if ob.type == "MESH" and fnmatch.fnmatchcase(ob.name, name)]
        if name in scene.objects or not fitting:
            fitting = [find_object(scene, name)]
        found |= {ob.name: ob for ob in fitting}
    return list(found.values())


def find_armature(scene: bpy.types.Scene, name: str) -> bpy.types.Object:
    """The armature of that name, or the one that deforms the mesh of that name. Raises BadScene."""
    armature = armature_at(find_object(scene, name, ("ARMATURE", "MESH")))
    if armature is None:
        raise BadScene(f'The object "{name}" is not an armature, and no armature deforms it')
    return armature


def progress_of(options: argparse.Namespace) -> Callable[[float, str], None]:
    """The function that reports progress as requested. It raises Stopped after a signal to stop."""
    tellers: dict[str, Callable[[], Callable[[float, str], None] | None]] = {
        "lines": ProgressLines,
        "openjd": OpenJobProgress,
        "none": lambda: None,
    }
    tell = tellers[options.progress]()

    def progress(fraction: float, stage: str) -> None:
        check_stopped()
        if tell is not None:
            tell(fraction, shown(stage))

    return progress


class ProgressLines:
    """Prints a line whenever the stage changes or another part of the work is done."""

    def __init__(self) -> None:
        self._stage = ""
        self._fraction = -1.0

    def __call__(self, fraction: float, stage: str) -> None:
        if stage and (stage.split(":")[0] != self._stage or fraction >= self._fraction + PROGRESS_STEP):
            self._stage, self._fraction = stage.split(":")[0], fraction
            say(f"{fraction:5.0%}  {stage}")


class OpenJobProgress:
    """Prints progress for render managers that support Open Job Description (How Jobs Are Run, 2023-09)."""

    def __init__(self) -> None:
        self._stage = ""
        self._percent = -1.0

    def __call__(self, fraction: float, stage: str) -> None:
        if stage and stage != self._stage:
            self._stage = stage
            say(f"openjd_status: {stage}")
        percent = round(100 * min(max(fraction, 0.0), 1.0), 1)
        if percent >= self._percent + 1.0 or (percent == 100.0 and percent > self._percent):
            self._percent = percent
            say(f"openjd_progress: {percent:.1f}")
