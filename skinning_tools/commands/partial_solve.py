# SPDX-License-Identifier: GPL-3.0-or-later
"""What the subcommands of partial solves share."""

import bpy

from ..scene import background, dependencies
from ..scene.partial_steps import Frames, PartialResult
from .common import ProgressLines, add_target, find_object, output_path, save, say, table

KINDS = ("RIGID", "SCALED", "AFFINE")


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
    command.add_argument("--frame-start", type=int, metavar="F", help="first frame (default: the scene's)")
    command.add_argument("--frame-end", type=int, metavar="F", help="last frame (default: the scene's)")
    command.add_argument(
        "--frame-step", type=int, default=1, metavar="N", help="take every N-th frame (default: %(default)s)"
    )
    add_target(command)


def add_kind(command) -> None:
    command.add_argument(
        "--kind", choices=KINDS, type=str.upper, default="RIGID", help="what the bones may do (default: %(default)s)"
    )


def add_locked_vertices(command) -> None:
    command.add_argument(
        "--locked-vertices", metavar="GROUP", default="", help="a vertex group whose vertices keep all of their weights"
    )


def run(options, solve, **own) -> None:
    """Run ``solve``, a generator function of the scene package, with its ``own`` arguments; save and say what came."""
    output = output_path(options)
    dependencies.require_dependencies()
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
    result = background.drain(steps, None if options.quiet else ProgressLines())
    save(output)
    say(_figures(result, output))


def _figures(result: PartialResult, output) -> str:
    figures = result.figures
    before = [("E_RMS before", f"{figures.e_rms_before:.4f}")] if figures.e_rms_before >= 0 else []
    return table(
        [
            ("Object", result.object_name),
            ("Armature", figures.armature),
            ("Target", figures.target),
            ("Frames", f"{figures.frame_start:g} to {figures.frame_end:g}"),
            ("Done", result.done),
            *before,
            ("E_RMS", f"{figures.e_rms:.4f}"),
            ("Largest error", f"{figures.max_error:.4f}"),
            *(("Note", note) for note in result.notes),
            ("Saved to", str(output)),
        ]
    )
