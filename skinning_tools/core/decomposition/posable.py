# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones of a skeleton that are free to leave their joints, with weights that hold when it is posed."""

from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..body_surface import BodySurface
from ..dense import one_blas_thread
from ..joint_hierarchy import JointHierarchy
from ..progress import Progress, checkpoint, ignore, span
from . import rigid
from .bone_model import BoneModel
from .idle_influences import without_idle_influences
from .joint_slips import joint_slips
from .near_weights import PoseLimits, all_errors, counted
from .reduction import AnimationMatrix
from .skeleton_solve import WORTH_IT, begun, finished
from .smooth_solution import smooth_solution
from .sweeps import collect_equations, sweep_vertices
from .transforms import NormalEquations, from_rows, to_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState

# Rounds of weights within the limits of posing, and of bones that move freely.
_ROUNDS = 3
# Rounds in which all vertices are fitted again within these limits, while they save WORTH_IT; sweeps of bones in each.
_AGAIN_ROUNDS, _AGAIN_SWEEPS = 6, 3
_STAGE = "Weights"


@one_blas_thread()
def solve_posable(
    animation: Animation,
    free: Decomposition,
    hierarchy: JointHierarchy,
    settings: Settings,
    progress: Progress = ignore,
    importance: np.ndarray | None = None,
) -> tuple[Decomposition, JointHierarchy]:
    """``free`` with weights that hold when the bones are posed in ``hierarchy``; see near_weights.PoseLimits.

    The tree and its joints stay, and so does the motion where no vertex breaks the limits. Where that saves some of the
    error, all vertices are fitted again within the limits, and as smooth as ``settings`` has them. Idle influences are
    left out in the end. The arguments and what is raised are those of ``jointed.solve_jointed``.
    """
    matrix, state, motion, heads = begun(animation, free, hierarchy, importance)
    limits = PoseLimits(hierarchy.parents, heads, len(motion))
    surface = BodySurface(state.points[:, :3], animation.triangles) if len(animation.triangles) else None
    within = not limits.broken(state).any() and (surface is None or not limits.has_strays(state, surface))
    if not within:
        solve = _PosableSolve(matrix, limits, state, motion, surface, settings.optimize_rest_pose)
        for number in range(_ROUNDS):
            solve.limit(optimize=settings.optimize_rest_pose)
            solve.move(1)
            checkpoint(progress, 0.3 * (number + 1) / _ROUNDS, _STAGE)
        solve.limit(optimize=False)
        solve.move(1)
        solve.fit_again(animation.triangles, settings.smoothness, span(progress, 0.3, 0.8))
        state, motion = solve.state, solve.motion
    given, part = (BoneModel(to_rows(motion)), state, matrix, limits), span(progress, 0.8, 0.85)
    fewer = without_idle_influences(*given, optimize_rest_pose=settings.optimize_rest_pose, progress=part)
    if within and fewer is state:
        return free, hierarchy
    result = finished(animation, matrix, free, fewer, motion, settings, span(progress, 0.85, 1.0))
    return result, replace(hierarchy, slips=joint_slips(result.transforms, hierarchy.parents, hierarchy.joints))


class _PosableSolve:
    """Vertices and motion (F, P, 3, 4) of free rigid bones, in solver units, within the limits of posing."""

    def __init__(
        self,
        matrix: AnimationMatrix,
        limits: PoseLimits,
        state: VertexState,
        motion: np.ndarray,
        surface: BodySurface | None,
        optimize: bool,
    ):
        """surface: of the rest pose, if it has one; optimize: whether the rest pose is solved for, too."""
        self.state, self.motion, self._surface = state, motion, surface
        self._matrix, self._limits, self._optimize = matrix, limits, optimize
        model = BoneModel(to_rows(motion))
        # ‖TX − A‖², and what the equations lack of it.
        self._given = all_errors(model, state, matrix)
        self.error = counted(self._given, state)
        self._squared_norm = self.error - self._equations().squared_error(model.transforms)

    def limit(self, *, optimize: bool, former: VertexState | None = None) -> None:
        """Vertices within the limits; ``former``: see PoseLimits.keep."""
        model, source, errors = BoneModel(to_rows(self.motion)), self._matrix, self._given
        self._limits.keep(model, self.state, source, optimize_rest_pose=optimize, former=former, given=errors)
        if self._surface is not None:
            self._limits.gather(model, self.state, source, self._surface, optimize_rest_pose=optimize)

    def move(self, sweeps: int) -> None:
        """Better motion for the present vertices."""
        equations = self._equations()
        for _ in range(sweeps):
            self.motion = rigid.sweep(equations, self.motion)
        self.error = equations.squared_error(to_rows(self.motion)) + self._squared_norm

    def fit_again(self, triangles: np.ndarray, smoothness: float, progress: Progress) -> None:
        """Vertices and motion in turn, and then weights smooth again; all as it was where that saves too little."""
        given, error = (self.state.copy(), self.motion), self.error
        for number in range(_AGAIN_ROUNDS):
            former, before, part = self.state.copy(), self.error, span(progress, 0.6 * number / _AGAIN_ROUNDS, 0.6)
            model, optimize = BoneModel(to_rows(self.motion)), self._optimize
            sweep_vertices(model, self.state, self._matrix, part, _STAGE, optimize_rest_pose=optimize)
            self.limit(optimize=optimize, former=former)
            self.move(_AGAIN_SWEEPS)
            if self.error > (1.0 - WORTH_IT) * before:
                break
        if smoothness and self.error < error:
            self._smooth(triangles, smoothness, span(progress, 0.6, 1.0))
        if self.error > (1.0 - WORTH_IT) * error:
            self.state, self.motion = given

    def _smooth(self, triangles: np.ndarray, amount: float, progress: Progress) -> None:
        def follow(equations: NormalEquations, rows: np.ndarray) -> np.ndarray:
            return to_rows(rigid.sweep(equations, from_rows(rows)))

        skin = self.motion, follow, self.state
        self.motion, self.state = smooth_solution(self._matrix, triangles, *skin, amount, progress)
        self.limit(optimize=False)
        self.move(_AGAIN_SWEEPS)

    def _equations(self) -> NormalEquations:
        return collect_equations(self.state, self._matrix, self.motion.shape[1])
