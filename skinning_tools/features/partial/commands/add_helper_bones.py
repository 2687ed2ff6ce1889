# SPDX-License-Identifier: GPL-3.0-or-later
"""`add-helper-bones`: bones that correct what a rig's own leave over."""

from ....ui.command_line import arguments
from ....ui.command_line.outcome import Outcome
from .. import partial_helpers
from ..partial_settings import OWN_WEIGHT_ITEMS
from . import solve as partial_solve


def add(commands) -> None:
    helpers = commands.add_parser(
        "add-helper-bones",
        help="bones that correct what a rig's own leave over",
        description="Add bones to the armature of a mesh that bring it closer to an animation, and save the file. The "
        "bones that are there, and their keyframes, stay as they are.",
    )
    partial_solve.add_parts(helpers)
    helpers.add_argument(
        "--bones", type=arguments.whole_number, default=4, metavar="N", help="number of helpers (default: %(default)s)"
    )
    arguments.add_bone_kind(helpers, "RIGID", "SCALED", "AFFINE")
    helpers.add_argument(
        "--influences",
        type=arguments.whole_number,
        default=8,
        metavar="N",
        help="most bones of a vertex, its own included (default: %(default)s)",
    )
    arguments.add_enumeration(
        helpers,
        "--own-weights",
        OWN_WEIGHT_ITEMS,
        "KEEP",
        "whether the rig's own weights are only scaled or may change (default: %(default)s)",
    )
    partial_solve.add_locked_vertices(helpers)
    helpers.set_defaults(run=_run)


def _run(options) -> Outcome:
    return partial_solve.run(
        options,
        partial_helpers.add_helper_bones,
        bone_count=options.bones,
        bone_kind=options.kind,
        max_influences=options.influences,
        own_weights=options.own_weights,
        locked_vertices=options.locked_vertices,
    )
