# SPDX-License-Identifier: GPL-3.0-or-later
"""The decomposition from start to end: reduction, segmentation, sweeps of alternating least squares, final transforms."""

import time
from contextlib import contextmanager

import numpy as np

from ..animation import Animation, ErrorMeter, check_animation, unit_scale
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore, span
from . import rigid
from .bone_model import BoneModel, homogeneous
from .reduction import AnimationMatrix, reduce_animation
from .segmentation import fill_empty_regions, grow_regions, vertex_blocks
from .transforms import NormalEquations, design_matrix, from_rows, to_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState, improve_vertices

# The paper's ε adds up to 0.5 to E_RMS; the cost of a sweep hardly depends on d, so a fifth of it is nearly free.
_REDUCTION_ERROR = 1e-4
_REGION_ROUNDS = 4
# How firmly the transforms are held where the data say little: to the last sweep's, and in the end to a rigid motion.
_HOLD_IN_SWEEPS = 1e-9
_HOLD_AT_END = 1e-7
_FIRST_EXTRAPOLATION = 0.7
_LARGEST_EXTRAPOLATION = 1.5


def decompose(animation: Animation, settings: Settings = Settings(), progress: Progress = ignore) -> Decomposition:
    """Bones, weights and a rest pose whose linear blend skinning comes closest to ``animation``.

    Kavan, Sloan & O'Sullivan 2010, with influences picked by a convex fit and extrapolated sweeps. Deterministic.
    Raises BadAnimation and BadMesh (see ``check_animation``), BadSettings (more bones than vertices), Cancelled.
    """
    check_animation(animation)
    if settings.bone_count > animation.vertex_count:
        raise BadSettings(
            f"{animation.name} has {animation.vertex_count} vertices, too few for {settings.bone_count} bones. "
            "Ask for at most one bone per vertex"
        )
    return _Solver(animation, settings, progress).run()


def memory_estimate(frame_count: int, vertex_count: int, settings: Settings) -> int:
    """Bytes that ``decompose`` needs beside ``frames`` (F, N, 3) float32, at the most."""
    height = 3 * frame_count
    reduced = 8 * vertex_count * min(height, 400)
    state = 2 * vertex_count * (8 * 4 + 12 * settings.max_influences) + 4 * vertex_count * settings.bone_count
    columns = 4 * settings.bone_count
    return reduced + state + 8 * columns * (4 * columns + 2 * height) + 8 * min(height, 2400) ** 2 + (150 << 20)


def skin_frame(rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Linear blend skinning of one frame (Kavan et al. 2010, formula 1).

    rest (N, 3), bones and weights (N, K), matrices (P, 3, 4): positions (N, 3).
    """
    points = homogeneous(rest)
    result = np.zeros((len(rest), 3))
    for k in range(bones.shape[1]):
        result += weights[:, k, None] * np.einsum("nij,nj->ni", matrices[bones[:, k]], points)
    return result


class _Solver:
    def __init__(self, animation: Animation, settings: Settings, progress: Progress):
        self.animation, self.settings, self.progress = animation, settings, progress
        self.seconds: dict[str, float] = {}
        self.history: list[float] = []

    def run(self) -> Decomposition:
        settings = self.settings
        with self._stage("reduction"):
            self.matrix = AnimationMatrix(self.animation.frames)
            self.reduction = reduce_animation(self.matrix, _REDUCTION_ERROR, progress=span(self.progress, 0.0, 0.1))
        with self._stage("segmentation"):
            self._start()
        with self._stage("iterations"):
            if settings.bone_kind == "AFFINE":
                self._affine_sweeps(settings.iterations, 0.15, 0.9)
            else:
                self._stiff_sweeps(0.15, 0.9)
        with self._stage("transforms"):
            if settings.bone_kind == "AFFINE":
                transforms = self._final_affine()
            else:
                transforms = self.stiff
        return self._result(transforms)

    @contextmanager
    def _stage(self, name):
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def _start(self):
        """First segmentation as rigid weights, refined by a few rounds of fitting regions and reassigning vertices."""
        rest = self._first_frame()
        bone_count = self.settings.bone_count
        labels = grow_regions(self.matrix, self.reduction, rest, self.animation.triangles, bone_count)
        influences = min(self.settings.max_influences, bone_count)
        self.state = VertexState(homogeneous(rest), None, None)
        standstill = np.zeros((bone_count, 4, self.matrix.height // 3, 3))
        standstill[:, :3] = np.eye(3)[:, None]
        self.model = BoneModel(standstill.reshape(4 * bone_count, -1) @ self.reduction.basis)
        for round_number in range(_REGION_ROUNDS + 1):
            if round_number:
                labels = self._reassign()
                labels = fill_empty_regions(labels, rest, bone_count)
            self.state.bones = np.repeat(labels[:, None], influences, axis=1).astype(np.int32)
            self.state.weights = np.zeros(self.state.bones.shape)
            self.state.weights[:, 0] = 1.0
            equations = self._equations(self.reduction)
            self.model = BoneModel(equations.solve(self.model.transforms, 1e-6))
            checkpoint(self.progress, 0.1 + 0.05 * round_number / max(1, _REGION_ROUNDS), "Segmenting")

    def _first_frame(self):
        return (self.animation.frames[0] - self.matrix.means[0]) / self.matrix.radius

    def _reassign(self):
        labels = np.empty(len(self.state.points), dtype=np.int32)
        for part, points, data in vertex_blocks(self.state.points[:, :3], self.reduction):
            labels[part] = np.argmin(self.model.squared_distances(points, data), axis=1)
        return labels

    def _equations(self, source) -> NormalEquations:
        equations = None
        for part, points, data in vertex_blocks(self.state.points[:, :3], source):
            design = design_matrix(points, self.state.bones[part], self.state.weights[part], self.settings.bone_count)
            if equations is None:
                equations = NormalEquations(self.settings.bone_count, data.shape[1])
            equations.add(design, data)
        return equations

    def _sweep(self, model, source, progress) -> NormalEquations:
        """Improve all vertices for the bones of ``model``; the normal equations of the result."""
        equations = NormalEquations(self.settings.bone_count, model.transforms.shape[1])
        count = len(self.state.points)
        step = 2048
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            data = source.rows(part)
            improve_vertices(
                model,
                data,
                self.state,
                part,
                optimize_rest_pose=self.settings.optimize_rest_pose and len(self.history) > 0,
            )
            design = design_matrix(
                self.state.points[part], self.state.bones[part], self.state.weights[part], self.settings.bone_count
            )
            equations.add(design, data)
            checkpoint(progress, part.stop / count, f"Iteration {len(self.history) + 1}")
        return equations

    def _affine_sweeps(self, iterations, begin, end):
        """Alternate vertices and transforms. After each sweep the transforms are extrapolated along their last change;
        where that did not lower the error, the sweep is taken back and repeated without."""
        squared_norm = self.matrix.squared_norm
        plain = self.model
        factor, trial, last_error = _FIRST_EXTRAPOLATION, plain, np.inf
        for i in range(iterations):
            share = (end - begin) / iterations
            progress = span(self.progress, begin + i * share, begin + (i + 1) * share)
            saved = self.state.copy()
            fitted, error = self._fit(trial, progress)
            if error > last_error and trial is not plain:
                self.state = saved
                factor *= 0.5
                fitted, error = self._fit(plain, progress)
            self.history.append(self._e_rms(squared_norm + error))
            change = fitted.transforms - plain.transforms
            plain, last_error = fitted, error
            trial = plain
            if 1 <= i < iterations - 1:
                trial = BoneModel(plain.transforms + factor * change)
                factor = min(1.1 * factor, _LARGEST_EXTRAPOLATION)
        self.model = plain

    def _fit(self, model, progress):
        equations = self._sweep(model, self.reduction, progress)
        fitted = BoneModel(equations.solve(model.transforms, _HOLD_IN_SWEEPS))
        return fitted, equations.squared_error(fitted.transforms)

    def _e_rms(self, squared_error):
        return 1000.0 * float(np.sqrt(max(squared_error, 0.0) / (self.matrix.height * self.matrix.vertex_count)))

    def _final_affine(self):
        """Solve the transforms once more against the unreduced animation, held lightly to a rigid motion of each bone."""
        equations = self._equations(self.matrix)
        rigid_motion = rigid.fit_alone(equations.products, equations.bone_moments)
        return from_rows(equations.solve(to_rows(rigid_motion), _HOLD_AT_END))

    def _stiff_sweeps(self, begin, end):
        """As the affine sweeps, with bones that rotate and translate (and stretch along their axes) throughout."""
        equations = self._equations(self.matrix)
        transforms = rigid.fit_alone(equations.products, equations.bone_moments)
        axes = None
        if self.settings.bone_kind == "SCALED":
            axes = np.tile(np.eye(3), (self.settings.bone_count, 1, 1))
        iterations = self.settings.iterations
        for i in range(iterations):
            share = (end - begin) / iterations
            progress = span(self.progress, begin + i * share, begin + (i + 1) * share)
            equations = self._sweep(BoneModel(to_rows(transforms)), self.matrix, progress)
            for _ in range(2):
                transforms = rigid.sweep(equations, transforms, axes)
            self.history.append(self._e_rms(self.matrix.squared_norm + equations.squared_error(to_rows(transforms))))
        self.stiff = transforms

    def _result(self, transforms):
        """Back to object space, and the error of the whole against the animation itself."""
        radius, means = self.matrix.radius, self.matrix.means
        origin = means[0]
        rest = self.state.points[:, :3] * radius + origin
        moved = transforms.copy()
        moved[..., 3] = (
            transforms[..., 3] * radius + means[:, None] - np.einsum("fpij,j->fpi", transforms[..., :3], origin)
        )
        bones, weights = self.state.bones, self.state.weights
        if self.settings.max_influences > bones.shape[1]:
            missing = self.settings.max_influences - bones.shape[1]
            bones = np.hstack([bones, np.repeat(bones[:, :1], missing, axis=1)])
            weights = np.hstack([weights, np.zeros((len(weights), missing))])
        with self._stage("measuring"):
            frames = self.animation.frames
            meter = ErrorMeter(unit_scale(frames), len(rest))
            for i, positions in enumerate(frames):
                meter.add(positions, skin_frame(rest, bones, weights, moved[i]))
                checkpoint(self.progress, 0.9 + 0.1 * (i + 1) / len(frames), "Measuring")
        return Decomposition(
            rest=rest,
            transforms=moved,
            bones=bones,
            weights=weights,
            bone_kind=self.settings.bone_kind,
            e_rms=meter.e_rms,
            max_error=meter.max_error,
            history=tuple(self.history),
            dimension=self.reduction.dimension,
            seconds=self.seconds,
        )
