# SPDX-License-Identifier: GPL-3.0-or-later
"""`remove-bulge-bone`: bulge bones taken away again, and their weights given back."""

import bpy

from ....ui.command_line import arguments
from ....ui.command_line.common import find_armature, rows_removed
from ....ui.command_line.outcome import Outcome
from ..bulge_bones import remove_bulges
from ..joint_helper_rig import bones_to_clear


def add(commands) -> None:
    remove = commands.add_parser(
        "remove-bulge-bone",
        help="take bulge bones away again",
        description="Remove bulge bones with all that they added, give their weights back, and save the file.",
    )
    arguments.add_rig_object(remove)
    bones = remove.add_mutually_exclusive_group(required=True)
    bones.add_argument("--bones", metavar="BONE,BONE", help="bulge bones, or the bones that carry them")
    bones.add_argument("--all-bones", action="store_true", help="all that there are")
    remove.add_argument("--mirror", action="store_true", help="those of the other side, too")
    arguments.add_target(remove)
    remove.set_defaults(run=_run)


def _run(options) -> Outcome:
    armature = find_armature(bpy.context.scene, options.object)
    names = bones_to_clear(armature, options.bones, options.all_bones, options.mirror)
    removed = remove_bulges(bpy.context, armature, names)
    return Outcome(rows_removed(removed))
