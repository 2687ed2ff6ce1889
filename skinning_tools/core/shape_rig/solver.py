# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes to bones from start to end: a decomposition to start from, then motions and weights in turn."""

import time

import numpy as np

from ..animation import Animation
from ..decomposition import Settings as StartSettings
from ..decomposition import decompose
from ..decomposition.smoothness import independent_sets
from ..dense import one_blas_thread
from ..progress import Progress, checkpoint, ignore, span
from .motion import turns_of
from .state import State
from .surface import SurfaceError
from .types import Settings, ShapeRig, Shapes, check_shapes
from .weights import WeightStep

_START_SWEEPS = 15
_SWEEPS = 8
# The sweeps at which motions are dropped.
_DROPPING = 3, 5
# Vertices that gained less than this share of the mean wait until the next sweep over all vertices, which is every so
# many sweeps.
_WORTHWHILE, _EVERY = 0.1, 3
_STARTED = 0.2
# How far the start treats large and small shapes alike, from 0 to 1. Shapes below a share of the largest stay small.
_BALANCE, _SMALLEST = 0.3, 0.01
# As a share of a bone's spread: small enough to hardly restrain a shape, large enough to keep bones from turning
# without need.
_HOLD = 1e-2
# Vertices that move by less than this share of the largest motion do not count for the size of the face.
_MOVING = 0.02
# Shares of the face's size: how far an error reaches that varies over the surface, or turns normals, at full surface.
_PLAIN, _NORMAL = 0.004, 0.045
# Quantiles of the errors between which importance is their inverse, so that the mean counts; and that beyond which the
# turn of normals counts by its size, not by its square.
_FROM, _TO, _SURFACE_TO = 0.2, 0.98, 0.7
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
    center, size = face_size(shapes)
    state = _started(shapes, settings, center, size, span(progress, 0.0, _STARTED))
    seconds["start"] = time.perf_counter() - begin
    begin = time.perf_counter()
    lengths = _PLAIN * settings.surface, _NORMAL * settings.surface
    surface = SurfaceError(state.points[:, :3], shapes.triangles, *lengths)
    _alternate(state, surface, settings.sparsity, span(progress, _STARTED, 1.0))
    seconds["sweeps"] = time.perf_counter() - begin
    return state.result(1.0 / size, center, seconds)


def face_size(shapes: Shapes) -> tuple[np.ndarray, float]:
    """The middle (3,) and the diagonal of the box around the vertices that the shapes move: a body below the face does
    not count."""
    moving = shapes.rest[moves_visibly(shapes.deltas.transpose(1, 2, 0))]
    low, high = moving.min(axis=0), moving.max(axis=0)
    size = float(np.linalg.norm(high - low))
    if size <= 0:
        # Only one vertex moves: the size of the face is how far it moves.
        size = float(np.abs(shapes.deltas).max())
    return 0.5 * (low + high), size


def moves_visibly(deltas: np.ndarray) -> np.ndarray:
    """(N,) bool, of (N, 3, S): which vertices some shape moves by a share of the largest motion that counts."""
    motion = np.abs(deltas).max(axis=(1, 2))
    return motion > _MOVING * motion.max()


def _started(shapes: Shapes, settings: Settings, center: np.ndarray, size: float, progress: Progress) -> State:
    """Bones and weights of a few sweeps of the general solver, with the shapes as frames."""
    rest = (shapes.rest - center) / size
    deltas = shapes.deltas / size
    gains = _gains(deltas)[:, None, None]
    frames = np.concatenate([rest[None], rest + gains * deltas]).astype(np.float32)
    start = StartSettings(
        bone_count=settings.bone_count,
        bone_kind="RIGID",
        max_influences=settings.max_influences,
        iterations=_START_SWEEPS,
        optimize_rest_pose=False,
    )
    found = decompose(Animation(frames, shapes.triangles, name=shapes.name), start, progress)
    # The first is the neutral, where no bone moves.
    linear, moves = found.transforms[1:, :, :, :3], found.transforms[1:, :, :, 3]
    turns = turns_of(linear)
    state = State(
        points=np.concatenate([rest, np.ones((len(rest), 1))], axis=1),
        target=np.ascontiguousarray(deltas.transpose(1, 2, 0), dtype=np.float64),
        bones=found.bones.copy(),
        weights=found.weights.copy(),
        pivots=np.zeros((settings.bone_count, 3)),
        turns=turns,
        moves=moves.copy(),
        active=np.ones(turns.shape[:2], bool),
        importance=gains.ravel() ** 2,
    )
    state.center_pivots()
    state.turns /= gains
    state.moves /= gains
    return state


def _gains(deltas: np.ndarray) -> np.ndarray:
    """(S,) factors by which shapes are enlarged for the start, so that small ones, such as those of a pupil, get bones
    of their own, too."""
    norms = np.linalg.norm(deltas.reshape(len(deltas), -1), axis=1)
    gains = (norms.max() / np.maximum(norms, _SMALLEST * norms.max())) ** _BALANCE
    return gains * np.sqrt(np.sum(norms**2) / np.sum((gains * norms) ** 2))


def _alternate(state: State, surface: SurfaceError, sparsity: float, progress: Progress) -> None:
    """Motions and weights in turn; in between both go on along their last change, where that lowers the error.

    sparsity: the share of the error that dropped motions may cost. Motions are dropped sweep by sweep, so that the
    weights can make up for them.
    """
    sets = independent_sets(surface.neighbors(), np.arange(surface.count))
    transforms = state.transforms()
    errors = state.errors(transforms)
    moving = moves_visibly(state.target)
    factor, before = _FIRST_EXTRAPOLATION, None
    gains = np.ones(surface.count)
    for sweep in range(_SWEEPS):
        part = span(progress, sweep / _SWEEPS, (sweep + 1) / _SWEEPS)
        checkpoint(part, 0.0, "Solving")
        _weigh(surface, errors, moving)
        state.center_pivots()
        allowed = sparsity / len(_DROPPING) * surface.of(errors) if sweep in _DROPPING else 0.0
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
        step = WeightStep(state.points, transforms, state.bones, state.weights, errors, surface)
        due = (gains > _WORTHWHILE * gains.mean()) | (sweep % _EVERY == 0) | (sweep == _SWEEPS - 1)
        for number, rows in enumerate(sets):
            checkpoint(part, (number + 1) / (len(sets) + 1), "Solving")
            step.improve(rows[due[rows]])
        gains = np.where(due, step.gains, gains)
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
    limit = float(np.quantile(rough[moving], _SURFACE_TO)) or 1.0
    surface.weigh(importance / importance[moving].mean(), limit / np.maximum(rough, limit))
