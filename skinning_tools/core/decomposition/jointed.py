# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones of a skeleton, solved again: for posing by hand, and so that joints do not slip (after Le & Deng 2014).

``solve_posable`` limits weights alone. In ``solve_jointed``, a bone j turns about its joint h_j, which its parent
carries: M_j v = B_j (v − h_j) + M_parent h_j. Three steps lower the same error in turn. The rotations, and the motion
of the roots, for given joints and weights: see jointed_bones. The joints for given rotations: the translations t_j
= t_parent + (B_parent − B_j) h_j are linear in all joints, so that they are one system of 3P unknowns, with sums over
the frames alone. Weights and rest pose for given motion: as in any solve, within the limits of posing.
"""

from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..binding.influence_rows import padded_influences
from ..bone_order import parents_first
from ..dense import one_blas_thread
from ..geometry import diagonal
from ..grouping import members
from ..joint_hierarchy import JointHierarchy
from ..progress import Progress, checkpoint, ignore, span
from ..strongest import strongest_bones, strongest_first
from . import rigid
from .bone_model import BoneModel, homogeneous
from .moving_joints import MovingJoints, places_of
from .near_weights import PoseLimits, dearer_error
from .reduction import AnimationMatrix
from .residual import fit_residual_shapes
from .smooth_solution import smooth_solution
from .solver import checked_importance, measured
from .sweeps import collect_equations, sweep_vertices
from .transforms import NormalEquations, to_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState

# Most rounds know some vertices only, at least so many and of each bone; the last know all, and sweep more often.
_SWEEPS, _SAMPLE, _LEAST_OF_BONE = 2, 1500, 12
_LAST_ROUNDS, _LAST_SWEEPS = 4, 12
# Rounds of weights within the limits of posing, and of bones that move freely.
_POSABLE_ROUNDS = 3
# Rounds of bones that may leave their joints.
_SLIPPING_ROUNDS = 8
# Of the rest pose's diagonal: a joint that slips by less holds anything.
_SLIGHT = 0.02


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

    The tree and its joints stay, and so does everything where no vertex breaks the limits. The arguments and what is
    raised are those of ``solve_jointed``.
    """
    matrix, state, motion, heads = _begun(animation, free, hierarchy, importance)
    limits = PoseLimits(hierarchy.parents, heads)
    if not limits.broken(state).any():
        return free, hierarchy
    most = dearer_error(BoneModel(to_rows(motion)), state, matrix)
    for number in range(_POSABLE_ROUNDS):
        limits.keep(BoneModel(to_rows(motion)), state, matrix, most, settings.optimize_rest_pose)
        motion = rigid.sweep(collect_equations(state, matrix, free.bone_count), motion)
        checkpoint(progress, 0.8 * (number + 1) / _POSABLE_ROUNDS, "Weights")
    limits.keep(BoneModel(to_rows(motion)), state, matrix, most, False)
    result = _finished(animation, matrix, free, state, motion, settings, span(progress, 0.8, 1.0))
    return result, replace(hierarchy, slips=_slips(result.transforms, hierarchy.parents, hierarchy.joints))


@one_blas_thread()
def solve_jointed(
    animation: Animation,
    free: Decomposition,
    hierarchy: JointHierarchy,
    settings: Settings,
    progress: Progress = ignore,
    importance: np.ndarray | None = None,
    slip: float = 0.0,
) -> tuple[Decomposition, JointHierarchy]:
    """Bones, weights and rest pose again, with the bones of ``free`` held together by the joints of ``hierarchy``.

    free: rigid bones. Each bone but the roots only rotates about its joint; the joints find their best positions, and
    the hierarchy that is returned has them, with slips of 0. A bone whose joint slips by more than the size of what
    hangs from it, and not only slightly, becomes a root, such as one of vertices without weights, which stand still at
    one place. settings: those of ``free``. On a symmetric body they mirror each other in the end. Bones that are no
    vertex's strongest, and carry no such bone, are left out from halfway on; from then on, weights stay within
    near_weights.PoseLimits. slip: how far, as a share of the rest pose's diagonal, a bone may leave its joint in the
    end; with more than 0, the joints are not held. importance (N,): as for ``decompose``. All frames count alike, and
    so do large and small errors, whatever the emphasis. Raises BadSettings (importances that are no such numbers),
    Cancelled.
    """
    hierarchy = replace(hierarchy, parents=_held_parents(free, hierarchy))
    matrix, state, motion, heads = _begun(animation, free, hierarchy, importance)
    solve = _JointedSolve(matrix, state, motion, MovingJoints(heads, hierarchy.parents), settings.optimize_rest_pose)
    plane = (hierarchy.plane - matrix.means[0][0]) / matrix.radius
    solve.improve_on_sample(settings.iterations, hierarchy.partners, plane, progress)
    partners = hierarchy.partners
    for number in range(_LAST_ROUNDS):
        partners = solve.leave_idle_bones_out(partners, plane)
        solve.improve(span(progress, 0.6 + 0.1 * number / _LAST_ROUNDS, 0.6 + 0.1 * (number + 1) / _LAST_ROUNDS))
    if settings.smoothness:
        smoothing = matrix, animation.triangles, solve.motion, None, False, solve.state, settings.smoothness
        solve.state = smooth_solution(*smoothing, span(progress, 0.7, 0.8))[1]
        solve.limit()
    solve.move(_LAST_SWEEPS)
    # The joints have moved.
    solve.limit()
    if slip:
        solve.slide(slip * diagonal(state.points[:, :3]), span(progress, 0.8, 0.85))
    skeleton = solve.skeleton
    result = _finished(animation, matrix, free, solve.state, solve.motion, settings, span(progress, 0.85, 1.0))
    joints = matrix.points_to_object_space(skeleton.heads)
    slips = _slips(result.transforms, skeleton.parents, joints) if slip else np.zeros(skeleton.count)
    jointed = JointHierarchy(skeleton.parents, joints, slips, partners, hierarchy.plane, held=not slip)
    return result, jointed


def _begun(
    animation: Animation, free: Decomposition, hierarchy: JointHierarchy, importance: np.ndarray | None
) -> tuple[AnimationMatrix, VertexState, np.ndarray, np.ndarray]:
    """The animation; the vertices, motion (F, P, 3, 4) and joints (P, 3) to start from, in solver units."""
    matrix = AnimationMatrix(animation.frames)
    points, motion = matrix.from_object_space(free.rest, free.transforms)
    # Pruning may have left fewer bones than a vertex has slots.
    skin = strongest_first(free.bones, free.weights, free.bone_count)
    state = VertexState(homogeneous(points), *skin, checked_importance(importance, animation))
    return matrix, state, motion, matrix.points_from_object_space(hierarchy.joints)


def _held_parents(free: Decomposition, hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) the parents, −1 where no joint can hold a bone: see ``solve_jointed``."""
    low, high = np.full((free.bone_count, 3), np.inf), np.full((free.bone_count, 3), -np.inf)
    strongest = strongest_bones(free.bones, free.weights)
    np.minimum.at(low, strongest, free.rest)
    np.maximum.at(high, strongest, free.rest)
    for bone in reversed(parents_first(hierarchy.parents)):
        parent = hierarchy.parents[bone]
        if parent >= 0:
            low[parent], high[parent] = np.minimum(low[parent], low[bone]), np.maximum(high[parent], high[bone])
    size = np.linalg.norm(np.maximum(high - low, 0.0), axis=1)
    # Else a bone of one vertex, which has no size, would hang from nothing.
    size = np.maximum(size, _SLIGHT * diagonal(free.rest))
    return np.where(np.isfinite(low[:, 0]) & (hierarchy.slips > size), -1, hierarchy.parents)


class _JointedSolve:
    """Vertices, motion (F, P, 3, 4) and joints of a skeleton, improved in turn."""

    def __init__(
        self, matrix: AnimationMatrix, state: VertexState, motion: np.ndarray, skeleton: MovingJoints, optimize: bool
    ):
        """optimize: whether the rest pose is solved for, too."""
        self.matrix, self.state, self.motion, self.skeleton = matrix, state, motion, skeleton
        self._optimize = optimize

    def improve_on_sample(self, rounds: int, partners: np.ndarray | None, plane: float, progress: Progress) -> None:
        """Motion and joints for some of the vertices, then weights for all; see MovingJoints.mirror for the others."""
        chosen, share = _sample(self.state, self.skeleton.count)
        sample, few = self.matrix.of_vertices(chosen), self.state.of(chosen)
        few.importance = share if few.importance is None else share * few.importance
        equations = collect_equations(few, sample, self.skeleton.count)
        for number in range(rounds):
            self.motion = self.skeleton.moved(equations, self.motion, _SWEEPS)
            part = span(progress, 0.5 * number / rounds, 0.5 * (number + 1) / rounds)
            if number == rounds // 2:
                self.skeleton.mirror(partners, plane)
            if number < rounds // 2:
                equations = self._sweep(few, sample, part)
            else:
                self._fit_vertices(few, sample, part)
                equations = collect_equations(few, sample, self.skeleton.count)
        self.motion = self.skeleton.moved(equations, self.motion, _SWEEPS)
        self._sweep(self.state, self.matrix, span(progress, 0.5, 0.6))

    def leave_idle_bones_out(self, partners: np.ndarray | None, plane: float) -> np.ndarray | None:
        """Remove bones that are no vertex's strongest and carry no such bone; ``partners`` without them."""
        kept = self.skeleton.bearing(strongest_bones(self.state.bones, self.state.weights))
        weights = np.where(kept[self.state.bones], self.state.weights, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        bones, weights = strongest_first(self.state.bones, weights, int(kept.sum()))
        self.state = replace(self.state, bones=(np.cumsum(kept) - 1)[bones].astype(np.int32), weights=weights)
        self.motion, self.skeleton = self.motion[:, kept], self.skeleton.only(kept)
        partners = None if partners is None else places_of(partners, kept)
        self.skeleton.mirror(partners, plane)
        return partners

    def improve(self, progress: Progress) -> None:
        """One round over all vertices, whose weights stay within the limits of posing."""
        self.move(_SWEEPS)
        self._fit_vertices(self.state, self.matrix, progress)

    def move(self, sweeps: int) -> None:
        """Better motion and joints for the present vertices."""
        self.motion = self.skeleton.moved(self._equations(), self.motion, sweeps)

    def slide(self, most: float, progress: Progress) -> None:
        """Motion and vertices in turn, where bones may leave their joints by up to ``most``, in solver units."""
        for number in range(_SLIPPING_ROUNDS):
            self.motion = self.skeleton.slid(self._equations(), self.motion, most)
            part = span(progress, number / _SLIPPING_ROUNDS, (number + 1) / _SLIPPING_ROUNDS)
            self._fit_vertices(self.state, self.matrix, part)
        self.motion = self.skeleton.slid(self._equations(), self.motion, most)

    def _equations(self) -> NormalEquations:
        return collect_equations(self.state, self.matrix, self.skeleton.count)

    def _fit_vertices(self, state: VertexState, matrix: AnimationMatrix, progress: Progress) -> None:
        self._sweep(state, matrix, progress)
        self._limit(state, matrix)

    def limit(self) -> None:
        """Weights of all vertices within the limits of posing."""
        self._limit(self.state, self.matrix)

    def _limit(self, state: VertexState, matrix: AnimationMatrix) -> None:
        limits = PoseLimits(self.skeleton.parents, self.skeleton.heads)
        model = BoneModel(to_rows(self.motion))
        limits.keep(model, state, matrix, dearer_error(model, state, matrix), self._optimize)

    def _sweep(self, state: VertexState, matrix: AnimationMatrix, progress: Progress) -> NormalEquations:
        model = BoneModel(to_rows(self.motion))
        return sweep_vertices(model, state, matrix, progress, "Joints", optimize_rest_pose=self._optimize)


def _sample(state: VertexState, bone_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n,) of each bone, evenly from the list, and how many (n,) each of them stands for, in the mean 1."""
    share = min(1.0, _SAMPLE / len(state.points))
    chosen, stands_for = [], []
    for mine in members(strongest_bones(state.bones, state.weights), bone_count):
        count = min(len(mine), max(_LEAST_OF_BONE, int(np.ceil(share * len(mine)))))
        chosen.append(mine[np.linspace(0, max(len(mine) - 1, 0), count).astype(int)])
        stands_for.append(np.full(count, len(mine) / max(count, 1)))
    share = np.concatenate(stands_for)
    return np.concatenate(chosen), share / share.mean()


def _finished(
    animation: Animation,
    matrix: AnimationMatrix,
    free: Decomposition,
    state: VertexState,
    motion: np.ndarray,
    settings: Settings,
    progress: Progress,
) -> Decomposition:
    """``free`` with the vertices of ``state`` and bones of ``motion`` (F, P, 3, 4), measured, and its shapes anew."""
    rest, transforms = matrix.to_object_space(state.points[:, :3], motion)
    bones, weights = padded_influences(state.bones, state.weights, free.bones.shape[1])
    result = replace(free, rest=rest, transforms=transforms, bones=bones, weights=weights, residual=None)
    result = replace(result, bone_axes=free.bone_axes[: motion.shape[1]])
    if settings.residual_shapes:
        shapes = fit_residual_shapes(
            animation.frames, rest, bones, weights, transforms, settings.residual_shapes, span(progress, 0.0, 0.6)
        )
        result = replace(result, residual=shapes)
    meter = measured(animation.frames, result, span(progress, 0.6, 1.0))
    return replace(result, e_rms=meter.e_rms, max_error=meter.max_error)


def _slips(transforms: np.ndarray, parents: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """(P,) how far apart bones and parents carry the joints (P, 3), root mean square; 0 without a parent."""
    linked = np.flatnonzero(parents >= 0)
    apart = transforms[:, linked] - transforms[:, parents[linked]]
    offsets = np.einsum("fpij,pj->fpi", apart[..., :3], joints[linked]) + apart[..., 3]
    slips = np.zeros(len(parents))
    slips[linked] = np.sqrt(np.square(offsets).sum(axis=2).mean(axis=0))
    return slips
