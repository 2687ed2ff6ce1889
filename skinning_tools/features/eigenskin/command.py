# SPDX-License-Identifier: GPL-3.0-or-later
"""`build-eigenskin`: corrective shape keys that the pose drives."""

from dataclasses import replace

from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError, find_object
from ...ui.command_line.outcome import Row
from . import build, example_sources
from .settings import CommandSettings, FrameSettings


def _check(options) -> None:
    reads = (options.frame_start is not None, options.frame_end is not None, options.frame_step != 1)
    if any((*reads, options.all_frames)) and not options.examples_from:
        raise UsageError("Frames are read with --examples-from only: name the object that has the right shape")


def _build(context, object, normals: bool, examples_from: str = "", **settings):
    """Generator: ``build.build``, after reading examples from the object of that name, if any."""
    frames = {each: settings.pop(each) for each in FrameSettings.declared}
    build.checked_settings(**settings)
    if not examples_from:
        return (yield from build.build(context, object, normals, **settings))
    source = find_object(context.scene, examples_from)
    added = yield from example_sources.add_frames(context, object, **frames, source=source)
    built = yield from build.build(context, object, normals, **settings)
    return replace(built, added_count=len(added.names), notes=(*added.notes, *built.notes))


def _rows(built) -> list[Row]:
    name, vertex, distance = built.worst
    worst = {"vertex": vertex, "example": name, "distance": distance}
    return [
        Row("Object", built.object_name),
        *([Row("Examples added", built.added_count)] if built.added_count else []),
        Row("Examples", built.example_count),
        Row("Shape keys", built.written.shape_key_count),
        Row("Supports", built.written.support_count),
        Row("Error left", built.relative_error, f"{built.relative_error:.4f}"),
        Row("Worst vertex", worst, f"{vertex} in {name}, {distance:.6g}"),
    ]


COMMANDS = (
    Command(
        "build-eigenskin",
        "correct a skinned mesh by shape keys that its pose drives",
        "Make shape keys, driven by the bones, that correct a skinned mesh as its examples show, and save the file.",
        settings=CommandSettings,
        work=_build,
        rows=_rows,
        check=_check,
    ),
)
