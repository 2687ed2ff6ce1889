# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert`: a mesh animation to bones, weights and keyframes."""

from pathlib import Path

import bpy

from ..scene import background, conversion, dependencies
from .common import ProgressLines, add_target, find_object, output_path, save, say, table


def add(commands) -> None:
    convert = commands.add_parser(
        "convert",
        help="turn a mesh animation into bones, weights and keyframes",
        description="Turn the animation of a mesh into a skinned copy with an armature, weights and keyframes, "
        "and save the file.",
    )
    convert.add_argument("--object", metavar="NAME", required=True, help="the mesh object that moves")
    convert.add_argument("--bones", type=int, default=20, metavar="N", help="number of bones (default: %(default)s)")
    convert.add_argument(
        "--kind",
        choices=("AFFINE", "SCALED", "RIGID"),
        type=str.upper,
        default="AFFINE",
        help="what the bones may do (default: %(default)s)",
    )
    convert.add_argument(
        "--influences",
        type=int,
        default=4,
        metavar="N",
        help="most bones that may move one vertex (default: %(default)s)",
    )
    convert.add_argument(
        "--iterations", type=int, default=15, metavar="N", help="rounds of improvement (default: %(default)s)"
    )
    convert.add_argument(
        "--target-error",
        type=float,
        default=0.0,
        metavar="E",
        help="E_RMS at which fewer bones are enough (default: not used)",
    )
    convert.add_argument("--no-rest-pose", action="store_true", help="keep the first frame as the rest pose")
    convert.add_argument("--frame-start", type=int, metavar="F", help="first frame (default: the scene's)")
    convert.add_argument("--frame-end", type=int, metavar="F", help="last frame (default: the scene's)")
    convert.add_argument(
        "--frame-step", type=int, default=1, metavar="N", help="convert every N-th frame (default: %(default)s)"
    )
    add_target(convert)
    convert.set_defaults(run=_run)


def _run(options) -> None:
    output = output_path(options)
    dependencies.require_dependencies()
    from ..core.decomposition import Settings

    context = bpy.context
    settings = Settings(
        bone_count=options.bones,
        bone_kind=options.kind,
        max_influences=options.influences,
        iterations=options.iterations,
        optimize_rest_pose=not options.no_rest_pose,
        target_error=options.target_error,
    )
    steps = conversion.convert(
        context,
        find_object(context.scene, options.object),
        settings,
        frame_start=options.frame_start,
        frame_end=options.frame_end,
        frame_step=options.frame_step,
    )
    result = background.drain(steps, None if options.quiet else ProgressLines())
    save(output)
    say(_figures(result, output))


def _figures(result: conversion.Conversion, output: Path) -> str:
    """The figures of a conversion as lines of name and value."""
    rows = [
        ("Object", result.source_name),
        ("Bones", str(result.bone_count)),
        ("Vertices", str(result.vertex_count)),
        ("Frames", f"{len(result.frame_numbers)} ({result.frame_numbers[0]:g} to {result.frame_numbers[-1]:g})"),
        ("E_RMS", f"{result.meter.e_rms:.4f}"),
        ("Largest error", f"{result.meter.max_error:.4f}"),
        *((f"Seconds to {name}", f"{value:.2f}") for name, value in result.seconds.items()),
        ("Saved to", str(output)),
    ]
    return table(rows)
