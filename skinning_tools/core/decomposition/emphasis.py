# SPDX-License-Identifier: GPL-3.0-or-later
"""Largest errors lowered at little cost of the mean: a limit on the distance of every vertex in every frame.

The alternating direction method of multipliers (Boyd et al. 2011, section 3) in its scaled form: a vertex that breaks
the limit in some frame gets a copy of its errors that keeps it, and the skin is fitted to both its place and that copy.
What the two still differ by is added up, so that the copy asks for more in each sweep until the limit is kept. Weights
by the error alone (iteratively reweighted least squares) lower the largest error no further, at several times the cost
of the mean: they count for a vertex in all of its frames, and also below the limit.
"""

from dataclasses import replace

import numpy as np

from ..progress import Progress, span
from ..threads import for_each
from .bone_kinds import FinalBones
from .reduction import AnimationMatrix
from .sweeps import alternate, skin_errors, vertex_blocks
from .vertex_step import VertexState

_SWEEPS = 24
# By how much the limit is below the largest error, and by how much the squared error may rise, at full emphasis.
_LOWERED, _ALLOWED = 0.5, 0.15
# How much the copy of the errors counts beside a vertex's place.
_FIRMNESS = 40.0
# Of positions in single precision, in solver units: errors as small are none.
_ROUNDING = 1e-7
# A limit this nearly kept is kept. One that costs too much is raised, and what had been added up fades.
_KEPT, _RAISED, _FADED = 1.02, 1.03, 0.9


def emphasized(
    matrix: AnimationMatrix,
    kind: FinalBones,
    rows: np.ndarray,
    state: VertexState,
    emphasis: float,
    optimize_rest_pose: bool,
    progress: Progress,
) -> tuple[np.ndarray, VertexState, float, float]:
    """Transforms and vertices with less of a largest error; that error, and the squared error ‖TX − A‖².

    rows: Tᵀ (4P, 3F) in the unreduced animation; emphasis: from 0 to 1. Of all sweeps, the one with the least largest
    error among those whose root mean square has risen by no more than the emphasis allows; at worst all stays as it is.
    Errors count by the importance of their vertices. Raises Cancelled.
    """
    limits = _Limits(matrix, state.importance)
    largest, squared = limits.measure(rows, state)
    allowed = (1.0 + _ALLOWED * emphasis) ** 2 * squared
    limits.limit = (1.0 - _LOWERED * emphasis) * largest
    best = largest, squared, rows, state
    if largest <= _ROUNDING:
        return rows, state, largest, squared
    follower = kind.toward(limits, rows)
    for number in range(_SWEEPS):
        part = span(progress, number / _SWEEPS, (number + 1) / _SWEEPS)
        limits.update(rows, state)
        counted = replace(state.copy(), importance=limits.importance)
        rows, moved, _ = alternate(follower, rows, counted, range(1, 2), optimize_rest_pose, part)
        state = replace(moved, importance=state.importance)
        largest, squared = limits.measure(rows, state)
        if squared > allowed:
            limits.loosen()
        elif largest < best[0]:
            best = largest, squared, rows, state
            if largest <= _KEPT * limits.limit:
                break
    largest, squared, rows, state = best
    return rows, state, largest, squared


class _Limits:
    """The places that vertices are fitted to, and how much they count, so that no error is above ``limit``.

    importance (N,): of the vertices and of their copies together. ``limit`` is that of errors times the root of the
    vertices' own importance; all in solver units.
    """

    def __init__(self, matrix: AnimationMatrix, importance: np.ndarray | None):
        self._matrix, count = matrix, matrix.vertex_count
        self._own = np.ones(count) if importance is None else importance
        self._frames = matrix.weigh(np.ones((1, matrix.height)))[0, ::3]
        self.limit, self.importance = np.inf, self._own.copy()
        self._largest = np.zeros(count)
        # The vertices that have broken the limit: their places in the array that follows; -1 for all others.
        self._places = np.full(count, -1)
        # What their errors and the sums came to; all else follows from these and the limit that they were taken at.
        self._wanted = np.zeros((0, matrix.height), np.float32)
        self._taken_at, self._faded = 0.0, 1.0

    def rows(self, part: slice | np.ndarray) -> np.ndarray:
        """(n, 3F) what the vertices ``part`` are fitted to."""
        rows, places = self._matrix.rows(part), self._places[part]
        limited = places >= 0
        if limited.any():
            rows = rows.copy()
            wanted, sums = self._wanted_and_sums(np.arange(len(self._own))[part][limited])
            rows[limited] += _FIRMNESS / (1.0 + _FIRMNESS) * (wanted - 2.0 * sums)
        return rows

    def measure(self, rows: np.ndarray, state: VertexState) -> tuple[float, float]:
        """The largest error, by which the limit is meant, and ‖TX − A‖² by the vertices' own importance."""
        found = np.empty((2, len(self._own)))

        def measure(part: slice) -> None:
            squares = (
                np.square(skin_errors(self._matrix, rows, state, part)).reshape(-1, len(self._frames), 3).sum(axis=2)
            )
            found[:, part] = (squares / self._frames**2).max(axis=1), squares.sum(axis=1)

        for_each(measure, vertex_blocks(len(self._own)))
        self._largest = np.sqrt(self._own * found[0])
        return float(self._largest.max()), float(self._own @ found[1])

    def update(self, rows: np.ndarray, state: VertexState) -> None:
        """Take new copies of the errors of vertices that broke the limit when they were measured, or before."""
        self._include(np.flatnonzero((self._largest > self.limit) & (self._places < 0)))
        limited = np.flatnonzero(self._places >= 0)
        for block in vertex_blocks(len(limited)):
            part = limited[block]
            places = self._places[part]
            self._wanted[places] = (
                skin_errors(self._matrix, rows, state, part) + self._faded * self._wanted_and_sums(part)[1]
            )
        self._taken_at, self._faded = self.limit, 1.0

    def loosen(self) -> None:
        self.limit *= _RAISED
        self._faded *= _FADED

    def _wanted_and_sums(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, 3F) each, of limited vertices: errors and sums together, and the part of them beyond the limit."""
        wanted = self._wanted[self._places[vertices]].astype(float)
        lengths = np.linalg.norm(wanted.reshape(len(wanted), -1, 3), axis=2)
        most = self._taken_at * self._frames / np.sqrt(self._own[vertices, None])
        kept = np.minimum(1.0, most / np.where(lengths > 0, lengths, np.inf))
        return wanted, wanted * np.repeat(1.0 - kept, 3, axis=1)

    def _include(self, vertices: np.ndarray) -> None:
        self._places[vertices] = len(self._wanted) + np.arange(len(vertices))
        self.importance[vertices] *= 1.0 + _FIRMNESS
        more = np.zeros((len(vertices), self._matrix.height), np.float32)
        self._wanted = np.concatenate([self._wanted, more])
