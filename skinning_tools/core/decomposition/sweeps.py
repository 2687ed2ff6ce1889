# SPDX-License-Identifier: GPL-3.0-or-later
"""Alternating least squares: vertices for given bones, bones for given vertices (Kavan et al. 2010, section 4)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ..dense import product
from ..progress import Progress, checkpoint, ignore, span
from ..solve_memory import BLOCK_VERTICES, workers_at_once
from ..threads import for_each
from .bone_kinds import AnyBones
from .bone_model import BoneModel
from .reduction import AnimationMatrix, Rows
from .transforms import NormalEquations, design_matrix
from .vertex_step import VertexState, improve_vertices

# How far extrapolation goes at first, as a share of the last change of the transforms, and by which factor this share
# grows with each accepted sweep. Rest positions follow their own last change by half of the share: all of it would let
# them overshoot, as they are fitted to bones that move, too.
_FIRST_EXTRAPOLATION = 0.7
_LARGEST_EXTRAPOLATION = 2.5
_GROWTH = 1.2
_SHARE_OF_REST = 0.5


def vertex_blocks(count: int, size: int = BLOCK_VERTICES) -> list[slice]:
    """Slices that cover ``count`` vertices, in order: an even number of ``size``, then the rest in halves, so that two
    threads have as much to do."""
    whole = count // (2 * size) * 2
    rest = count - whole * size
    ends = [size * number for number in range(1, whole + 1)]
    if 2 * rest > size:
        ends.append(count - rest // 2)
    ends += [count] if rest else []
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def collect_equations(state: VertexState, source: Rows, bone_count: int) -> NormalEquations:
    """The normal equations of the transforms for the present vertices; source: gives ``rows`` of the data."""
    return over_blocks(state, source, bone_count, ignore, "", lambda part, data: None)


def sweep_vertices(
    model: BoneModel,
    state: VertexState,
    source: Rows,
    progress: Progress,
    stage: str,
    *,
    optimize_rest_pose: bool,
) -> NormalEquations:
    """Improve all vertices of ``state`` in place for the bones of ``model``; the normal equations of the result."""

    def improve(part: slice, data: np.ndarray) -> None:
        improve_vertices(model, data, state, part, optimize_rest_pose=optimize_rest_pose)

    return over_blocks(state, source, model.bone_count, progress, stage, improve)


def over_blocks(
    state: VertexState,
    source: Rows,
    bone_count: int,
    progress: Progress,
    stage: str,
    work: Callable[[slice, np.ndarray], None],
) -> NormalEquations:
    """Run ``work(part, data)`` on each block of vertices, and add up the normal equations of all, in their order.

    Several threads take blocks. Only the calling thread reports progress: a Cancelled raised there ends the others
    after the blocks that they have begun.
    """

    def run(part: slice) -> tuple[np.ndarray, NormalEquations]:
        data = source.rows(part)
        work(part, data)
        few = state.of(part)
        # A block of neighbors has few bones, and only their part of the equations.
        used = np.flatnonzero(np.bincount(few.bones.ravel(), minlength=bone_count))
        places = np.zeros(bone_count, dtype=few.bones.dtype)
        places[used] = np.arange(len(used))
        design = design_matrix(few.points, places[few.bones], few.weights, len(used))
        equations = NormalEquations(len(used), data.shape[1])
        equations.add(design, data, few.importance)
        return used, equations

    width = source.rows(slice(0, 1)).shape[1]
    total = NormalEquations(bone_count, width)

    def add(part: slice, found: tuple[np.ndarray, NormalEquations]) -> None:
        total.add_of_bones(*found)
        checkpoint(progress, part.stop / len(state.points), stage)

    for_each(run, vertex_blocks(len(state.points)), add, workers_at_once(width, 4 * bone_count))
    return total


def skin_errors(matrix: AnimationMatrix, rows: np.ndarray, state: VertexState, part: slice | np.ndarray) -> np.ndarray:
    """TX − A of the vertices ``part`` as rows (n, 3F), for transforms Tᵀ ``rows`` (4P, 3F)."""
    few = state.of(part)
    design = design_matrix(few.points, few.bones, few.weights, len(rows) // 4)
    made = design @ rows if scipy.sparse.issparse(design) else product(design, rows)
    return made - matrix.rows(part)


def alternate(
    kind: AnyBones,
    rows: np.ndarray,
    state: VertexState,
    sweeps: range,
    optimize_rest_pose: bool,
    progress: Progress,
    watch: Callable[[int, float], None] = lambda sweep, error: None,
) -> tuple[np.ndarray, VertexState, list[float]]:
    """The ``sweeps``, by their numbers from 0, from the transforms ``rows`` and ``state``.

    After each sweep the transforms and rest positions are extrapolated along their last change; if that does not
    lower the error, the sweep is undone and repeated without it, so the error never rises. The rest pose takes part
    from the second sweep of all on: in the first the weights are still those of the segmentation.
    Returns rows, state and ‖TX − A‖² − ‖A‖² after each sweep; ``watch`` is called with the latter, and may raise.
    """
    errors: list[float] = []
    factor, trial = _FIRST_EXTRAPOLATION, rows
    saved, positions = state.copy(), None
    for number in sweeps:
        done = len(errors)
        options = {
            "progress": span(progress, done / len(sweeps), (done + 1) / len(sweeps)),
            "stage": f"Iteration {number + 1}",
            "optimize_rest_pose": optimize_rest_pose and number > 0,
        }
        fitted, error = _sweep(kind, trial, state, **options)
        if trial is not rows and error > errors[-1]:
            state = saved
            factor *= 0.5
            fitted, error = _sweep(kind, rows, state, **options)
        errors.append(error)
        watch(number, error)
        change, rows = fitted - rows, fitted
        trial, saved = rows, state.copy()
        if 1 <= done < len(sweeps) - 1:
            trial = kind.extrapolate(rows, change, factor)
            if trial is not rows and positions is not None:
                state.points += _SHARE_OF_REST * factor * (state.points - positions)
            factor = min(_GROWTH * factor, _LARGEST_EXTRAPOLATION)
        positions = saved.points
    return rows, state, errors


def _sweep(kind: AnyBones, rows: np.ndarray, state: VertexState, **options: Any) -> tuple[np.ndarray, float]:
    equations = kind.of_source(sweep_vertices(kind.model(rows), state, kind.source, **options))
    fitted = kind.fit(equations, rows)
    return fitted, equations.squared_error(fitted)
