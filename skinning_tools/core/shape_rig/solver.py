# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes to bones from start to end: a decomposition to start from, then motions and weights in turn."""

import time

import numpy as np

from ..decomposition.smoothness import independent_sets
from ..dense import one_blas_thread
from ..progress import Progress, checkpoint, ignore, span
from .start import moves_visibly, started
from .state import State
from .surface import SurfaceError
from .types import Settings, ShapeRig, Shapes, check_shapes
from .weights import WeightStep

_SWEEPS = {"DRAFT": 3, "STANDARD": 6}
# Shares of the sweeps after which motions are dropped: early, so that weights can make up for them.
_DROPPING = 0.25, 0.5
# Vertices that gained less than this share of the mean wait until a sweep over all, each of so many.
_WORTHWHILE, _EVERY = 0.1, 3
_STARTED = 0.4
# Of a bone's spread: so little that a shape is hardly held back, so much that bones do not turn without need.
_HOLD = 1e-2
# Half a face takes half the time: so many times the sweeps.
_SYMMETRIC_SWEEPS = 1.5
# Shares of the face's size, with at most so many bones: how far an error reaches that varies over the surface, or
# turns normals, at full surface. With more bones, what each of them moves is smaller, and so are these.
_PLAIN, _NORMAL, _CHOSEN_AT = 0.004, 0.045, 40
# Quantiles of the errors between which importance is their inverse, so that the mean counts; and that beyond which the
# turn of normals counts by its size, not by its square.
_FROM, _TO, _SURFACE_TO = 0.2, 0.9, 0.7
# Quantile of the vertices' largest errors beyond which they count the more, by the square.
_PEAKS = 0.95
# How far extrapolation goes beyond the last change of motions and weights at first, as a share of it; the factor by
# which this grows; and its maximum.
_FIRST_EXTRAPOLATION, _GROWTH, _LARGEST_EXTRAPOLATION = 0.7, 1.2, 2.5


@one_blas_thread()
def solve_shapes(shapes: Shapes, settings: Settings | None = None, progress: Progress = ignore) -> ShapeRig:
    """The bones whose motions, added up by the sliders, come closest to ``shapes``.

    As Kavan et al. 2024 (Compressed Skinning for Facial Blendshapes), with rotations about pivots in place of
    linearized transforms, and with normals in what is minimized. Deterministic. Raises BadMesh, BadAnimation,
    BadSettings, Cancelled.
    """
    settings = settings or Settings()
    check_shapes(shapes, settings)
    seconds, begin = {}, time.perf_counter()
    state, frame = started(shapes, settings, span(progress, 0.0, _STARTED))
    seconds["start"] = time.perf_counter() - begin
    begin = time.perf_counter()
    reach = settings.surface * min(1.0, np.sqrt(_CHOSEN_AT / settings.bone_count))
    lengths = _PLAIN * reach, _NORMAL * reach
    surface = SurfaceError(state.points[:, :3], shapes.triangles, *lengths)
    sweeps = _SWEEPS[settings.quality]
    if state.mirror is not None:
        sweeps = round(_SYMMETRIC_SWEEPS * sweeps)
    _alternate(state, surface, sweeps, settings.sparsity, span(progress, _STARTED, 1.0))
    seconds["sweeps"] = time.perf_counter() - begin
    return state.result(1.0 / frame.size, frame.center, seconds)


def _alternate(state: State, surface: SurfaceError, sweeps: int, sparsity: float, progress: Progress) -> None:
    """Motions and weights in turn; in between both go on along their last change, where that lowers the error.

    sparsity: the share of the error that dropped motions may cost. Motions are dropped sweep by sweep, so that the
    weights can make up for them.
    """
    neighbors, solved = surface.neighbors(), state.solved
    sets = independent_sets(neighbors if state.mirror is None else state.mirror.neighbors(neighbors), solved)
    transforms = state.transforms()
    errors = state.errors(transforms)
    moving = moves_visibly(state.target)
    factor, before = _FIRST_EXTRAPOLATION, None
    dropping = {int(share * sweeps) for share in _DROPPING}
    gains = np.ones(surface.count)
    for sweep in range(sweeps):
        part = span(progress, sweep / sweeps, (sweep + 1) / sweeps)
        checkpoint(part, 0.0, "Solving")
        _weigh(surface, errors, moving)
        state.center_pivots()
        allowed = sparsity / len(dropping) * surface.of(errors) if sweep in dropping else 0.0
        state.fit_motions(surface, _HOLD, allowed)
        transforms = state.transforms()
        errors = state.errors(transforms)
        reached = state.copy()
        if before is not None and sweep > 1:
            trial = state.extrapolated(before, factor)
            trial_errors = trial.errors(trial.transforms())
            better = surface.of(trial_errors) < surface.of(errors)
            factor = min(_GROWTH * factor, _LARGEST_EXTRAPOLATION) if better else 0.5 * factor
            if better:
                state.take(trial)
                transforms, errors = state.transforms(), trial_errors
        before = reached
        step = WeightStep(state.points, transforms, state.bones, state.weights, errors, surface, state.mirror)
        due = (gains > _WORTHWHILE * gains[solved].mean()) | (sweep % _EVERY == 0) | (sweep == sweeps - 1)
        for number, rows in enumerate(sets):
            checkpoint(part, (number + 1) / (len(sets) + 1), "Solving")
            step.improve(rows[due[rows]])
        gains = np.where(due, step.gains, gains)
    if state.mirror is not None:
        state.make_symmetric()
    state.center_pivots()
    state.fit_motions(surface, _HOLD)


def _weigh(surface: SurfaceError, errors: np.ndarray, moving: np.ndarray) -> None:
    """Weigh the vertices so that the sums of squares measure the mean error, and no fold dominates the error of the
    surface.

    moving (N,): the vertices by which both are scaled.
    """
    distances, rough = (np.sqrt(each) for each in surface.densities(errors))
    low, high = np.quantile(distances[moving], [_FROM, _TO])
    if high <= 0:
        return
    importance = 1.0 / np.clip(distances, max(low, 1e-6 * high), high)
    peaks = np.square(errors).sum(axis=1).max(axis=1)
    importance *= np.maximum(peaks / np.quantile(peaks[moving], _PEAKS), 1.0)
    limit = float(np.quantile(rough[moving], _SURFACE_TO)) or 1.0
    surface.weigh(importance / importance[moving].mean(), limit / np.maximum(rough, limit))
