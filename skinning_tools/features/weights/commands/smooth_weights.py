# SPDX-License-Identifier: GPL-3.0-or-later
"""`smooth-weights`: weights smoothed over the surface."""

import bpy

from ....blender import background
from ....ui.command_line import arguments
from ....ui.command_line.common import UsageError, find_object, progress_of
from ....ui.command_line.outcome import Outcome, Row
from .. import weight_smoothing


def add(commands) -> None:
    smooth = commands.add_parser(
        "smooth-weights",
        help="smooth the weights of a skinned mesh",
        description="Smooth the weights of all bones over the surface of a skinned mesh, and save the file. "
        "Borders, creases, sums and locked vertex groups stay.",
    )
    arguments.add_skinned_object(smooth)
    smooth.add_argument(
        "--strength",
        type=arguments.number,
        default=0.5,
        metavar="S",
        help="how far a vertex goes to its neighbors' mean in an iteration, 0 to 1 (default: %(default)s)",
    )
    smooth.add_argument(
        "--iterations", type=arguments.whole_number, default=5, metavar="N", help="how often (default: %(default)s)"
    )
    smooth.add_argument(
        "--influences",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="most bones that may move one vertex (default: 4, or as many as the mesh has)",
    )
    smooth.add_argument("--vertex-group", default="", metavar="NAME", help="smooth as much as this group has weight")
    smooth.add_argument("--invert", action="store_true", help="smooth where the vertex group has no weight")
    smooth.add_argument("--no-creases", action="store_true", help="smooth over sharp and creased edges, too")
    arguments.add_target(smooth)
    smooth.set_defaults(run=_run)


def _run(options) -> Outcome:
    if options.invert and not options.vertex_group:
        raise UsageError("--invert goes with --vertex-group")
    context = bpy.context
    steps = weight_smoothing.smooth(
        context,
        find_object(context.scene, options.object),
        strength=options.strength,
        iterations=options.iterations,
        max_influences=options.influences,
        vertex_group=options.vertex_group,
        invert_vertex_group=options.invert,
        keep_creases=not options.no_creases,
    )
    smoothed = background.drain(steps, progress_of(options))
    rows = [
        Row("Object", smoothed.object_name),
        Row("Vertices smoothed", smoothed.changed),
        Row("Largest change", smoothed.largest, f"{smoothed.largest:.4f}"),
    ]
    return Outcome(rows, smoothed.seconds)
