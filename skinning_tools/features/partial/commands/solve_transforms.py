# SPDX-License-Identifier: GPL-3.0-or-later
"""`solve-transforms`: keyframes for bones whose weights are there already."""

from ....ui.command_line import arguments
from ....ui.command_line.outcome import Outcome
from .. import partial_motion
from . import solve as partial_solve


def add(commands) -> None:
    solve = commands.add_parser(
        "solve-transforms",
        help="keyframes for bones whose weights are there already",
        description="Solve for the keyframes with which the bones of a mesh, by its weights, come closest to an "
        "animation, and save the file. They make a new action; the old one stays in the file.",
    )
    partial_solve.add_parts(solve)
    arguments.add_bone_kind(solve, "RIGID", "SCALED", "AFFINE")
    solve.add_argument(
        "--rotation-only", action="store_true", help="bones with a parent stay at their joints, and only turn there"
    )
    solve.set_defaults(run=_run)


def _run(options) -> Outcome:
    return partial_solve.run(
        options, partial_motion.solve_transforms, bone_kind=options.kind, rotation_only=options.rotation_only
    )
