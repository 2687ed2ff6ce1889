# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole decomposition: reduction, segmentation, sweeps, final transforms, measuring."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..animation import Animation, ErrorMeter, check_animation, unit_scale
from ..binding.influence_rows import padded_influences
from ..deform import skin_frame
from ..dense import one_blas_thread, product
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore, span
from ..solve_effort import effort_of
from ..threads import for_each
from . import kavan2010
from .bone_kinds import FinalBones, StiffBones
from .emphasis import emphasized
from .mirror_images import with_mirror_images
from .prepared import Prepared
from .pruning import prune_bones
from .reduction import AnimationMatrix, Reduction, reduce_animation
from .residual import fit_residual_shapes
from .sample import take_sample
from .search import search_bones
from .skin import begin
from .smooth_solution import smooth_solution
from .starts import segmentations
from .surface import with_closer_surface
from .sweeps import alternate, collect_equations, skin_errors
from .target_error import CurvePoint, Watch, no_watch, solve_for_target
from .transforms import NormalEquations, from_rows, to_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState

# The paper's ε, 0.0005, adds up to 0.5 to E_RMS; a sweep's cost hardly depends on d, so a fifth of it is nearly free.
_REDUCTION_ERROR = 1e-4
# Vertices that do not count at all could go anywhere.
_LEAST_IMPORTANCE = 1e-3
# With smooth weights, affine bones keep their motion where the data say little, and others take so many passes.
_HOLD_OF_SMOOTH, _PASSES_OF_SMOOTH = 1e-6, 4
_REDUCED, _SOLVED, _SOLVED_WITH_SHAPES = 0.1, 0.9, 0.6


@one_blas_thread()
def decompose(
    animation: Animation,
    settings: Settings | None = None,
    progress: Progress = ignore,
    frame_weights: np.ndarray | None = None,
    importance: np.ndarray | None = None,
) -> Decomposition:
    """Bones, weights and a rest pose whose linear blend skinning comes closest to ``animation``.

    Kavan, Sloan & O'Sullivan 2010, with influences picked by a convex fit and extrapolated sweeps. Deterministic.
    A mesh that does not move is solved like any other. frame_weights (F,) > 0, by default 1: what each frame's errors
    are multiplied by where they are minimized, in ``history`` and in ``curve``, not in ``e_rms`` and ``max_error``.
    importance (N,): how much each vertex's error counts beside the others', at least 0; None for all alike. Raises
    BadAnimation and BadMesh (see ``check_animation``), BadSettings (more bones than vertices, importances that are no
    such numbers), Cancelled.
    """
    settings = settings or Settings()
    check_animation(animation, may_stand_still=True)
    if settings.bone_count > animation.vertex_count:
        raise BadSettings(
            f"{animation.name} has {animation.vertex_count} vertices, too few for {settings.bone_count} bones. "
            "Ask for at most one bone per vertex"
        )
    if settings.residual_shapes > len(animation.frames):
        raise BadSettings(
            f"{animation.name} has {len(animation.frames)} frames, too few for {settings.residual_shapes} residual "
            "shapes. Ask for at most one per frame"
        )
    clock = _Clock()
    with clock.stage("reduction"):
        matrix = AnimationMatrix(animation.frames, frame_weights)
        reduction = _reduced(matrix, settings, span(progress, 0.0, _REDUCED))
    prepared = Prepared(animation.triangles, matrix, reduction, checked_importance(importance, animation))
    solved = _SOLVED_WITH_SHAPES if settings.residual_shapes else _SOLVED
    solving = span(progress, _REDUCED, solved)
    curve: tuple[CurvePoint, ...] = ()
    if settings.target_error > 0:
        solution, curve = _solve_for_target(prepared, settings, clock, solving)
    else:
        solution = _solver(settings)(prepared, settings, clock, solving)
    if settings.smoothness:
        with clock.stage("smoothing"):
            solution = _smoothed(prepared, solution, settings, span(progress, solved, 0.5 * (solved + 1.0)))
        solved = 0.5 * (solved + 1.0)
    return _finished(animation.frames, prepared, solution, settings, clock, curve, span(progress, solved, 1.0))


def checked_importance(given: np.ndarray | None, animation: Animation) -> np.ndarray | None:
    """Importances (N,) with the mean 1; None where all are alike. Raises BadSettings."""
    if given is None:
        return None
    given = np.asarray(given, dtype=np.float64)
    if given.shape != (animation.vertex_count,) or not np.isfinite(given).all() or given.min() < 0 or not given.any():
        raise BadSettings(
            f"The importance of {animation.name} must be a number of at least 0 for each of its "
            f"{animation.vertex_count} vertices, and above 0 for some"
        )
    given = np.maximum(given / given.mean(), _LEAST_IMPORTANCE)
    return None if np.ptp(given) == 0 else given / given.mean()


def _smoothed(prepared: Prepared, solution: "_Solution", settings: Settings, progress: Progress) -> "_Solution":
    matrix, triangles = prepared.matrix, prepared.triangles
    squared = None
    if settings.surface or settings.emphasis:
        # Fitted to the animation once more, the weights would lose what these gain: they are fitted to what it came to.
        errors = partial(skin_errors, matrix, to_rows(solution.transforms), solution.state)
        squared = sum(float(np.square(errors(part)).sum()) for part in matrix.parts())
        matrix = matrix.shifted(errors)
    stiff = StiffBones(prepared.matrix, None, solution.axes is not None)
    stiff.axes = solution.axes

    def follow(equations: NormalEquations, rows: np.ndarray) -> np.ndarray:
        if settings.bone_kind == "AFFINE":
            return equations.solve(rows, _HOLD_OF_SMOOTH)
        return stiff.swept(equations, rows, _PASSES_OF_SMOOTH)

    skin = solution.transforms, follow, solution.state
    transforms, state = smooth_solution(matrix, triangles, *skin, settings.smoothness, progress, squared)
    return replace(solution, transforms=transforms, state=state)


def _reduced(matrix: AnimationMatrix, settings: Settings, progress: Progress) -> Reduction:
    if settings.method == "KAVAN2010":
        return kavan2010.reduce_as_published(matrix, progress)
    tolerance = min(_REDUCTION_ERROR, settings.target_error / 4000.0) if settings.target_error else _REDUCTION_ERROR
    return reduce_animation(matrix, tolerance, progress=progress)


@dataclass(frozen=True)
class _Solution:
    """In solver units. transforms (F, P, 3, 4), axes (P, 3, 3) or None. squared_errors: of the sweeps before a surface
    and an emphasis, which have a rank of their own. surface_unchanged: as of a Decomposition."""

    transforms: np.ndarray
    axes: np.ndarray | None
    state: VertexState
    squared_errors: list[float]
    own_rank: float | None = None
    surface_unchanged: bool = False

    @property
    def rank(self) -> float:
        """Lower is better, among solutions for the same settings."""
        return self.squared_errors[-1] if self.own_rank is None else self.own_rank


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def _solver(settings: Settings) -> Callable[..., _Solution]:
    if settings.method == "KAVAN2010":
        return _solve_as_published
    return _solve_best if settings.quality == "BEST" else _solve


def _solve_as_published(
    prepared: Prepared, settings: Settings, clock: _Clock, progress: Progress, watch: Watch = no_watch
) -> _Solution:
    matrix, reduction, bone_count = prepared.matrix, prepared.reduction, settings.bone_count
    triangles, part = prepared.triangles, span(progress, 0.0, 0.1)

    with clock.stage("segmentation"):
        state = kavan2010.first_regions(matrix, reduction, triangles, bone_count, settings.influences, part)
    with clock.stage("iterations"):
        part = span(progress, 0.1, 1.0)
        rows, errors = kavan2010.iterate(reduction, state, bone_count, settings, part, prepared.watching(watch))
    with clock.stage("transforms"):
        transforms = from_rows(product(rows, reduction.basis.T))
    return _Solution(transforms, None, state, [error + matrix.squared_norm for error in errors])


def _solve(
    prepared: Prepared, settings: Settings, clock: _Clock, progress: Progress, watch: Watch = no_watch
) -> _Solution:
    matrix, optimize = prepared.matrix, settings.optimize_rest_pose
    effort = settings.effort or effort_of(matrix.vertex_count, settings)
    few, sample = prepared, None
    if effort.sample:
        with clock.stage("sampling"):
            part = span(progress, 0.0, 0.1)
            sample = take_sample(matrix, prepared.reduction, prepared.triangles, effort.sample, part)
            few = sample.prepared(prepared.importance)
        progress = span(progress, 0.1, 1.0)
    # The sweeps by their numbers: over the sample where there is one, over all vertices, and the last ones.
    sweeps = range(effort.sample_sweeps + effort.sweeps)
    last = max(1, len(sweeps) - effort.held)
    first = min(effort.first_sweeps, last)
    # How far the progress is after the first of these, and before the last.
    late = 0.8
    early = late if sample is None else 0.1 + (late - 0.1) * effort.sample_share(matrix.vertex_count)
    solved = 0.5 * (0.1 + early) if settings.prune else early
    with clock.stage("segmentation"):
        starts = segmentations(few, settings.bone_count, span(progress, 0.0, 0.1))
    with clock.stage("iterations"):
        part = span(progress, 0.1, solved)
        if effort.moves:
            found = search_bones(few, settings, starts, sweeps[:first], effort.moves, part)
        else:
            begun = begin(few, settings, starts[0])
            found = begun.improved(sweeps[:first], optimize, part, few.watching(watch))
    if settings.prune:
        with clock.stage("pruning"):
            found = prune_bones(found, few, optimize, span(progress, solved, early))
    if sample is not None:
        found = sample.spread(found, prepared)
    if settings.prune:
        with clock.stage("pruning"):
            part = span(progress, early, early)
            found = with_mirror_images(found, prepared, settings.bone_count, optimize, part)
    if sample is not None:
        with clock.stage("iterations"):
            found = found.improved(sweeps[first:last], optimize, span(progress, early, late))
    squared_errors = [error + prepared.squared_norm for error in found.errors]
    with clock.stage("transforms"):
        kind = found.kind.final
        kind.allow(found.errors[-1], prepared.squared_norm)
        equations = collect_equations(found.state, matrix, found.bone_count)
        rows = kind.fit(equations, found.rows)
        if last == len(sweeps):
            squared_errors[-1] = equations.squared_error(rows) + prepared.squared_norm
        part = span(progress, late, 0.9 if settings.surface or settings.emphasis else 1.0)
        rows, state, more = alternate(kind, rows, found.state, sweeps[last:], optimize, part)
    squared_errors += [error + prepared.squared_norm for error in more]
    rows, state, rank, unchanged = _refined(prepared, settings, clock, kind, rows, state, span(progress, 0.9, 1.0))
    return _Solution(from_rows(rows), found.kind.axes, state, squared_errors, rank, unchanged)


def _refined(
    prepared: Prepared,
    settings: Settings,
    clock: _Clock,
    kind: FinalBones,
    rows: np.ndarray,
    state: VertexState,
    progress: Progress,
) -> tuple[np.ndarray, VertexState, float | None, bool]:
    """Transforms and vertices with closer normals and less of a largest error, if asked for; the rank of a solution
    with these, None without; whether a surface changed nothing."""
    rank, unchanged, optimize, matrix = None, False, settings.optimize_rest_pose, prepared.matrix
    middle = 0.5 * ((settings.surface > 0) + (settings.emphasis == 0))
    if settings.surface:
        with clock.stage("surface"):
            given, part = (matrix, prepared.triangles, kind, rows, state), span(progress, 0.0, middle)
            rows, state, rank, unchanged = with_closer_surface(*given, settings.surface, optimize, part)
    if settings.emphasis:
        with clock.stage("emphasis"):
            part = span(progress, middle, 1.0)
            rows, state, largest, squared = emphasized(matrix, kind, rows, state, settings.emphasis, optimize, part)
            # The product of both errors, to the powers of what each is to count.
            rank = largest**settings.emphasis * squared ** (0.5 * (1.0 - settings.emphasis))
    return rows, state, rank, unchanged


def _solve_best(
    prepared: Prepared, settings: Settings, clock: _Clock, progress: Progress, watch: Watch = no_watch
) -> _Solution:
    """The better of two: what the search finds, and the standard solve, so that it is never worse, or with a surface or
    an emphasis never in all that these count."""
    standard = _solve(prepared, replace(settings, quality="STANDARD"), clock, span(progress, 0.0, 0.1), watch)
    found = _solve(prepared, settings, clock, span(progress, 0.1, 1.0))
    return min(standard, found, key=lambda each: each.rank)


def _solve_for_target(
    prepared: Prepared, settings: Settings, clock: _Clock, progress: Progress
) -> tuple[_Solution, tuple[CurvePoint, ...]]:
    """The fewest bones, at most ``bone_count``, that reach the target error; see ``solve_for_target``. Surface and
    emphasis come after it."""
    plain = replace(settings, emphasis=0.0, surface=0.0)

    def solve(bone_count: int, progress: Progress, watch: Watch) -> tuple[_Solution, float]:
        solution = _solver(settings)(prepared, replace(plain, bone_count=bone_count), clock, progress, watch)
        return solution, prepared.e_rms(solution.squared_errors[-1])

    # The best quality is watched while it makes the standard solve.
    watched = replace(settings, quality="STANDARD") if settings.quality == "BEST" else settings
    sweeps = effort_of(prepared.matrix.vertex_count, watched).first_sweeps
    found, curve = solve_for_target(solve, settings.target_error, settings.bone_count, sweeps, progress)
    if settings.emphasis or settings.surface:
        chosen = replace(settings, bone_count=found.transforms.shape[1])
        found = _solver(settings)(prepared, chosen, clock, span(progress, 1.0, 1.0))
    return found, curve


def _finished(
    frames: np.ndarray,
    prepared: Prepared,
    solution: _Solution,
    settings: Settings,
    clock: _Clock,
    curve: tuple[CurvePoint, ...],
    progress: Progress,
) -> Decomposition:
    """The solution in object space, with residual shapes, and the error of the whole against the animation itself."""
    rest, transforms = prepared.matrix.to_object_space(solution.state.points[:, :3], solution.transforms)
    bones, weights = padded_influences(solution.state.bones, solution.state.weights, settings.influences)
    result = Decomposition(
        rest=rest,
        transforms=transforms,
        bones=bones,
        weights=weights,
        bone_kind=settings.bone_kind,
        bone_axes=np.tile(np.eye(3), (transforms.shape[1], 1, 1)) if solution.axes is None else solution.axes,
        e_rms=np.nan,
        max_error=np.nan,
        history=tuple(prepared.e_rms(error) for error in solution.squared_errors),
        dimension=prepared.reduction.dimension,
        seconds=clock.seconds,
        curve=curve,
        surface_unchanged=solution.surface_unchanged,
    )
    count = settings.residual_shapes
    if count:
        with clock.stage("shapes"):
            part = span(progress, 0.0, 0.8)
            result = replace(
                result, residual=fit_residual_shapes(frames, rest, bones, weights, transforms, count, part)
            )
            progress = span(progress, 0.8, 1.0)
    with clock.stage("measuring"):
        meter = measured(frames, result, progress)
    return replace(result, e_rms=meter.e_rms, max_error=meter.max_error)


def measured(frames: np.ndarray, result: Decomposition, progress: Progress) -> ErrorMeter:
    meter = ErrorMeter(unit_scale(frames), len(result.rest))

    def skinned(row: int) -> np.ndarray:
        return skin_frame(result.rest_at(row), result.bones, result.weights, result.transforms[row])

    def take(row: int, made: np.ndarray) -> None:
        meter.add(frames[row], made)
        checkpoint(progress, (row + 1) / len(frames), "Measuring")

    for_each(skinned, range(len(frames)), take)
    return meter
