# SPDX-License-Identifier: GPL-3.0-or-later
"""`compress-weights`: weights in steps of 8 or 16 bits, and what that costs."""

import bpy

from ..scene import background, dependencies, weight_compression
from .common import ProgressLines, add_target, find_object, output_path, save, say, table


def add(commands) -> None:
    compress = commands.add_parser(
        "compress-weights",
        help="round weights to what 8 or 16 bits hold",
        description="Round the weights of a skinned mesh to whole steps of 8 or 16 bits with sums of exactly 1, "
        "measure how far that moves vertices over the animation, and save the file.",
    )
    compress.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")
    compress.add_argument("--bits", type=int, choices=(8, 16), default=8, help="of a weight (default: %(default)s)")
    compress.add_argument(
        "--influences",
        type=int,
        default=4,
        metavar="N",
        help="most bones that may move one vertex (default: %(default)s)",
    )
    compress.add_argument(
        "--threshold", type=float, default=0.0, metavar="W", help="drop weights below this (default: %(default)s)"
    )
    compress.add_argument("--frame-start", type=int, metavar="F", help="first frame to measure (default: the scene's)")
    compress.add_argument("--frame-end", type=int, metavar="F", help="last frame to measure (default: the scene's)")
    compress.add_argument(
        "--frame-step", type=int, default=1, metavar="N", help="measure every N-th frame (default: %(default)s)"
    )
    add_target(compress)
    compress.set_defaults(run=_run)


def _run(options) -> None:
    output = output_path(options)
    dependencies.require_dependencies()
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
    compressed = background.drain(steps, None if options.quiet else ProgressLines())
    save(output)
    figures = compressed.figures
    measured = [
        ("Largest error", f"{figures.largest:.6g}"),
        ("Mean error", f"{figures.mean:.6g}"),
        ("Worst vertex", f"{figures.vertex} at frame {figures.frame}"),
    ]
    rows = [
        ("Object", compressed.object_name),
        ("Vertices", str(figures.vertex_count)),
        ("Bits", str(figures.bits)),
        ("Influences", str(figures.influences)),
        ("Bytes per vertex", str(figures.byte_count)),
        ("Over the limit", str(figures.cut)),
        *(measured if figures.frames else [("Largest error", "not measured: the armature is at rest")]),
        ("Frames measured", str(figures.frames)),
        ("Seconds", f"{compressed.seconds:.2f}"),
        ("Saved to", str(output)),
    ]
    say(table(rows))
