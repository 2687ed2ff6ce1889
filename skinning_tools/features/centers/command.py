# SPDX-License-Identifier: GPL-3.0-or-later
"""`bake-rotation-centers`: the center of rotation of each vertex, as an attribute."""

from ...blender.center_records import native_modifier
from ...ui.command_line.command import Command
from ...ui.command_line.outcome import Row
from . import modifier
from .settings import BakeAndPlaySettings


def _baked(result) -> list[Row]:
    count, playing = result.record.center_count, native_modifier(result.object)
    return [
        Row("Object", result.object.name),
        Row("Vertices", result.vertex_count),
        Row("With a center", count),
        Row("Without", result.vertex_count - count),
        *([Row("Modifier", playing.name)] if playing is not None else []),
    ]


COMMANDS = (
    Command(
        "bake-rotation-centers",
        "store the center that each vertex of a skinned mesh turns about",
        "Find the center of rotation of each vertex of a skinned mesh, store it as an attribute, and save the file.",
        settings=BakeAndPlaySettings,
        work=modifier.bake,
        rows=_baked,
    ),
)
