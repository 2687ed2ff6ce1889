# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton that was edited, solved again: weights and motion in turn."""

from dataclasses import dataclass, replace

import numpy as np

from ..animation import Animation, check_animation
from ..binding.influence_rows import padded_influences, tidy_influences
from ..dense import one_blas_thread
from ..progress import Progress, ignore, span
from .bone_model import BoneModel, homogeneous
from .first_weights import FirstWeights, first_weights
from .near_weights import PoseLimits
from .new_joints import NewJoints
from .partial import Given, solve_weights
from .partial_transforms import Joints, solve_transforms
from .reduction import AnimationMatrix
from .transforms import to_rows
from .vertex_step import VertexState

# Weights and motion in turn: the error falls by less than a hundredth in the rounds after the third.
_ROUNDS = 3
# The share of the time that finding joints takes.
_FINDING = 0.15
# A bone that an earlier solve has left with less than this share of the mean part gets no more than this multiple of
# what it had: a pouch that moves like the body whose bone was deleted would take that over.
_SMALL, _MOST_GROWTH = 1 / 8, 2.0


@dataclass(frozen=True, eq=False)
class EditedSkeleton:
    """P rigid bones as their user has them: the ``fixed`` (P,) bool come last, have no weights and keep the ``motion``
    (F, P, 3, 4); the Q others may start from it.

    joints: of all, held or not. Of the Q others, parents (Q,) int: in the skeleton, among themselves; ends (Q, 2, 3):
    heads and tails; movable (Q,) bool: those whose joints are found anew, see NewJoints; known (Q,) bool: those that an
    earlier solve has found or kept.
    """

    joints: Joints
    parents: np.ndarray
    ends: np.ndarray
    motion: np.ndarray
    fixed: np.ndarray
    movable: np.ndarray
    known: np.ndarray


@dataclass(frozen=True, eq=False)
class SolvedAgain:
    """Of the Q bones that were solved for: transforms (F, Q, 3, 4), bones and weights (N, K), heads (Q, 3): their
    joints; new (Q,) bool: those that had no vertices before; kept_small (Q,) bool: those that would have taken over a
    large part, and have about the few vertices that they had. lost (N,) bool: vertices whose bone is gone."""

    transforms: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    heads: np.ndarray
    new: np.ndarray
    kept_small: np.ndarray
    lost: np.ndarray


def solve_again(
    animation: Animation,
    rest: np.ndarray,
    edges: np.ndarray,
    stored: Given,
    skeleton: EditedSkeleton,
    max_influences: int,
    progress: Progress = ignore,
    *,
    smoothness: float = 0.0,
    lost: np.ndarray | None = None,
) -> SolvedAgain:
    """Motion, weights and joints of a skeleton that bring ``rest`` (N, 3) closest to the animation, within
    near_weights.PoseLimits, starting from the ``stored`` weights of the bones that are left.

    lost (N,) bool: vertices that were lost in an earlier solve, and stay so unless there are new bones.
    If nothing was changed, all joints hold in the skeleton's motion, and the stored weights are within the limits, then
    without smoothness the error does not rise. What is left as for ``solve_weights``, which see for the errors raised.
    """
    check_animation(animation)
    start = first_weights(rest, edges, stored.bones, stored.weights, skeleton.ends, skeleton.parents)
    if lost is not None and not start.new.any() and not (start.lost | lost).all():
        start = replace(start, lost=start.lost | lost)
    solution = _Alternation(animation, rest, edges, stored, skeleton, start, (max_influences, smoothness))
    if skeleton.movable.any():
        solution.find_joints(span(progress, 0.0, _FINDING))
        progress = span(progress, _FINDING, 1.0)
    for number in range(_ROUNDS):
        part = span(progress, number / (_ROUNDS + 1), (number + 1) / (_ROUNDS + 1))
        solution.solve_motion(span(part, 0.0, 0.4))
        solution.move_joints()
        solution.solve_weights(span(part, 0.4, 1.0))
    solution.solve_motion(span(progress, _ROUNDS / (_ROUNDS + 1), 1.0))
    return solution.result()


class _Alternation:
    """Motion and weights, each solved for the present other. settings: influences and smoothness.

    Bones that followed lost vertices from the beginning would give up their own: a thigh would become the hips. So they
    first move as what they have kept tells, for which all weights are solved. Then they move for lost vertices, too,
    and the weights of these alone are solved.
    """

    def __init__(
        self,
        animation: Animation,
        rest: np.ndarray,
        edges: np.ndarray,
        stored: Given,
        skeleton: EditedSkeleton,
        start: FirstWeights,
        settings: tuple[int, float],
    ):
        self._animation, self._rest, self._edges, self._skeleton, self._start = animation, rest, edges, skeleton, start
        self._max_influences, self._smoothness = settings
        self._given = replace(stored, bones=start.bones, weights=start.weights)
        self._joints, self._motion = skeleton.joints, skeleton.motion.copy()
        self._left_out = start.lost
        self._new_joints: NewJoints | None = None
        self._posable = _PosableWeights(animation, rest, self._given, skeleton.parents)
        amounts = self._amounts(start.bones, start.weights)
        small = skeleton.known & ~start.new & (amounts < _SMALL * amounts.mean())
        self._most = np.where(small, _MOST_GROWTH * amounts, np.inf)
        self._kept_small = np.zeros(len(skeleton.parents), bool)

    def result(self) -> SolvedAgain:
        skin = self._given.bones, self._given.weights
        return SolvedAgain(self._transforms, *skin, self._heads, self._start.new, self._kept_small, self._start.lost)

    @property
    def _transforms(self) -> np.ndarray:
        return self._motion[:, : len(self._skeleton.parents)]

    @property
    def _heads(self) -> np.ndarray:
        return self._joints.heads[: len(self._skeleton.parents)]

    @property
    def _moving(self) -> tuple[np.ndarray, np.ndarray]:
        """bones and weights (N, K) that the motion is for."""
        return self._given.bones, np.where(self._left_out[:, None], 0.0, self._given.weights)

    def find_joints(self, progress: Progress) -> None:
        edited = self._skeleton
        given = self._moving, self._joints, edited.parents, edited.movable, self._motion, edited.fixed
        self._new_joints = NewJoints(self._animation, self._rest, *given, progress)
        self._joints = self._new_joints.joints

    def move_joints(self) -> None:
        """Move the joints that are found anew, and the bones with them."""
        if self._new_joints is not None:
            self._joints = self._new_joints.moved(self._moving, self._motion)
            self.solve_motion(ignore)

    def solve_motion(self, progress: Progress) -> None:
        fixed = self._skeleton.fixed
        solved = solve_transforms(
            self._animation,
            self._rest,
            *self._moving,
            len(fixed),
            "RIGID",
            joints=self._joints,
            given=self._motion,
            fixed=fixed,
            progress=progress,
        )
        self._transforms[:] = solved[:, ~fixed]

    def solve_weights(self, progress: Progress) -> None:
        skin = self._weighted(progress)
        grown = self._amounts(*skin) > self._most
        if grown.any():
            self._kept_small |= grown
            self._given = replace(self._given, locked_bones=self._given.locked_bones | grown)
            self._posable = _PosableWeights(self._animation, self._rest, self._given, self._skeleton.parents)
            skin = self._weighted(progress)
        former = self._given.bones, self._given.weights
        bones, weights = self._posable.limited(self._transforms, self._heads, skin, former)
        stays = self._given.locked_vertices
        if self._left_out.any():
            stays, self._left_out = stays | ~self._left_out, np.zeros(len(stays), bool)
        self._given = replace(self._given, bones=bones, weights=weights, locked_vertices=stays)

    def _weighted(self, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
        given = self._animation, self._rest, self._transforms, self._max_influences, progress
        return solve_weights(*given, smoothness=self._smoothness, given=self._given, edges=self._edges)

    def _amounts(self, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(Q,) how many vertices each bone moves, by their weights."""
        return np.bincount(bones.ravel(), weights.ravel(), len(self._skeleton.parents))


class _PosableWeights:
    """Keeps weights within the limits of posing, but for vertices that are locked or have weights of locked bones."""

    def __init__(self, animation: Animation, rest: np.ndarray, start: Given, parents: np.ndarray):
        self._rest, self._parents, self._locked = rest, parents, start.locked_bones
        matrix = AnimationMatrix(animation.frames)
        held = start.locked_vertices | (start.locked_bones[start.bones] & (start.weights > 0)).any(axis=1)
        self._free = np.flatnonzero(~held)
        self._matrix = matrix.of_vertices(self._free) if held.any() else matrix

    @one_blas_thread()
    def limited(
        self,
        transforms: np.ndarray,
        heads: np.ndarray,
        skin: tuple[np.ndarray, np.ndarray],
        former: tuple[np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """bones and weights (N, K) within the limits about ``heads`` (P, 3), from those of ``skin``, or as they were in
        ``former``."""
        (bones, weights), width = skin, skin[0].shape[1]
        limits = PoseLimits(self._parents, self._matrix.points_from_object_space(heads), len(transforms), self._locked)
        points = homogeneous(self._matrix.points_from_object_space(self._rest[self._free]))
        state = VertexState(points, bones[self._free], weights[self._free])
        earlier = tidy_influences(former[0][self._free], former[1][self._free], width)
        before = VertexState(points, *padded_influences(*earlier, width))
        model = BoneModel(to_rows(self._matrix.from_object_space(self._rest, transforms)[1]))
        limits.keep(model, state, self._matrix, optimize_rest_pose=False, former=before)
        bones, weights = bones.copy(), weights.copy()
        bones[self._free], weights[self._free] = state.bones, state.weights
        return bones, weights
