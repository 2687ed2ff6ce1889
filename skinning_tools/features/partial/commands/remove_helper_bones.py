# SPDX-License-Identifier: GPL-3.0-or-later
"""`remove-helper-bones`: what `add-helper-bones` has added taken away again."""

import bpy

from ....ui.command_line import arguments
from ....ui.command_line.common import find_armature
from ....ui.command_line.outcome import Outcome, Row
from ..partial_helper_removal import remove_helper_bones


def add(commands) -> None:
    remove = commands.add_parser(
        "remove-helper-bones",
        help="take helper bones away again",
        description="Remove the bones that add-helper-bones has added, with their keyframes and what names them, give "
        "their weights to the other bones of the same vertices, and save the file.",
    )
    arguments.add_rig_object(remove)
    arguments.add_target(remove)
    remove.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    armature = find_armature(context.scene, options.object)
    removed = remove_helper_bones(context, context.scene.objects[options.object], armature.name)
    rows = [
        Row("Armature", removed.armature_name),
        Row("Removed", list(removed.helpers), ", ".join(removed.helpers)),
        Row("Vertices with new weights", removed.vertices),
    ]
    return Outcome(rows, notes=removed.notes)
