# SPDX-License-Identifier: GPL-3.0-or-later
"""`bake-rotation-centers`: the center of rotation of each vertex, as an attribute."""

import bpy

from ..scene import background, crs_modifier, dependencies, rotation_centers
from ..scene.skin_reader import native_modifier
from .common import ProgressLines, add_target, find_object, output_path, save, say, table


def add(commands) -> None:
    bake = commands.add_parser(
        "bake-rotation-centers",
        help="store the center that each vertex of a skinned mesh turns about",
        description="Find the center of rotation of each vertex of a skinned mesh, store it as an attribute, "
        "and save the file.",
    )
    bake.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")
    bake.add_argument(
        "--sigma",
        type=float,
        default=0.1,
        metavar="S",
        help="how alike weights must be to share a center (default: %(default)s)",
    )
    bake.add_argument(
        "--subdivision-epsilon",
        type=float,
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
    add_target(bake)
    bake.set_defaults(run=_run)


def _run(options) -> None:
    output = output_path(options)
    dependencies.require_dependencies()
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
    bake = background.drain(steps, None if options.quiet else ProgressLines())
    if options.add_modifier:
        crs_modifier.add(context, object)
    else:
        crs_modifier.update(context, object)
    save(output)
    modifier = native_modifier(object)
    rows = [
        ("Object", bake.object_name),
        ("Vertices", str(bake.vertex_count)),
        ("With a center", str(bake.record.center_count)),
        ("Without", str(bake.vertex_count - bake.record.center_count)),
        *([("Modifier", modifier.name)] if modifier is not None else []),
        ("Seconds", f"{bake.seconds:.2f}"),
        ("Saved to", str(output)),
    ]
    say(table(rows))
