# SPDX-License-Identifier: GPL-3.0-or-later
"""`remove-bone-links`: links and twist bones taken away again, and their weights given back."""

import bpy

from ....ui.command_line import arguments
from ....ui.command_line.common import find_armature, rows_removed
from ....ui.command_line.outcome import Outcome
from ..bone_links import remove_links
from ..joint_helper_rig import bones_to_clear


def add(commands) -> None:
    remove = commands.add_parser(
        "remove-bone-links",
        help="take bone links and twist bones away again",
        description="Remove links and twist bones with all that they added, give their weights back, and save the "
        "file.",
    )
    arguments.add_rig_object(remove)
    arguments.add_joints(remove, "all that there are")
    remove.add_argument("--mirror", action="store_true", help="those of the other side, too")
    arguments.add_target(remove)
    remove.set_defaults(run=_run)


def _run(options) -> Outcome:
    armature = find_armature(bpy.context.scene, options.object)
    names = bones_to_clear(armature, options.joints, options.all_joints, options.mirror)
    removed = remove_links(bpy.context, armature, names)
    return Outcome(rows_removed(removed))
