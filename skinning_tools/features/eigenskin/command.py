# SPDX-License-Identifier: GPL-3.0-or-later
"""`build-eigenskin`: corrective shape keys that the pose drives."""

import math

import bpy

from ...blender import background
from ...ui.command_line import arguments
from ...ui.command_line.common import UsageError, find_object, progress_of
from ...ui.command_line.outcome import Outcome, Row
from . import eigenskin, example_sources


def add(commands) -> None:
    build = commands.add_parser(
        "build-eigenskin",
        help="correct a skinned mesh by shape keys that its pose drives",
        description="Make shape keys, driven by the bones, that correct a skinned mesh as its examples show, "
        "and save the file.",
    )
    arguments.add_skinned_object(build)
    build.add_argument(
        "--examples-from",
        metavar="NAME",
        help="first read examples from this object, frame by frame: another mesh with the same vertices, or the mesh "
        "itself with all its modifiers (default: use the examples that the file has)",
    )
    arguments.add_range(build, " of the examples")
    build.add_argument(
        "--frame-step",
        type=arguments.whole_number,
        default=1,
        metavar="N",
        help="an example every N frames (default: %(default)s)",
    )
    build.add_argument(
        "--all-frames",
        action="store_true",
        help="read all frames of the range, not only those that Pose Joints has marked, where there are any",
    )
    build.add_argument(
        "--components",
        type=arguments.whole_number,
        default=3,
        metavar="N",
        help="shape keys for each joint (default: %(default)s)",
    )
    build.add_argument(
        "--budget",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="shape keys in all, to the joints that need them most",
    )
    build.add_argument(
        "--support-threshold",
        type=arguments.number,
        default=0.04,
        metavar="S",
        help="share of a joint's largest displacement from which on vertices are corrected (default: %(default)s)",
    )
    build.add_argument(
        "--max-per-vertex",
        type=arguments.whole_number,
        default=10,
        metavar="N",
        help="most shape keys that may move one vertex (default: %(default)s)",
    )
    build.add_argument(
        "--radius",
        type=arguments.number,
        default=0.0,
        metavar="DEGREES",
        help="of the interpolation (default: automatic)",
    )
    build.add_argument(
        "--joint-pairs",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="most pairs of joints that get corrections of their own",
    )
    arguments.add_incomplete(build)
    build.add_argument("--normals", action="store_true", help="store corrections of the normals as attributes")
    arguments.add_target(build)
    build.set_defaults(run=_run)


def _run(options) -> Outcome:
    from ...core.eigenskin import EigenSkinSettings

    context = bpy.context
    object = find_object(context.scene, options.object)
    settings = {
        "components": options.components,
        "budget": options.budget,
        "support_threshold": options.support_threshold,
        "max_per_vertex": options.max_per_vertex,
        "radius": math.radians(options.radius),
        "joint_pairs": options.joint_pairs,
    }
    EigenSkinSettings(**settings).check()
    reads = (options.frame_start is not None, options.frame_end is not None, options.frame_step != 1)
    if any((*reads, options.all_frames)) and not options.examples_from:
        raise UsageError("Frames are read with --examples-from only: name the object that has the right shape")
    progress = progress_of(options)
    added_rows, added_notes = [], ()
    if options.examples_from:
        added = background.drain(
            example_sources.add_frames(
                context,
                object,
                options.frame_start,
                options.frame_end,
                options.frame_step,
                not options.all_frames,
                source=find_object(context.scene, options.examples_from),
            ),
            progress,
        )
        added_rows.append(Row("Examples added", len(added.names)))
        added_notes = added.notes
    built = background.drain(eigenskin.build(context, object, settings, options.normals), progress)
    name, vertex, distance = built.worst
    rows = [
        Row("Object", built.object_name),
        *added_rows,
        Row("Examples", built.example_count),
        Row("Shape keys", built.written.shape_key_count),
        Row("Supports", built.written.support_count),
        Row("Error left", built.relative_error, f"{built.relative_error:.4f}"),
        Row(
            "Worst vertex",
            {"vertex": vertex, "example": name, "distance": distance},
            f"{vertex} in {name}, {distance:.6g}",
        ),
    ]
    return Outcome(rows, built.seconds, (*added_notes, *built.notes))
