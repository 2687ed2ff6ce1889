# SPDX-License-Identifier: GPL-3.0-or-later
"""`bake-rotation-centers`: the center of rotation of each vertex, as an attribute."""

import bpy

from ...blender import background
from ...blender.center_records import native_modifier
from ...ui.command_line import arguments
from ...ui.command_line.common import find_object, progress_of
from ...ui.command_line.outcome import Outcome, Row
from . import crs_modifier, rotation_centers


def add(commands) -> None:
    bake = commands.add_parser(
        "bake-rotation-centers",
        help="store the center that each vertex of a skinned mesh turns about",
        description="Find the center of rotation of each vertex of a skinned mesh, store it as an attribute, "
        "and save the file.",
    )
    arguments.add_skinned_object(bake)
    bake.add_argument(
        "--sigma",
        type=arguments.number,
        default=0.1,
        metavar="S",
        help="how alike weights must be to share a center (default: %(default)s)",
    )
    bake.add_argument(
        "--subdivision-epsilon",
        type=arguments.number,
        default=0.1,
        metavar="E",
        help="sum faces whose weights differ by more in finer pieces, 0 none (default: %(default)s)",
    )
    bake.add_argument(
        "--attribute",
        default=rotation_centers.DEFAULT_ATTRIBUTE,
        metavar="NAME",
        help="where to store the centers (default: %(default)s)",
    )
    bake.add_argument("--symmetrize", action="store_true", help="mirror the centers of vertices that mirror across X")
    bake.add_argument("--add-modifier", action="store_true", help="deform by the centers: Blender 5.1 or newer")
    arguments.add_target(bake)
    bake.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    object = find_object(context.scene, options.object)
    if options.add_modifier:
        crs_modifier.check_addable(context, object)
    crs_modifier.check_updatable(context, object)
    steps = rotation_centers.bake(
        context,
        object,
        sigma=options.sigma,
        subdivision_epsilon=options.subdivision_epsilon,
        attribute_name=options.attribute,
        symmetrize=options.symmetrize,
    )
    bake = background.drain(steps, progress_of(options))
    if options.add_modifier:
        crs_modifier.add(context, object)
    else:
        crs_modifier.update(context, object)
    modifier = native_modifier(object)
    rows = [
        Row("Object", bake.object_name),
        Row("Vertices", bake.vertex_count),
        Row("With a center", bake.record.center_count),
        Row("Without", bake.vertex_count - bake.record.center_count),
        *([Row("Modifier", modifier.name)] if modifier is not None else []),
    ]
    return Outcome(rows, bake.seconds)
