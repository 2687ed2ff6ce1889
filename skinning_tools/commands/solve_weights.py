# SPDX-License-Identifier: GPL-3.0-or-later
"""`solve-weights`: weights for bones that move already."""

from ..scene import partial_weights
from . import partial_solve
from .outcome import Outcome


def add(commands) -> None:
    solve = commands.add_parser(
        "solve-weights",
        help="weights for bones that move already",
        description="Solve for the weights with which the motion of an armature brings a mesh closest to an animation, "
        "and save the file.",
    )
    partial_solve.add_parts(solve)
    solve.add_argument(
        "--influences",
        type=int,
        default=4,
        metavar="N",
        help="most bones that may move one vertex (default: %(default)s)",
    )
    solve.add_argument(
        "--smoothness",
        type=float,
        default=0.0,
        metavar="S",
        help="from 0 to 1: how much of the error may be given for smooth weights (default: %(default)s)",
    )
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
