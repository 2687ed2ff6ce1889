# SPDX-License-Identifier: GPL-3.0-or-later
"""The decomposition from start to end: reduction, segmentation, sweeps, final transforms, measuring."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from ..animation import Animation, ErrorMeter, check_animation, unit_scale
from ..deform import skin_frame
from ..dense import one_blas_thread, product
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore, span
from . import kavan2010
from .bone_kinds import AffineBones, StiffBones
from .bone_model import BoneModel, homogeneous
from .error_seeds import parts_of, regions_by_error
from .reduction import AnimationMatrix, Reduction, reduce_animation
from .residual import fit_residual_shapes
from .segmentation import fill_empty_regions, grow_regions
from .smooth_solution import smooth_solution
from .split_merge import move_bones, squared_error
from .sweeps import alternate, collect_equations, vertex_blocks
from .target_error import CurvePoint, Watch, no_watch, solve_for_target
from .transforms import NormalEquations, from_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState, best_single_bones

# The paper's ε, 0.0005, adds up to 0.5 to E_RMS; a sweep's cost hardly depends on d, so a fifth of it is nearly free.
_REDUCTION_ERROR = 1e-4
_MOVE_ROUNDS = 6
_FINAL_SWEEPS = 1
_REDUCED, _SOLVED, _SOLVED_WITH_SHAPES = 0.1, 0.9, 0.6


@one_blas_thread()
def decompose(animation: Animation, settings: Settings | None = None, progress: Progress = ignore) -> Decomposition:
    """Bones, weights and a rest pose whose linear blend skinning comes closest to ``animation``.

    Kavan, Sloan & O'Sullivan 2010, with influences picked by a convex fit and extrapolated sweeps. Deterministic.
    A mesh that stands still is solved as any other. Raises BadAnimation and BadMesh (see ``check_animation``),
    BadSettings (more bones than vertices), Cancelled.
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
        matrix = AnimationMatrix(animation.frames)
        reduction = _reduced(matrix, settings, span(progress, 0.0, _REDUCED))
    prepared = _Prepared(animation, matrix, reduction)
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
    return _finished(prepared, solution, settings, clock, curve, span(progress, solved, 1.0))


def _smoothed(prepared: "_Prepared", solution: "_Solution", settings: Settings, progress: Progress) -> "_Solution":
    matrix, triangles = prepared.matrix, prepared.animation.triangles
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
    animation: Animation
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
    def stage(self, name: str):
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
    triangles, part = prepared.animation.triangles, span(progress, 0.0, 0.1)

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
    matrix, reduction, bone_count = prepared.matrix, prepared.reduction, settings.bone_count

    affine = AffineBones(matrix, reduction, bone_count)
    kind = affine if settings.bone_kind == "AFFINE" else StiffBones(matrix, settings.bone_kind == "SCALED")
    sweeps = range(settings.iterations)
    final = sweeps[max(1, len(sweeps) - _FINAL_SWEEPS) :] if kind.final else sweeps[:0]
    with clock.stage("segmentation"):
        state = _segment(prepared, affine, settings, span(progress, 0.0, 0.1))
        reduced = collect_equations(state, reduction, bone_count)
        rows = kind.start(reduced, lambda: collect_equations(state, matrix, bone_count))
    with clock.stage("iterations"):
        first = sweeps[: len(sweeps) - len(final)]
        part = span(progress, 0.1, 0.8 if kind.final else 1.0)
        rows, state, errors = alternate(
            kind, rows, state, first, settings.optimize_rest_pose, part, prepared.watching(watch)
        )
    with clock.stage("transforms"):
        if kind.final:
            kind.final.allow(errors[-1])
            equations = collect_equations(state, matrix, bone_count)
            rows = kind.final.fit(equations, rows)
            if not final:
                errors[-1] = equations.squared_error(rows)
            part = span(progress, 0.8, 1.0)
            rows, state, last = alternate(kind.final, rows, state, final, settings.optimize_rest_pose, part)
            errors += last
    return _Solution(from_rows(rows), kind.axes, state, [error + matrix.squared_norm for error in errors])


def _solve_for_target(
    prepared: _Prepared, settings: Settings, clock: _Clock, progress: Progress
) -> tuple[_Solution, tuple[CurvePoint, ...]]:
    """The fewest bones, at most ``bone_count``, that reach the target error; see ``solve_for_target``."""

    def solve(bone_count: int, progress: Progress, watch: Watch):
        solution = _solver(settings)(prepared, replace(settings, bone_count=bone_count), clock, progress, watch)
        return solution, prepared.e_rms(solution.squared_errors[-1])

    return solve_for_target(solve, settings.target_error, settings.bone_count, settings.iterations, progress)


def _segment(prepared: _Prepared, affine: AffineBones, settings: Settings, progress: Progress) -> VertexState:
    """One bone a vertex: regions grown over the mesh, bones moved from where they earn little to where they are
    needed, and in between vertices given to the bone that predicts them best.

    From several starts, of which the one with the least error in the end is taken: that mostly ends lowest after the
    sweeps, too, and no start does so on all meshes.
    """
    matrix, reduction, bone_count = prepared.matrix, prepared.reduction, settings.bone_count
    rest = matrix.rest_pose()
    points = homogeneous(rest)
    triangles = prepared.animation.triangles

    def reassigned(labels, rounds, progress):
        for _ in range(rounds):
            equations = NormalEquations.of_regions(points, reduction.coefficients, labels, bone_count)
            model = BoneModel(affine.start(equations, None))
            for part in vertex_blocks(len(rest)):
                labels[part] = best_single_bones(model, reduction.rows(part), points[part])
                checkpoint(progress, 0.0, "Segmenting")
            labels = fill_empty_regions(labels, rest, bone_count)
        return labels

    def moved(labels, progress):
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
    return _single_bones(points, labels, min(settings.influences, bone_count))


def _single_bones(points, labels, influences) -> VertexState:
    bones = np.repeat(labels[:, None], influences, axis=1).astype(np.int32)
    weights = np.zeros(bones.shape)
    weights[:, 0] = 1.0
    return VertexState(points, bones, weights)


def _finished(
    prepared: _Prepared,
    solution: _Solution,
    settings: Settings,
    clock: _Clock,
    curve: tuple[CurvePoint, ...],
    progress: Progress,
) -> Decomposition:
    """The solution in object space, with residual shapes, and the error of the whole against the animation itself."""
    rest, transforms = prepared.matrix.to_object_space(solution.state.points[:, :3], solution.transforms)
    bones, weights = solution.state.bones, solution.state.weights
    missing = settings.influences - bones.shape[1]
    if missing > 0:
        bones = np.hstack([bones, np.repeat(bones[:, :1], missing, axis=1)])
        weights = np.hstack([weights, np.zeros((len(weights), missing))])
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
    frames, count = prepared.animation.frames, settings.residual_shapes
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
    for row, positions in enumerate(frames):
        meter.add(positions, skin_frame(result.rest_at(row), result.bones, result.weights, result.transforms[row]))
        checkpoint(progress, (row + 1) / len(frames), "Measuring")
    return meter
