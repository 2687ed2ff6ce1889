# SPDX-License-Identifier: GPL-3.0-or-later
"""`remove-rogue-weights`: vertices that follow a bone far from its other ones, put right."""

import bpy

from ..scene import background, dependencies, rogue_weights
from .common import ProgressLines, add_target, find_object, output_path, save, say, table


def add(commands) -> None:
    remove = commands.add_parser(
        "remove-rogue-weights",
        help="correct vertices that follow a bone far from its other ones",
        description="Give rogue weights, of vertices that follow a bone far from its other ones, to the bones of the "
        "nearest valid vertices, and save the file. Locked vertex groups stay.",
    )
    remove.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")
    add_target(remove)
    remove.set_defaults(run=_run)


def _run(options) -> None:
    output = output_path(options)
    dependencies.require_dependencies()
    context = bpy.context
    object = find_object(context.scene, options.object)
    removed = background.drain(rogue_weights.remove(context, object), None if options.quiet else ProgressLines())
    save(output)
    rows = [
        ("Object", removed.object_name),
        ("Vertices corrected", str(removed.vertices)),
        ("Islands", str(removed.islands)),
        ("Bones", str(removed.bones)),
        ("Locked islands", str(removed.locked)),
        ("Seconds", f"{removed.seconds:.2f}"),
        ("Saved to", str(output)),
    ]
    say(table(rows))
