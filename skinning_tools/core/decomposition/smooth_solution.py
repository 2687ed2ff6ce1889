# SPDX-License-Identifier: GPL-3.0-or-later
"""A solved decomposition with smooth weights: weights and motion in turn."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..progress import Progress, ignore, span
from .partial import Given, WeightProblem
from .partial_transforms import skin_equations
from .reduction import AnimationMatrix
from .smoothness import neighbor_weights
from .transforms import NormalEquations, from_rows, to_rows
from .vertex_step import VertexState
from .weight_problem import WORTH_SMOOTHING

# Rounds, and the share that a sweep over the weights must save in each: the motion changes before the last one.
_WORTH_IT = 5.0 * WORTH_SMOOTHING, WORTH_SMOOTHING


def smooth_solution(
    matrix: AnimationMatrix,
    triangles: np.ndarray,
    transforms: np.ndarray,
    follow: Callable[[NormalEquations, np.ndarray], np.ndarray],
    state: VertexState,
    amount: float,
    progress: Progress = ignore,
    squared_error: float | None = None,
) -> tuple[np.ndarray, VertexState]:
    """``transforms`` (F, P, 3, 4) and ``state`` with weights smooth by ``amount``, from 0 to 1, in solver units.

    follow: the motion Tᵀ (4P, 3F) for the equations of vertices by their importance, from the last one. Rest positions
    stay.
    squared_error: the ‖TX − A‖² by which the weights may move the vertices in proportion; by default that of the given
    skin. Raises Cancelled.
    """
    bone_count, vertex_count = transforms.shape[1], len(state.points)
    influences = state.bones.shape[1]
    free = Given(state.bones, state.weights, np.zeros(bone_count, bool), np.zeros(vertex_count, bool))
    rows = to_rows(transforms)
    problem = WeightProblem.of(matrix, state.points, rows, influences, free)
    problem.start_from(state.bones, state.weights)
    strength = problem.balanced(neighbor_weights(state.points[:, :3], triangles), amount, squared_error)
    bones, weights = state.bones, state.weights
    for number, worth_it in enumerate(_WORTH_IT):
        part = span(progress, number / len(_WORTH_IT), (number + 1) / len(_WORTH_IT))
        problem.smooth(strength, span(part, 0.0, 0.9), worth_it)
        bones, weights = problem.result()
        skin = state.points, bones, weights, bone_count
        equations = skin_equations(matrix, *skin, span(part, 0.9, 1.0), state.importance)
        rows = follow(equations, rows)
        problem.move(rows)
    return from_rows(rows), replace(state, bones=bones, weights=weights)
