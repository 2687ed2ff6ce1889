# SPDX-License-Identifier: GPL-3.0-or-later
"""Largest errors lowered at the cost of the mean: iteratively reweighted least squares.

A vertex whose largest error in any frame is above the others' counts for more, and then the bones are fitted again
(Lawson 1961: weights are multiplied by the errors that they leave, which leads to the least maximum). Bones of other
vertices then serve it, too.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse

from ..dense import product
from ..progress import Progress, span
from ..threads import for_each
from .bone_kinds import FinalBones
from .reduction import AnimationMatrix
from .sweeps import alternate, vertex_blocks
from .transforms import design_matrix
from .vertex_step import VertexState

_ROUNDS, _SWEEPS = 8, 2
# The power of the errors by which importances grow in one round, at full emphasis; and their range.
_POWER, _RANGE = 0.5, 1e4


def emphasized(
    matrix: AnimationMatrix,
    kind: FinalBones,
    rows: np.ndarray,
    state: VertexState,
    emphasis: float,
    optimize_rest_pose: bool,
    progress: Progress,
) -> tuple[np.ndarray, VertexState]:
    """Transforms and vertices after sweeps in which vertices count for more, the larger their largest errors are; those
    of the round with the least of these, at worst as they were.

    rows: Tᵀ (4P, 3F) in the unreduced animation; emphasis: from 0 to 1. Raises Cancelled.
    """
    importance = np.ones(len(state.points)) if state.importance is None else state.importance
    errors = largest_errors(matrix, rows, state)
    best = errors.max(), rows, state
    for number in range(_ROUNDS):
        part = span(progress, number / _ROUNDS, (number + 1) / _ROUNDS)
        importance = importance * (errors / max(errors.mean(), np.finfo(float).tiny)) ** (_POWER * emphasis)
        importance = np.maximum(importance, max(importance.max() / _RANGE, np.finfo(float).tiny))
        importance /= importance.mean()
        state = replace(state.copy(), importance=importance)
        rows, state, _ = alternate(kind, rows, state, range(1, 1 + _SWEEPS), optimize_rest_pose, part)
        errors = largest_errors(matrix, rows, state)
        best = min(best, (errors.max(), rows, state), key=lambda each: each[0])
    return best[1:]


def largest_errors(matrix: AnimationMatrix, rows: np.ndarray, state: VertexState) -> np.ndarray:
    """The largest distance (N,) of each vertex from its place in any frame, in solver units."""
    found = np.empty(len(state.points))

    def measure(part: slice) -> None:
        few = state.of(part)
        design = design_matrix(few.points, few.bones, few.weights, len(rows) // 4)
        made = design @ rows if scipy.sparse.issparse(design) else product(design, rows)
        apart = matrix.unweigh(made - matrix.rows(part)).reshape(len(made), -1, 3)
        found[part] = np.sqrt(np.einsum("nfi,nfi->nf", apart, apart).max(axis=1))

    for_each(measure, vertex_blocks(len(found)), lambda part, nothing: None)
    return found
