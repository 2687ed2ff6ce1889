# SPDX-License-Identifier: GPL-3.0-or-later
"""What the subcommands of partial solves share."""

import bpy

from ....blender import background
from ....ui.command_line import arguments
from ....ui.command_line.common import find_object, progress_of
from ....ui.command_line.outcome import Outcome, Row
from ..partial_steps import Frames


def add_parts(command) -> None:
    """The arguments of all three."""
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object that bones move")
    command.add_argument(
        "--armature", metavar="NAME", default="", help="the armature whose bones do (default: the mesh's own)"
    )
    command.add_argument(
        "--target",
        metavar="NAME",
        default="",
        help="an object with the same vertices that moves as the mesh should (default: the mesh's own animation)",
    )
    arguments.add_frames(command, "take")
    arguments.add_incomplete(command)
    arguments.add_target(command)


def add_locked_vertices(command) -> None:
    command.add_argument(
        "--locked-vertices", metavar="GROUP", default="", help="a vertex group whose vertices keep all of their weights"
    )


def run(options, solve, **own) -> Outcome:
    """Run ``solve``, a generator function of the scene package, with its ``own`` arguments; save and say what came."""
    context = bpy.context
    object = find_object(context.scene, options.object)
    # What is selected in the file says nothing here: only the names count.
    for other in context.view_layer.objects.selected[:]:
        other.select_set(False)
    steps = solve(
        context,
        object,
        armature=options.armature,
        target=options.target,
        frames=Frames(options.frame_start, options.frame_end, options.frame_step),
        **own,
    )
    result = background.drain(steps, progress_of(options))
    figures = result.figures
    frames = [figures.frame_start, figures.frame_end]
    before = figures.e_rms_before
    rows = [
        Row("Object", result.object_name),
        Row("Armature", figures.armature),
        Row("Target", figures.target),
        Row("Frames", frames, "{:g} to {:g}".format(*frames)),
        Row("Done", result.done),
        *([Row("E_RMS before", before, f"{before:.4f}")] if before >= 0 else []),
        Row("E_RMS", figures.e_rms, f"{figures.e_rms:.4f}"),
        Row("Largest error", figures.max_error, f"{figures.max_error:.4f}"),
    ]
    warning = [figures.warning] if figures.warning else []
    return Outcome(rows, notes=[*warning, *result.notes])
