# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommand that binds meshes to an armature."""

import argparse
from collections.abc import Generator, Sequence
from typing import Any

import bpy

from ...blender.control_points import HOOKED_TYPES, SKIN_TYPES
from ...blender.preconditions import check_type, find_object
from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError
from .bind import Bound, bind
from .rigid_objects import Parented
from .settings import BindSettings
from .targets import Targets, armature_for


def _add_objects(command: argparse.ArgumentParser) -> None:
    arguments.add_objects(command, "a mesh or lattice, or with RIGID a curve or surface; may be repeated")
    command.add_argument(
        "--armature", metavar="NAME", help="the armature object (default: the mesh's own, or the only one in the scene)"
    )


def _find_meshes(scene: bpy.types.Scene, names: Sequence[str]) -> list:
    meshes = [find_object(scene, name) for name in dict.fromkeys(names)]
    for ob in meshes:
        check_type(ob, "Name meshes or lattices with --object", (*SKIN_TYPES, *HOOKED_TYPES))
    return meshes


def _check(options: argparse.Namespace) -> None:
    if (options.whole_parts or options.as_objects) and options.method != "RIGID":
        raise UsageError("--whole-parts and --as-objects require --method RIGID")
    of_volumes = {
        "--falloff-inside": options.falloff_inside,
        "--falloff-outside": options.falloff_outside,
        "--no-smoothing": options.no_smoothing,
    }
    if options.method != "CONTAINMENT" and any(of_volumes.values()):
        names = ", ".join(name for name, given in of_volumes.items() if given)
        raise UsageError(f"{names} require --method CONTAINMENT")
    idle = {
        "--influences": options.influences != BindSettings().max_influences,
        "--distance-limit": options.distance_limit,
        "--use-envelopes": options.use_envelopes,
    }
    if options.method == "RIGID" and any(idle.values()):
        names = ", ".join(name for name, given in idle.items() if given)
        raise UsageError(f"With --method RIGID each vertex follows its nearest bone: leave out {names}")
    for name, given in (
        ("--replace", options.replace),
        ("--selected-bones", options.selected_bones),
        ("--all-bones", options.all_bones),
        ("--whole-parts", options.whole_parts),
    ):
        if options.as_objects and given:
            raise UsageError(f"--as-objects makes no weights: leave out {name}")


def _bind(
    context: bpy.types.Context, meshes: Sequence[bpy.types.Object], armature: str, **given: Any
) -> Generator[tuple[float, str], None, Bound | Parented]:
    targets = Targets(tuple(meshes), armature_for(context, meshes[0], armature))
    return (yield from bind(context, targets, BindSettings(**given)))


COMMANDS = (
    Command(
        "bind",
        "bind a mesh to the bones of an armature",
        "Give meshes and lattices weights of an armature's deforming bones, in their rest pose or in the pose that the "
        "file shows, and save the file.",
        settings=BindSettings,
        work=_bind,
        add_object=_add_objects,
        find=_find_meshes,
        check=_check,
        more=lambda options: {"armature": options.armature or ""},
    ),
)
