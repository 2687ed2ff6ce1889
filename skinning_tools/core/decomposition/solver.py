# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole decomposition: reduction, segmentation, sweeps, final transforms, measuring."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

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
from .bone_kinds import AffineBones, StiffBones
from .bone_model import BoneModel, homogeneous
from .error_seeds import parts_of, regions_by_error
from .pruning import prune_bones
from .reduction import AnimationMatrix, Reduction, reduce_animation
from .residual import fit_residual_shapes
from .sample import take_sample
from .segmentation import fill_empty_regions, grow_regions
from .smooth_solution import smooth_solution
from .split_merge import move_bones, squared_error
from .sweeps import alternate, collect_equations, vertex_blocks
from .target_error import CurvePoint, Watch, no_watch, solve_for_target
from .transforms import NormalEquations, from_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState, best_single_bones, single_bones

# The paper's ε, 0.0005, adds up to 0.5 to E_RMS; a sweep's cost hardly depends on d, so a fifth of it is nearly free.
_REDUCTION_ERROR = 1e-4
_MOVE_ROUNDS = 6
_REDUCED, _SOLVED, _SOLVED_WITH_SHAPES = 0.1, 0.9, 0.6


@one_blas_thread()
def decompose(
    animation: Animation,
    settings: Settings | None = None,
    progress: Progress = ignore,
    frame_weights: np.ndarray | None = None,
) -> Decomposition:
    """Bones, weights and a rest pose whose linear blend skinning comes closest to ``animation``.

    Kavan, Sloan & O'Sullivan 2010, with influences picked by a convex fit and extrapolated sweeps. Deterministic.
    A mesh that does not move is solved like any other. frame_weights (F,) > 0, by default 1: what each frame's errors
    are multiplied by where they are minimized, in ``history`` and in ``curve``, not in ``e_rms`` and ``max_error``.
    Raises BadAnimation and BadMesh (see ``check_animation``), BadSettings (more bones than vertices), Cancelled.
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
    prepared = _Prepared(animation.triangles, matrix, reduction)
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


def _smoothed(prepared: "_Prepared", solution: "_Solution", settings: Settings, progress: Progress) -> "_Solution":
    matrix, triangles = prepared.matrix, prepared.triangles
    skin = solution.transforms, solution.axes, settings.bone_kind == "AFFINE", solution.state
    transforms, state = smooth_solution(matrix, triangles, *skin, settings.smoothness, progress)
    return replace(solution, transforms=transforms, state=state)


def _reduced(matrix: AnimationMatrix, settings: Settings, progress: Progress) -> Reduction:
    if settings.method == "KAVAN2010":
        return kavan2010.reduce_as_published(matrix, progress)
    tolerance = min(_REDUCTION_ERROR, settings.target_error / 4000.0) if settings.target_error else _REDUCTION_ERROR
    return reduce_animation(matrix, tolerance, progress=progress)


@dataclass(frozen=True)
class _Prepared:
    triangles: np.ndarray
    matrix: AnimationMatrix
    reduction: Reduction

    def e_rms(self, squared_error: float) -> float:
        """‖TX − A‖² as E_RMS."""
        elements = self.matrix.height * self.matrix.vertex_count
        return 1000.0 * float(np.sqrt(max(squared_error, 0.0) / elements))

    def watching(self, watch: Watch) -> Watch:
        """``watch`` for sweeps, which tell ‖TX − A‖² − ‖A‖²."""
        return lambda sweep, error: watch(sweep, self.e_rms(error + self.matrix.squared_norm))


@dataclass(frozen=True)
class _Solution:
    """In solver units. transforms (F, P, 3, 4), axes (P, 3, 3) or None."""

    transforms: np.ndarray
    axes: np.ndarray | None
    state: VertexState
    squared_errors: list[float]


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
    return _solve_as_published if settings.method == "KAVAN2010" else _solve


def _solve_as_published(
    prepared: _Prepared, settings: Settings, clock: _Clock, progress: Progress, watch: Watch = no_watch
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
    prepared: _Prepared, settings: Settings, clock: _Clock, progress: Progress, watch: Watch = no_watch
) -> _Solution:
    matrix, bone_count = prepared.matrix, settings.bone_count
    effort = effort_of(matrix.vertex_count, settings)
    few, sample = prepared, None
    if effort.sample:
        with clock.stage("sampling"):
            part = span(progress, 0.0, 0.1)
            sample = take_sample(matrix, prepared.reduction, prepared.triangles, effort.sample, part)
            few = _Prepared(sample.triangles, sample.matrix, sample.reduction)
        progress = span(progress, 0.1, 1.0)
    affine = AffineBones(few.matrix, few.reduction, bone_count)
    kind = affine if settings.bone_kind == "AFFINE" else StiffBones(few.matrix, settings.bone_kind == "SCALED")
    # The sweeps by their numbers: over the sample where there is one, over all vertices, and of held bones.
    sweeps = range(effort.sample_sweeps + effort.sweeps)
    last = max(1, len(sweeps) - effort.held) if kind.final else len(sweeps)
    first = min(effort.first_sweeps, last)
    # How far the progress is after the first of these, and before the last.
    late = 0.8 if kind.final else 1.0
    early = late if sample is None else 0.1 + (late - 0.1) * effort.sample_share(matrix.vertex_count)
    solved = 0.5 * (0.1 + early) if settings.prune else early
    with clock.stage("segmentation"):
        state = _segment(few, affine, settings, span(progress, 0.0, 0.1))
        reduced = collect_equations(state, few.reduction, bone_count)
        rows = kind.start(reduced, lambda: collect_equations(state, few.matrix, bone_count))
    with clock.stage("iterations"):
        part = span(progress, 0.1, solved)
        rows, state, errors = alternate(
            kind, rows, state, sweeps[:first], settings.optimize_rest_pose, part, few.watching(watch)
        )
    if settings.prune:
        with clock.stage("pruning"):
            part = span(progress, solved, early)
            rows, state, more = prune_bones(few.matrix, rows, state, settings.optimize_rest_pose, part)
            errors += more
    if sample is not None:
        with clock.stage("iterations"):
            kind = kind.on(matrix, prepared.reduction)
            state = sample.spread(state, matrix.rest_pose())
            part = span(progress, early, late)
            rows, state, errors = alternate(kind, rows, state, sweeps[first:last], settings.optimize_rest_pose, part)
    with clock.stage("transforms"):
        if kind.final:
            kind.final.allow(errors[-1])
            equations = collect_equations(state, matrix, bone_count)
            rows = kind.final.fit(equations, rows)
            if last == len(sweeps):
                errors[-1] = equations.squared_error(rows)
            part = span(progress, late, 1.0)
            rows, state, more = alternate(kind.final, rows, state, sweeps[last:], settings.optimize_rest_pose, part)
            errors += more
    return _Solution(from_rows(rows), kind.axes, state, [error + matrix.squared_norm for error in errors])


def _solve_for_target(
    prepared: _Prepared, settings: Settings, clock: _Clock, progress: Progress
) -> tuple[_Solution, tuple[CurvePoint, ...]]:
    """The fewest bones, at most ``bone_count``, that reach the target error; see ``solve_for_target``."""

    def solve(bone_count: int, progress: Progress, watch: Watch) -> tuple[_Solution, float]:
        solution = _solver(settings)(prepared, replace(settings, bone_count=bone_count), clock, progress, watch)
        return solution, prepared.e_rms(solution.squared_errors[-1])

    sweeps = effort_of(prepared.matrix.vertex_count, settings).first_sweeps
    return solve_for_target(solve, settings.target_error, settings.bone_count, sweeps, progress)


def _segment(prepared: _Prepared, affine: AffineBones, settings: Settings, progress: Progress) -> VertexState:
    """One bone for each vertex: regions grown over the mesh, bones moved from where they gain little to where they are
    needed, and in between vertices assigned to the bone that predicts them best.

    Of several starts, the one with the least error is taken: it usually ends lowest after the sweeps, too, and no
    single start does so on all meshes.
    """
    matrix, reduction, bone_count = prepared.matrix, prepared.reduction, settings.bone_count
    rest = matrix.rest_pose()
    points = homogeneous(rest)
    triangles = prepared.triangles

    def reassigned(labels: np.ndarray, rounds: int, progress: Progress) -> np.ndarray:
        for _ in range(rounds):
            equations = NormalEquations.of_regions(points, reduction.coefficients, labels, bone_count)
            model = BoneModel(affine.start(equations, None))

            def best(part: slice, model: BoneModel = model) -> np.ndarray:
                return best_single_bones(model, reduction.rows(part), points[part])

            def take(part: slice, found: np.ndarray, labels: np.ndarray = labels) -> None:
                labels[part] = found
                checkpoint(progress, 0.0, "Segmenting")

            for_each(best, vertex_blocks(len(rest)), take)
            labels = fill_empty_regions(labels, rest, bone_count)
        return labels

    def moved(labels: np.ndarray, progress: Progress) -> np.ndarray:
        labels = reassigned(labels, 2, progress)
        for i in range(_MOVE_ROUNDS if bone_count > 2 else 0):
            part = span(progress, i / _MOVE_ROUNDS, 1.0)
            checkpoint(part, 0.0, "Segmenting")
            labels, moves = move_bones(points, reduction.coefficients, labels, bone_count)
            if not moves:
                break
            labels = reassigned(labels, 1, part)
        return reassigned(labels, 2, span(progress, 1.0, 1.0))

    given = matrix, reduction, rest, triangles
    starts = [
        lambda progress: grow_regions(*given, bone_count, progress),
        lambda progress: grow_regions(*given, bone_count, progress, outermost_first=True),
    ]
    parts = parts_of(triangles, len(rest))
    if parts is not None:
        starts.append(lambda progress: regions_by_error(*given, parts, bone_count, progress))
    found = []
    for number, start in enumerate(starts):
        part = span(progress, number / len(starts), (number + 1) / len(starts))
        found.append(moved(start(span(part, 0.0, 0.4)), span(part, 0.4, 1.0)))
    labels = min(found, key=lambda each: squared_error(points, reduction.coefficients, each, bone_count))
    return single_bones(points, labels, min(settings.influences, bone_count))


def _finished(
    frames: np.ndarray,
    prepared: _Prepared,
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
        meter = _measured(frames, result, progress)
    return replace(result, e_rms=meter.e_rms, max_error=meter.max_error)


def _measured(frames: np.ndarray, result: Decomposition, progress: Progress) -> ErrorMeter:
    meter = ErrorMeter(unit_scale(frames), len(result.rest))

    def skinned(row: int) -> np.ndarray:
        return skin_frame(result.rest_at(row), result.bones, result.weights, result.transforms[row])

    def take(row: int, made: np.ndarray) -> None:
        meter.add(frames[row], made)
        checkpoint(progress, (row + 1) / len(frames), "Measuring")

    for_each(skinned, range(len(frames)), take)
    return meter
