# SPDX-License-Identifier: GPL-3.0-or-later
"""What the subcommands of the command line share: where to save, what to work on, and what they write."""

import sys
from pathlib import Path

import bpy

from ..core.errors import BadScene
from ..scene.character import armature_at

PROGRESS_STEP = 0.05


class UsageError(Exception):
    """The command line itself is wrong."""


def add_target(command) -> None:
    """What all commands that save share."""
    target = command.add_mutually_exclusive_group(required=True)
    target.add_argument("--output", metavar="FILE.blend", help="where to save the result")
    target.add_argument("--overwrite", action="store_true", help="save over the file that was opened")
    command.add_argument("--quiet", action="store_true", help="no progress lines")


def output_path(options) -> Path:
    """Where to save, checked before the work: a result that cannot be saved is wasted."""
    opened = Path(bpy.data.filepath) if bpy.data.filepath else None
    if opened is None:
        raise UsageError(
            "No file is open. Name one before --command: blender -b FILE.blend --command skinning COMMAND ..."
        )
    if options.overwrite:
        return opened
    output = Path(options.output).expanduser().absolute()
    if output.suffix != ".blend":
        raise UsageError(f"--output must name a .blend file, not {output.name}")
    if not output.parent.is_dir():
        raise UsageError(f"--output names a folder that does not exist: {output.parent}")
    if output.exists() and output.samefile(opened):
        raise UsageError("--output is the file that was opened. Use --overwrite to save over it")
    return output


def find_object(scene, name: str, kinds=("MESH",)):
    """The object of that name. Raises BadScene, which lists those of ``kinds``."""
    found = scene.objects.get(name)
    if found is None:
        words = " and ".join({"MESH": "meshes", "ARMATURE": "armatures"}[kind] for kind in kinds)
        known = ", ".join(ob.name for ob in scene.objects if ob.type in kinds) or "none"
        raise BadScene(f'There is no object "{name}" in scene "{scene.name}". Its {words}: {known}')
    return found


def find_armature(scene, name: str):
    """The armature of that name, or the one that deforms the mesh of that name. Raises BadScene."""
    armature = armature_at(find_object(scene, name, ("ARMATURE", "MESH")))
    if armature is None:
        raise BadScene(f'The object "{name}" is no armature, and none deforms it')
    return armature


def name_list(text: str) -> tuple[str, ...]:
    """For argparse: names that are separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def save(output: Path) -> None:
    try:
        bpy.ops.wm.save_as_mainfile(filepath=str(output), check_existing=False)
    except RuntimeError as error:
        raise BadScene(f"The result could not be saved to {output}: {error}") from error


class ProgressLines:
    """A line on the terminal whenever the stage changes or another part of the work is done."""

    def __init__(self):
        self._stage = ""
        self._fraction = -1.0

    def __call__(self, fraction: float, stage: str) -> None:
        if stage and (stage.split(":")[0] != self._stage or fraction >= self._fraction + PROGRESS_STEP):
            self._stage, self._fraction = stage.split(":")[0], fraction
            say(f"{fraction:5.0%}  {stage}")


def table(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def say_removed(removed, output: Path) -> None:
    """Print a ``scene.joint_helper_removal.Removed``."""
    say(
        table(
            [
                ("Armature", removed.armature_name),
                ("Removed", ", ".join(removed.joints)),
                ("Vertices painted since", str(removed.painted)),
                ("Saved to", str(output)),
            ]
        )
    )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_error(text: str) -> None:
    sys.stderr.write(f"Error: {text}\n")
    sys.stderr.flush()
