# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones of a skeleton, solved again: for posing by hand, and so that joints do not slip (after Le & Deng 2014).

``solve_posable`` limits weights alone. In ``solve_jointed``, a bone j turns about its joint h_j, which its parent
carries: M_j v = B_j (v − h_j) + M_parent h_j. Three steps lower the same error in turn. The rotations, and the motion
of the roots, for given joints and weights: see partial_transforms. The joints for given rotations: the translations t_j
= t_parent + (B_parent − B_j) h_j are linear in all joints, so that they are one system of 3P unknowns, with sums over
the frames alone. Weights and rest pose for given motion: as in any solve, within the limits of posing.
"""

from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..binding.influence_rows import padded_influences
from ..bone_order import parents_first
from ..dense import one_blas_thread, product
from ..joint_hierarchy import JointHierarchy
from ..progress import Progress, checkpoint, ignore, span
from ..skeleton_symmetry import symmetric_joints
from ..strongest import strongest_bones, strongest_first
from . import rigid
from .bone_model import BoneModel, homogeneous
from .near_weights import PoseLimits, squared_error
from .partial_transforms import JointedBones
from .reduction import AnimationMatrix
from .residual import fit_residual_shapes
from .smooth_solution import smooth_solution
from .solver import checked_importance, measured
from .sweeps import collect_equations, sweep_vertices
from .transforms import NormalEquations, to_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState

_ROUNDS_PER_ITERATION, _SWEEPS, _LAST_SWEEPS = 2, 2, 12
# Rounds of weights within the limits of posing, and of bones that move freely.
_POSABLE_ROUNDS = 3
# Rounds of bones that may leave their joints, and sweeps in each.
_SLIPPING_ROUNDS, _SLIPPING_SWEEPS = 8, 3
# Weights for posing may raise the error by this factor, and always to this root mean square (of the unit ball), which
# nobody sees.
_DEARER, _UNSEEN = 1.2, 2e-4
# Radians (root mean square): joints stay near where they were found along directions in which bones turn less than
# that, such as the axis of a hinge.
_FAINT_TURN = 0.03
# Of the unit ball: joints that would move farther than that from where they were found are held more firmly, in so many
# attempts.
_FARTHEST, _FIRMER = 0.12, 4
# Vertices, squared weights added up: joints that carry less, such as those of bones that lost all vertices, stay.
_LEAST_MASS = 1e-9
# Of the unit ball: a body's diagonal.
_DIAGONAL = 2.0


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
    matrix = AnimationMatrix(animation.frames)
    points, motion = matrix.from_object_space(free.rest, free.transforms)
    skin = strongest_first(free.bones, free.weights, free.bone_count)
    state = VertexState(homogeneous(points), *skin, checked_importance(importance, animation))
    limits = PoseLimits(hierarchy.parents, (hierarchy.joints - matrix.means[0]) / matrix.radius, points)
    if not limits.broken(state).any():
        return free, hierarchy
    most = _dearer(BoneModel(to_rows(motion)), state, matrix)
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
    the hierarchy that is returned has them, with slips of 0. settings: those of ``free``. On a symmetric body they
    mirror each other in the end. Bones that are no vertex's strongest, and carry no such bone, are left out halfway;
    from then on, weights stay within near_weights.PoseLimits. slip: how far, as a share of the rest pose's diagonal, a
    bone may leave its joint in the end; with more than 0, the joints are not held. importance (N,): as for
    ``decompose``. All frames count alike, and so do large and small errors, whatever the emphasis. Raises BadSettings
    (importances that are no such numbers), Cancelled.
    """
    matrix = AnimationMatrix(animation.frames)
    points, motion = matrix.from_object_space(free.rest, free.transforms)
    # Pruning may have left fewer bones than a vertex has slots.
    skin = strongest_first(free.bones, free.weights, free.bone_count)
    state = VertexState(homogeneous(points), *skin, checked_importance(importance, animation))
    skeleton = _MovingJoints((hierarchy.joints - matrix.means[0]) / matrix.radius, hierarchy.parents)
    partners = hierarchy.partners
    part, rounds = span(progress, 0.0, 0.7), _ROUNDS_PER_ITERATION * settings.iterations
    for number in range(rounds):
        motion = skeleton.moved(collect_equations(state, matrix, skeleton.count), motion, _SWEEPS)
        model, progress_of_round = BoneModel(to_rows(motion)), span(part, number / rounds, (number + 1) / rounds)
        optimize = settings.optimize_rest_pose
        sweep_vertices(model, state, matrix, progress_of_round, "Joints", optimize_rest_pose=optimize)
        if number == rounds // 2:
            kept = _bearing(strongest_bones(state.bones, state.weights), skeleton.parents)
            state, skeleton = _only(kept, state, skeleton)
            motion = motion[:, kept]
            partners = None if partners is None else _places_of(partners, kept)
            skeleton.mirror(partners, (hierarchy.plane - matrix.means[0][0]) / matrix.radius)
        if number >= rounds // 2:
            limits = PoseLimits(skeleton.parents, skeleton.heads, points)
            limits.keep(model, state, matrix, _dearer(model, state, matrix), optimize)
    if settings.smoothness:
        smoothing = matrix, animation.triangles, motion, None, False, state, settings.smoothness
        state = smooth_solution(*smoothing, span(progress, 0.7, 0.8))[1]
    motion = skeleton.moved(collect_equations(state, matrix, skeleton.count), motion, _LAST_SWEEPS)
    farthest = slip * float(np.linalg.norm(np.ptp(points, axis=0)))
    for _ in range(_SLIPPING_ROUNDS if slip else 0):
        motion = skeleton.slid(collect_equations(state, matrix, skeleton.count), motion, farthest)
        model = BoneModel(to_rows(motion))
        sweep_vertices(model, state, matrix, ignore, "Joints", optimize_rest_pose=settings.optimize_rest_pose)
        limits = PoseLimits(skeleton.parents, skeleton.heads, points)
        limits.keep(model, state, matrix, _dearer(model, state, matrix), settings.optimize_rest_pose)
        checkpoint(progress, 0.85, "Joints")
    if slip:
        motion = skeleton.slid(collect_equations(state, matrix, skeleton.count), motion, farthest)
    checkpoint(progress, 0.85, "Joints")
    result = _finished(animation, matrix, free, state, motion, settings, span(progress, 0.85, 1.0))
    joints = skeleton.heads * matrix.radius + matrix.means[0]
    slips = _slips(result.transforms, skeleton.parents, joints) if slip else np.zeros(skeleton.count)
    jointed = JointHierarchy(skeleton.parents, joints, slips, partners, hierarchy.plane, held=not slip)
    return result, jointed


def _dearer(model: BoneModel, state: VertexState, matrix: AnimationMatrix) -> float:
    """The squared error that weights for posing may lead to."""
    return max(_DEARER**2 * squared_error(model, state, matrix), matrix.squared_tolerance(_UNSEEN))


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


class _MovingJoints:
    """Rigid bones on joints, which move: ``heads`` (P, 3), and where they were ``found`` (P, 3), in solver units."""

    def __init__(self, heads: np.ndarray, parents: np.ndarray, found: np.ndarray | None = None):
        self.heads, self.parents = heads, parents
        self.found = heads if found is None else found
        self.count = len(parents)
        self._partners: np.ndarray | None = None
        self._plane = 0.0

    def mirror(self, partners: np.ndarray | None, plane: float) -> None:
        """Make joints of ``partners`` (P,) mirror each other in the plane x = ``plane`` from now on."""
        self._partners = None if partners is None else _images(partners, self.parents)
        self._plane = plane
        self.heads = self._mirrored(self.heads)

    def _mirrored(self, heads: np.ndarray) -> np.ndarray:
        if self._partners is None:
            return heads
        return symmetric_joints(heads, self._partners, self._plane, _DIAGONAL)

    def moved(self, equations: NormalEquations, motion: np.ndarray, sweeps: int) -> np.ndarray:
        """Better motion (F, P, 3, 4) by so many sweeps, each over all bones and then over all joints."""
        for _ in range(sweeps):
            motion, error = JointedBones(equations, self.heads, self.parents).swept(motion)
            trial = self.heads + _step_of_joints(equations, motion, self.found - self.heads, self.parents)
            trial = self._mirrored(trial)
            moved = JointedBones(equations, trial, self.parents).held(motion)
            if equations.squared_error(to_rows(moved)) < error:
                motion, self.heads = moved, trial
        return motion

    def slid(self, equations: NormalEquations, motion: np.ndarray, most: float) -> np.ndarray:
        """Better motion (F, P, 3, 4) of bones that may leave their joints by up to ``most``."""
        bones = JointedBones(equations, self.heads, self.parents)
        for _ in range(_SLIPPING_SWEEPS):
            motion = bones.slid(motion, most)
        return motion


def _images(partners: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(P,) the bone whose joint mirrors that of each bone, −1 without one; ``partners`` (P,) of the bones.

    A joint is that of two bones, and the child has its position: of a child that mirrors its own parent, the parent
    would have it, whose position means nothing where it is a root.
    """
    above = np.where(parents >= 0, partners[parents], -1)
    as_child = (partners >= 0) & (parents[partners] == above) & ((above >= 0) | (parents < 0))
    turned = (above >= 0) & (partners >= 0) & (parents[above] == partners)
    return np.where(as_child, partners, np.where(turned, above, -1))


def _bearing(strongest: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(P,) bool: whether a bone is the strongest of some vertex of ``strongest`` (N,), or has such a bone below it."""
    bearing = np.bincount(strongest, minlength=len(parents)) > 0
    for bone in reversed(parents_first(parents)):
        if bearing[bone] and parents[bone] >= 0:
            bearing[parents[bone]] = True
    return bearing


def _only(kept: np.ndarray, state: VertexState, skeleton: _MovingJoints) -> tuple[VertexState, _MovingJoints]:
    """State and bones with the bones ``kept`` (P,) alone, whose parents are kept, too."""
    weights = np.where(kept[state.bones], state.weights, 0.0)
    bones, weights = strongest_first(state.bones, weights / weights.sum(axis=1, keepdims=True), int(kept.sum()))
    parents = _places_of(skeleton.parents, kept).astype(np.int32)
    few = _MovingJoints(skeleton.heads[kept], parents, skeleton.found[kept])
    return replace(state, bones=(np.cumsum(kept) - 1)[bones].astype(np.int32), weights=weights), few


def _places_of(others: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """``others`` (P,), the index of a bone or −1 for each bone, of and among the bones ``kept`` (P,) alone."""
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return np.where(others >= 0, place[others], -1)[kept]


def _step_of_joints(
    equations: NormalEquations, motion: np.ndarray, back: np.ndarray, parents: np.ndarray
) -> np.ndarray:
    """(P, 3) by which the joints move to lower the error most, all rotations and the motion of the roots given.

    back (P, 3): the steps that would take them to where they were found.
    """
    bone_count, frame_count = len(parents), len(motion)
    below = np.eye(bone_count)
    for bone in reversed(parents_first(parents)):
        if parents[bone] >= 0:
            below[parents[bone]] += below[bone]
    children = np.flatnonzero(parents >= 0)
    if len(children) == 0:
        return np.zeros((bone_count, 3))
    below = below[children]
    # What a step of each joint moves, by how much: (B_parent − B_bone) of all below the joint.
    turn = motion[:, parents[children], :, :3] - motion[:, children, :, :3]
    translations = np.arange(3, 4 * bone_count, 4)
    mass = below @ equations.moments[np.ix_(translations, translations)] @ below.T
    left = equations.products[translations] - product(
        np.ascontiguousarray(equations.moments[translations]), to_rows(motion)
    )
    pull = (below @ left).reshape(len(children), frame_count, 3)
    count = len(children)
    flat = turn.transpose(1, 3, 0, 2).reshape(3 * count, 3 * frame_count)
    system = product(flat, flat.T).reshape(count, 3, count, 3) * mass[:, None, :, None]
    right = np.einsum("fcij,cfi->cj", turn, pull)
    faint = frame_count * _FAINT_TURN**2 * np.maximum(np.diag(mass), max(1e-9 * mass.trace(), _LEAST_MASS))
    step = np.zeros((bone_count, 3))
    for _ in range(_FIRMER):
        held = system + np.einsum("cd,ij->cidj", np.diag(faint), np.eye(3))
        drawn = right + faint[:, None] * back[children]
        step[children] = np.linalg.solve(held.reshape(3 * count, 3 * count), drawn.ravel()).reshape(count, 3)
        away = np.linalg.norm(step - back, axis=1)[children]
        if away.max() <= _FARTHEST:
            break
        faint *= np.maximum(away / (0.5 * _FARTHEST), 1.0) ** 2
    return step
