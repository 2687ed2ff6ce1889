# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands that solve for an existing rig."""

import argparse
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import bpy

from ...blender.cache_clips import cache_clips
from ...blender.clip_tracks import leave_clip
from ...blender.conversions import conversions, result_of
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError, find_armature
from . import again, helper_removal, helpers, motion, new_root, weights
from .outcome import PartialResult
from .settings import AgainSettings, HelperSettings, MotionSettings, RemovalSettings, RootSettings, WeightSettings


def _add_object(command: argparse.ArgumentParser) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object that the bones deform")


def _named_alone(solve: Callable) -> Callable:
    """``solve`` with named objects only: the command line ignores the selection in the file."""

    def work(
        context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
    ) -> Generator[tuple[float, str], None, PartialResult]:
        for other in context.view_layer.objects.selected[:]:
            other.select_set(False)
        return (yield from solve(context, active, **given))

    return work


def _add_object_and_clip(command: argparse.ArgumentParser) -> None:
    _add_object(command)
    command.add_argument(
        "--clip",
        type=arguments.READ,
        metavar="FILE",
        help="follow this cache file of the mesh (Alembic, USD, PC2 or MDD) instead of a target, over its frames "
        "unless --frame-start or --frame-end is given. The action is named after the file",
    )


def _clip_of(options: argparse.Namespace) -> dict[str, Any]:
    if options.clip is not None and options.target:
        raise UsageError("Name a --target or a --clip, not both")
    return {"clip": options.clip}


def _solve_clip(
    context: bpy.types.Context, active: bpy.types.Object | None, clip: Path | None, **given: Any
) -> Generator[tuple[float, str], None, PartialResult]:
    """``solve_transforms``; of a cache file as the target the action gets the name and a track, as those of a
    conversion's clips have."""
    if clip is None:
        return (yield from motion.solve_transforms(context, active, **given))
    assert active is not None
    armature = armature_of(active)
    if armature is None:
        raise _without_bones(active)
    (target,), span = cache_clips(context, active, [clip])
    leave_clip(armature, active)
    for end, number in zip(("frame_start", "frame_end"), span, strict=True):
        given[end] = number if given[end] is None else given[end]
    return (yield from motion.solve_transforms(context, active, target.name, **given | {"target": target.name}))


def _without_bones(ob: bpy.types.Object) -> BadScene:
    """Why no clip can be solved for an object that no armature deforms: often the source of the conversion is named."""
    others = (result_of(each) for each in conversions())
    of_clips = (each for each in others if each is not None and each.figures.get("character") == ob.name)
    result = result_of(ob) or next(of_clips, None)
    if result is None or result.mesh is None:
        return BadScene(f'No armature deforms the object "{ob.name}". Name a skinned mesh with --object')
    return BadScene(
        f'The object "{ob.name}" is the source of a conversion, which no armature deforms. Name its result: '
        f'--object "{result.mesh.name}"'
    )


COMMANDS = (
    Command(
        "solve-weights",
        "solve for the weights of animated bones",
        "Solve for the weights with which the motion of an armature brings a mesh closest to an animation, and save "
        "the file.",
        settings=WeightSettings,
        work=_named_alone(weights.solve_weights),
        add_object=_add_object,
    ),
    Command(
        "solve-transforms",
        "solve for the keyframes of bones that have weights",
        "Solve for the keyframes with which a mesh, deformed by its weights, comes closest to an animation, and "
        "save the file. The keyframes go into a new action; the old one stays in the file.",
        settings=MotionSettings,
        work=_named_alone(_solve_clip),
        add_object=_add_object_and_clip,
        more=_clip_of,
    ),
    Command(
        "solve-again",
        "solve for the weights and keyframes of an edited skeleton",
        "Solve for the weights and keyframes with which the bones of a skeleton that was edited after its conversion "
        "bring the mesh closest to the source's animation, and save the file. Bones, names, parents and the joints "
        "that were placed stay.",
        settings=AgainSettings,
        work=_named_alone(again.solve_again),
        add_object=_add_object,
    ),
    Command(
        "make-root",
        "let another bone of a skeleton carry all others",
        "Let a bone carry all others: from it to the root, each bone hangs from its former child. Everything moves as "
        "before, in all actions of the armature. Save the file.",
        settings=RootSettings,
        work=new_root.make_root,
        add_object=arguments.add_rig_object,
        find=find_armature,
    ),
    Command(
        "add-helper-bones",
        "add bones that reduce the remaining error of a rig",
        "Add bones to the armature of a mesh that bring it closer to an animation, and save the file. Existing bones "
        "and their keyframes do not change.",
        settings=HelperSettings,
        work=_named_alone(helpers.add_helper_bones),
        add_object=_add_object,
    ),
    Command(
        "remove-helper-bones",
        "remove helper bones",
        "Remove the bones that add-helper-bones has added, with their keyframes and references to them, give their "
        "weights to the other bones of the same vertices, and save the file.",
        settings=RemovalSettings,
        work=helper_removal.remove_helper_bones,
        add_object=arguments.add_rig_object,
        find=find_armature,
    ),
)
