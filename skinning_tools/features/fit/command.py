# SPDX-License-Identifier: GPL-3.0-or-later
"""`fit-weights-to-pose`: weights that bring a mesh closest to a shape in a pose."""

import bpy

from ...blender import background
from ...ui.command_line import arguments
from ...ui.command_line.common import UsageError, find_object, progress_of
from ...ui.command_line.outcome import Outcome, Row
from . import weight_fit
from .weight_fit_settings import CANDIDATE_ITEMS

# Selected bones are a matter of the window: here they are named.
_CANDIDATES = tuple(item[0] for item in CANDIDATE_ITEMS if item[0] != "SELECTED")


def add(commands) -> None:
    fit = commands.add_parser(
        "fit-weights-to-pose",
        help="weights that bring a mesh closest to a shape in a pose",
        description="Fit the weights of a mesh so that its bones bring it as close as they can to a shape key or to "
        "another object in the present pose or in several frames, and save the file.",
    )
    arguments.add_skinned_object(fit)
    source = fit.add_mutually_exclusive_group()
    source.add_argument(
        "--target", metavar="NAME", help="an object with the same vertices, which is where the mesh should be"
    )
    source.add_argument("--shape-key", metavar="NAME", help="a shape key of the mesh, moved by the bones")
    source.add_argument("--copies", action="store_true", help="the posed copies that the file has (the default)")
    fit.add_argument(
        "--frame",
        type=arguments.frame_number,
        action="append",
        default=[],
        metavar="F",
        help="a frame whose pose counts; several may be given (default: the file's current frame)",
    )
    bones = fit.add_mutually_exclusive_group()
    bones.add_argument(
        "--candidates",
        choices=_CANDIDATES,
        type=str.upper,
        default="OWN",
        help="bones that may get weights: each vertex's own, those adjoining, all (default: %(default)s)",
    )
    bones.add_argument(
        "--bones", type=arguments.name_list, default=(), metavar="BONE,BONE", help="the bones that may get weights"
    )
    fit.add_argument(
        "--influences",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="most bones of a vertex (default: as many as some vertex has)",
    )
    fit.add_argument(
        "--threshold",
        type=arguments.number,
        default=0.0,
        metavar="D",
        help="vertices that are this close already keep their weights",
    )
    arguments.add_incomplete(fit)
    arguments.add_target(fit)
    fit.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    object = find_object(context.scene, options.object)
    source = "OBJECT" if options.target else "SHAPE_KEY" if options.shape_key else "COPIES"
    if options.frame and source == "COPIES":
        raise UsageError("Posed copies have poses of their own: --frame goes with --target or --shape-key")
    settings = weight_fit.FitSettings(
        source=source,
        target=options.target or "",
        shape_key=options.shape_key or "",
        candidates=options.candidates,
        max_influences=options.influences,
        threshold=options.threshold,
        bones=options.bones,
        frames=tuple(options.frame),
    )
    result = background.drain(weight_fit.fit(context, object, settings), progress_of(options))
    rows = [
        Row("Object", result.object_name),
        Row("Poses", result.poses),
        Row("Vertices fitted", result.count),
        Row("Out of reach", result.missed),
        Row("Mean distance left", result.mean, f"{result.mean:.6g}"),
        Row("Largest distance left", result.largest, f"{result.largest:.6g}, vertex {result.worst}"),
        Row("Worst vertex", result.worst),
    ]
    return Outcome(rows, notes=result.notes)
