# SPDX-License-Identifier: GPL-3.0-or-later
"""`compress-weights`: weights in steps of 8 or 16 bits, and what that costs."""

import bpy

from ....blender import background
from ....ui.command_line import arguments
from ....ui.command_line.common import find_object, progress_of
from ....ui.command_line.outcome import Outcome, Row
from .. import weight_compression


def add(commands) -> None:
    compress = commands.add_parser(
        "compress-weights",
        help="round weights to what 8 or 16 bits hold",
        description="Round the weights of a skinned mesh to whole steps of 8 or 16 bits with sums of exactly 1, "
        "measure how far that moves vertices over the animation, and save the file.",
    )
    arguments.add_skinned_object(compress)
    compress.add_argument(
        "--bits", type=arguments.whole_number, choices=(8, 16), default=8, help="of a weight (default: %(default)s)"
    )
    arguments.add_influences(compress)
    compress.add_argument(
        "--threshold",
        type=arguments.number,
        default=0.0,
        metavar="W",
        help="drop weights below this (default: %(default)s)",
    )
    arguments.add_frames(compress, "measure", " to measure")
    arguments.add_incomplete(compress)
    arguments.add_target(compress)
    compress.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    steps = weight_compression.compress(
        context,
        find_object(context.scene, options.object),
        bits=options.bits,
        max_influences=options.influences,
        threshold=options.threshold,
        frame_start=options.frame_start,
        frame_end=options.frame_end,
        frame_step=options.frame_step,
    )
    compressed = background.drain(steps, progress_of(options))
    figures = compressed.figures
    measured = [
        Row("Largest error", figures.largest, f"{figures.largest:.6g}"),
        Row("Mean error", figures.mean, f"{figures.mean:.6g}"),
        Row(
            "Worst vertex",
            {"vertex": figures.vertex, "frame": figures.frame},
            f"{figures.vertex} at frame {figures.frame}",
        ),
    ]
    rows = [
        Row("Object", compressed.object_name),
        Row("Vertices", figures.vertex_count),
        Row("Bits", figures.bits),
        Row("Influences", figures.influences),
        Row("Bytes per vertex", figures.byte_count),
        Row("Over the limit", figures.cut),
        *(measured if figures.frames else [Row("Largest error", None, "not measured: the armature is at rest")]),
        Row("Frames measured", figures.frames),
    ]
    return Outcome(rows, compressed.seconds, compressed.notes)
