# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert`: a mesh animation to bones, weights and keyframes."""

import argparse
from typing import Any

import bpy

from ...blender import background
from ...blender.cache_clips import cache_clips, clip_files
from ...blender.visibility import shown_for_good
from ...blender.written_files import Kind, Target, begins_with
from ...core.canvas import png_beginning
from ...core.curve_picture import HEIGHT, WIDTH
from ...core.errors import SkinningError
from ...ui.command_line import arguments
from ...ui.command_line.common import UsageError, find_objects, progress_of
from ...ui.command_line.outcome import Outcome
from . import conversion
from .chosen_sources import convert_chosen, sources_of
from .settings import PRESETS, REPLACE, ConvertSettings, PresetSettings

PICTURE = Kind("picture of the curve", lambda path: begins_with(path, png_beginning(WIDTH, HEIGHT)))


def add(commands: argparse._SubParsersAction) -> None:
    convert = commands.add_parser(
        "convert",
        help="turn a mesh animation into bones, weights and keyframes",
        description="Turn the animation of a mesh into a skinned copy with an armature, weights and keyframes "
        "and save the file.",
    )
    add_settings(convert)
    convert.add_argument(
        "--curve",
        type=arguments.WRITTEN,
        metavar="FILE.png",
        help="with --target-error: save a plot of the error over the number of bones",
    )
    arguments.add_target(convert)
    convert.set_defaults(run=_run)


class _Clips(argparse.Action):
    """Collect the cache files; a folder stands for those in it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        paths: Any,
        option_string: str | None = None,
    ) -> None:
        try:
            named = [*getattr(namespace, self.dest), *(each for path in paths for each in clip_files(path))]
        except SkinningError as error:
            raise UsageError(f"--clips: {error}") from error
        setattr(namespace, self.dest, list(dict.fromkeys(named)))


class _Preset(argparse.Action):
    """Set the options that a preset has values for, unless the command line has set them already."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        name: Any,
        option_string: str | None = None,
    ) -> None:
        try:
            values = PRESETS.read(PRESETS.find(name))
        except SkinningError as error:
            raise UsageError(f"--preset: {error}") from error
        for each, value in values.items():
            setting = PresetSettings.declared[each]
            if setting.kind == "Bool":
                # --no-rest-pose
                value = bool(value) != setting.default
            # argparse parses default strings at the end: a given value is a different instance, even if equal.
            if getattr(namespace, setting.dest) is parser.get_default(setting.dest):
                setattr(namespace, setting.dest, value)
        setattr(namespace, self.dest, name)


def add_settings(command: argparse._ActionsContainer) -> None:
    """Add the options for the conversion itself, shared by one file and many."""
    arguments.add_objects(
        command,
        "the animated mesh object, or a pattern such as 'Flag*'; if repeated, or if a pattern matches several: convert "
        "all to one armature at the location of the first",
    )
    # Before the options that it sets, so that explicit options win when convert-shots passes them all on.
    command.add_argument(
        "--preset",
        action=_Preset,
        metavar="NAME",
        help="settings to start from: Cloth, Creature, Face, 'Game Rigid', or a preset saved in the panel; other "
        "options override it",
    )
    command.add_argument(
        "--clips",
        nargs="+",
        action=_Clips,
        type=arguments.READ,
        default=[],
        metavar="FILE",
        help="convert these cache files of the object's mesh (Alembic, USD, PC2 or MDD), or all in a folder, instead "
        "of its own animation, as clips named after the files, over the frames of the longest unless --frame-start or "
        "--frame-end is given",
    )
    ConvertSettings.add_options(command)


def _run(options: argparse.Namespace) -> Outcome:
    picture = _picture_target(options)
    context = bpy.context
    given = ConvertSettings.of_options(options)
    found = find_objects(context.scene, options.object)
    if options.clips:
        if len(found) != 1:
            raise UsageError("--clips needs one --object, the mesh that the cache files are of")
        found, (start, end) = cache_clips(context, found[0], options.clips)
        given |= {
            "as_clips": len(found) > 1,
            "frame_start": start if given.get("frame_start") is None else given["frame_start"],
            "frame_end": end if given.get("frame_end") is None else given["frame_end"],
        }
    settings = ConvertSettings(**given)
    sources = sources_of(found, settings.on_result)
    # A file saved with only an earlier result shown has its sources hidden.
    with shown_for_good(context, sources.sources):
        steps = convert_chosen(context, sources, settings, settings.on_result == REPLACE)
        result = background.drain(steps, progress_of(options))
    return Outcome(
        result.figures(),
        result.seconds,
        notes=result.notes,
        files={"curve": picture.path} if picture else {},
        afterwards=(lambda: _save_picture(result, picture)) if picture else None,
    )


def _picture_target(options: argparse.Namespace) -> Target | None:
    """The file for the curve, checked before the work."""
    picture = options.curve
    if picture is None:
        return None
    if not options.target_error > 0:
        raise UsageError("--curve needs --target-error: without it, only one number of bones is solved")
    if picture.suffix.lower() != ".png":
        raise UsageError(f"--curve must name a .png file, not {picture.name}")
    return options.files.claim(picture, PICTURE, "Name another file with --curve")


def _save_picture(result: conversion.Conversion, picture: Target) -> None:
    from ...core.curve_picture import curve_picture
    from ...core.decomposition.target_error import CurvePoint

    curve, target = result.record["curve"], result.record["settings"]["target_error"]
    points = list(map(CurvePoint, curve["bone_count"], curve["e_rms"], curve["solved"]))
    picture.save(curve_picture(points, target, result.record["bone_count"]))
