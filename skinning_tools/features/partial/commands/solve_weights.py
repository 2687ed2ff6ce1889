# SPDX-License-Identifier: GPL-3.0-or-later
"""`solve-weights`: weights for bones that move already."""

from ....ui.command_line import arguments
from ....ui.command_line.outcome import Outcome
from .. import partial_weights
from . import solve as partial_solve


def add(commands) -> None:
    solve = commands.add_parser(
        "solve-weights",
        help="weights for bones that move already",
        description="Solve for the weights with which the motion of an armature brings a mesh closest to an animation, "
        "and save the file.",
    )
    partial_solve.add_parts(solve)
    arguments.add_influences(solve)
    arguments.add_smoothness(solve)
    partial_solve.add_locked_vertices(solve)
    solve.set_defaults(run=_run)


def _run(options) -> Outcome:
    return partial_solve.run(
        options,
        partial_weights.solve_weights,
        max_influences=options.influences,
        smoothness=options.smoothness,
        locked_vertices=options.locked_vertices,
    )
