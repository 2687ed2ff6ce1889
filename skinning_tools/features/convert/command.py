# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert`: a mesh animation to bones, weights and keyframes."""

import argparse

import bpy

from ...blender import background
from ...blender.visibility import shown_for_good
from ...blender.written_files import Kind, Target, begins_with
from ...core.canvas import png_beginning
from ...core.curve_picture import HEIGHT, WIDTH
from ...core.errors import BadScene, SkinningError
from ...ui.command_line import arguments
from ...ui.command_line.common import UsageError, find_objects, progress_of
from ...ui.command_line.outcome import Outcome, Row
from . import conversion
from .chosen_sources import convert_chosen, sources_of
from .presets import find_preset, read_preset
from .settings import REPLACE, ConvertSettings, PresetSettings

PICTURE = Kind("picture of the curve", lambda path: begins_with(path, png_beginning(WIDTH, HEIGHT)))


def add(commands) -> None:
    convert = commands.add_parser(
        "convert",
        help="turn a mesh animation into bones, weights and keyframes",
        description="Turn the animation of a mesh into a skinned copy with an armature, weights and keyframes, "
        "and save the file.",
    )
    add_settings(convert)
    convert.add_argument(
        "--curve",
        type=arguments.WRITTEN,
        metavar="FILE.png",
        help="with --target-error: save the curve of error over bones as a picture",
    )
    arguments.add_target(convert)
    convert.set_defaults(run=_run)


class _Preset(argparse.Action):
    """Sets the options that a preset has values for, where the command line has not set them before."""

    def __call__(self, parser, namespace, name, option_string=None):
        try:
            values = read_preset(find_preset(name))
        except SkinningError as error:
            raise UsageError(f"--preset: {error}") from error
        for each, value in values.items():
            setting = PresetSettings.declared[each]
            if setting.kind == "Bool":
                # --no-rest-pose
                value = bool(value) != setting.default
            # Defaults are texts, which argparse reads at the end: what was given is another object, even where equal.
            if getattr(namespace, setting.dest) is parser.get_default(setting.dest):
                setattr(namespace, setting.dest, value)
        setattr(namespace, self.dest, name)


def add_settings(command) -> None:
    """The options that say what is made, for one file or for many."""
    command.add_argument(
        "--object",
        metavar="NAME",
        required=True,
        action="append",
        help="the mesh object that moves, or a pattern such as 'Flag*'; given several times, or where a pattern fits "
        "several: all of them to one armature, at the place of the first",
    )
    # Before all that it stands for, so that what is given besides wins when convert-shots hands all of it on.
    command.add_argument(
        "--preset",
        action=_Preset,
        metavar="NAME",
        help="settings to start from: Cloth, Creature, Face, 'Game Rigid', or one saved in the panel; other options "
        "change them",
    )
    ConvertSettings.add_options(command)


def _run(options) -> Outcome:
    picture = _picture_target(options)
    context = bpy.context
    settings = ConvertSettings(**ConvertSettings.of_options(options))
    sources = sources_of(find_objects(context.scene, options.object), settings.on_result)
    # A file that was saved with only an earlier result shown has them hidden.
    with shown_for_good(context, sources.sources):
        steps = convert_chosen(context, sources, settings, settings.on_result == REPLACE)
        result = background.drain(steps, progress_of(options))
    return Outcome(
        _rows(result),
        result.seconds,
        notes=result.notes,
        files={"curve": picture.path} if picture else {},
        afterwards=(lambda: _save_picture(result, picture)) if picture else None,
    )


def _picture_target(options) -> Target | None:
    """Where the curve is to go, checked before the work."""
    picture = options.curve
    if picture is None:
        return None
    if not options.target_error > 0:
        raise UsageError("--curve needs --target-error: without one, a single count of bones is solved")
    if picture.suffix.lower() != ".png":
        raise UsageError(f"--curve must name a .png file, not {picture.name}")
    return options.files.claim(picture, PICTURE, "Name another file with --curve")


def _save_picture(result: conversion.Conversion, picture: Target) -> None:
    from ...core.curve_picture import curve_picture

    try:
        picture.write(curve_picture(result.curve, result.target_error, result.bone_count))
    except OSError as error:
        raise BadScene(f"The curve could not be saved to {picture.path}: {error.strerror or error}") from error


def _part_rows(result: conversion.Conversion) -> list[Row]:
    """The error of each object, where there are several."""
    names = result.source_names if result.other_names else ()
    parts = zip(names, result.meter.parts if names else (), strict=True)
    return [Row(f"E_RMS of {name}", part.e_rms, f"{part.e_rms:.4f}", ("objects_e_rms", name)) for name, part in parts]


def _rows(result: conversion.Conversion) -> list[Row]:
    """The figures of a conversion."""
    names, hierarchy = result.source_names, result.rig.bones.hierarchy
    frames = {"count": len(result.frame_numbers), "first": result.frame_numbers[0], "last": result.frame_numbers[-1]}
    return [
        Row("Objects", list(names), ", ".join(names)) if len(names) > 1 else Row("Object", names[0]),
        Row("Bones", result.bone_count),
        Row("Vertices", result.vertex_count),
        Row("Frames", frames, "{count} ({first:g} to {last:g})".format(**frames)),
        Row("E_RMS", result.meter.e_rms, f"{result.meter.e_rms:.4f}{result.missed}"),
        Row("Largest error", result.meter.max_error, f"{result.meter.max_error:.4f}"),
        *_part_rows(result),
        *([Row("Joints", int((hierarchy.parents >= 0).sum()))] if hierarchy is not None else []),
        *([Row("Keys", result.keys._asdict(), f"{result.keys.after} of {result.keys.before}")] if result.keys else []),
        *(
            Row(
                f"{point.bone_count} bones",
                {"e_rms": point.e_rms, "solved": point.solved},
                f"{'' if point.solved else 'about '}{point.e_rms:.4g}",
                ("curve", str(point.bone_count)),
            )
            for point in result.curve
        ),
    ]
