# SPDX-License-Identifier: GPL-3.0-or-later
"""`build-eigenskin`: corrective shape keys driven by the pose."""

import argparse
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import bpy

from ...blender.preconditions import find_object
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError
from . import build, example_sources
from .settings import CommandSettings, FrameSettings


def _check(options: argparse.Namespace) -> None:
    reads = (options.frame_start is not None, options.frame_end is not None, options.frame_step != 1)
    if any((*reads, options.all_frames)) and not options.examples_from:
        raise UsageError("Frames are read only with --examples-from: name the object with the correct shape")


def _build(
    context: bpy.types.Context,
    mesh_object: bpy.types.Object,
    examples_from: str = "",
    **settings: Any,
) -> Generator[tuple[float, str], None, build.Built]:
    """Generator: ``build.build``, after reading examples from the object of that name, if any."""
    frames = {each: settings.pop(each) for each in FrameSettings.declared}
    switches = ("normals", "show_normals", "half_rotation")
    build.checked_settings(**{name: value for name, value in settings.items() if name not in switches})
    if not examples_from:
        return (yield from build.build(context, mesh_object, **settings))
    source = find_object(context.scene, examples_from)
    added = yield from example_sources.add_frames(context, mesh_object, **frames, source=source)
    built = yield from build.build(context, mesh_object, **settings)
    return replace(built, added_count=len(added.names), notes=(*added.notes, *built.notes))


COMMANDS = (
    Command(
        "build-eigenskin",
        "correct a skinned mesh by shape keys driven by its pose",
        "Make shape keys, driven by the bones, that correct a skinned mesh to match its examples, and save the file.",
        settings=CommandSettings,
        work=_build,
        check=_check,
    ),
)
