# SPDX-License-Identifier: GPL-3.0-or-later
"""`remove-rogue-weights`: vertices that follow a bone far from its other ones, put right."""

import bpy

from ....blender import background
from ....ui.command_line import arguments
from ....ui.command_line.common import find_object, progress_of
from ....ui.command_line.outcome import Outcome, Row
from .. import rogue_weights


def add(commands) -> None:
    remove = commands.add_parser(
        "remove-rogue-weights",
        help="correct vertices that follow a bone far from its other ones",
        description="Give rogue weights, of vertices that follow a bone far from its other ones, to the bones of the "
        "nearest valid vertices, and save the file. Doubtful ones and locked vertex groups stay.",
    )
    arguments.add_skinned_object(remove)
    remove.add_argument(
        "--include-doubtful",
        action="store_true",
        help="also correct weights that may be intentional: those that barely tear the surface, and those of whole "
        "loose parts",
    )
    arguments.add_target(remove)
    remove.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    object = find_object(context.scene, options.object)
    removed = background.drain(
        rogue_weights.remove(context, object, include_doubtful=options.include_doubtful), progress_of(options)
    )
    rows = [
        Row("Object", removed.object_name),
        Row("Vertices corrected", removed.vertices),
        Row("Islands", removed.islands),
        Row("Bones", removed.bones),
        Row("Locked islands", removed.locked),
        Row("Doubtful islands left", removed.doubtful),
    ]
    return Outcome(rows, removed.seconds)
