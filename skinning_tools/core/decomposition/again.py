# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton that was edited, solved again: weights and motion in turn."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..animation import Animation, check_animation
from ..bone_order import linked_bones
from ..deform.influences import weight_matrix
from ..geometry import diagonal
from ..joint_hierarchy import moments
from ..progress import Progress, ignore, span
from ..strongest import strongest_bones
from .first_weights import FirstWeights, first_weights
from .new_joints import NewJoints
from .partial import Given, solve_weights
from .partial_transforms import Joints, solve_transforms
from .posable_weights import PosableWeights
from .reduction import AnimationMatrix
from .smoothness import Smoothness, neighbor_weights
from .solver import checked_importance

# Weights and motion in turn: the error falls by less than a hundredth in the rounds after the third.
_ROUNDS = 3
# Weights stay if they are so smooth, by the energy of those that would take their place.
_AS_SMOOTH = 1.1
# The share of the time that finding joints takes.
_FINDING = 0.15
# Of the rest pose's diagonal: bones that move alike take their vertices no farther apart (root mean square).
_ALIKE = 1e-3
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
    importance: np.ndarray | None = None,
) -> SolvedAgain:
    """Motion, weights and joints of a skeleton that bring ``rest`` (N, 3) closest to the animation, within
    near_weights.PoseLimits, starting from the ``stored`` weights of the bones that are left.

    lost (N,) bool: vertices that were lost in an earlier solve, and stay so unless there are new bones. importance
    (N,): as for ``decompose``.
    If no bone is new or gone, all joints hold in the skeleton's motion, and the stored weights are within the limits
    and as smooth as ``smoothness`` asks for, then the error does not rise, in which each vertex counts by its
    importance. What is left as for ``solve_weights``, which see for the errors raised; BadSettings where the
    importances are no such numbers, too.
    """
    check_animation(animation)
    importance = checked_importance(importance, animation)
    start = first_weights(
        rest,
        edges,
        stored.bones,
        stored.weights,
        skeleton.ends,
        skeleton.parents,
        locked=stored.locked_bones,
        lost_before=lost,
    )
    solution = _Alternation(
        animation,
        rest,
        edges,
        stored,
        skeleton,
        start,
        max_influences=max_influences,
        smoothness=smoothness,
        importance=importance,
    )
    if skeleton.movable.any():
        solution.find_joints(span(progress, 0.0, _FINDING))
        progress = span(progress, _FINDING, 1.0)
    for number in range(_ROUNDS):
        part = span(progress, number / (_ROUNDS + 1), (number + 1) / (_ROUNDS + 1))
        solution.solve_motion(span(part, 0.0, 0.2))
        solution.move_joints(span(part, 0.2, 0.4))
        if not number:
            solution.hold_bones_that_move_alike()
        solution.end_round()
        solution.solve_weights(span(part, 0.4, 1.0))
    solution.solve_motion(span(progress, _ROUNDS / (_ROUNDS + 1), 1.0))
    solution.end_round()
    return solution.result()


class _Alternation:
    """Motion and weights, each solved for the present other; the best of the rounds counts.

    Bones that followed lost vertices from the beginning would give up their own: a thigh would become the hips. So they
    first move as what they have kept tells, for which all weights are solved. Then they move for lost vertices, too,
    and the weights of these alone are solved. The limits of posing still change weights of the others: they move with
    the joints, and an influence that has become idle goes. Lost vertices get weights of the bones around them on the
    surface only, and of those next to these in the skeleton where limits of posing ask for it: a foot whose bone is
    gone would follow the other one.
    """

    def __init__(
        self,
        animation: Animation,
        rest: np.ndarray,
        edges: np.ndarray,
        stored: Given,
        skeleton: EditedSkeleton,
        start: FirstWeights,
        *,
        max_influences: int,
        smoothness: float,
        importance: np.ndarray | None,
    ):
        self._animation, self._rest, self._edges, self._skeleton, self._start = animation, rest, edges, skeleton, start
        self._stored, self._matrix = stored, AnimationMatrix(animation.frames)
        self._max_influences, self._smoothness, self._importance = max_influences, smoothness, importance
        self._given = replace(stored, bones=start.bones, weights=start.weights)
        self._joints, self._motion = skeleton.joints, skeleton.motion.copy()
        self._left_out = start.lost
        self._parts = (~start.lost, np.ones(len(skeleton.parents), bool)), *start.around
        self._new_joints: NewJoints | None = None
        self._posable = self._posable_weights()
        amounts = self._amounts(start.bones, start.weights)
        small = skeleton.known & ~start.new & (amounts < _SMALL * amounts.mean())
        self._most = np.where(small, _MOST_GROWTH * amounts, np.inf)
        self._kept_small = np.zeros(len(skeleton.parents), bool)
        self._rounds: list[SolvedAgain] = []

    def end_round(self) -> None:
        given, start, small = self._given, self._start, self._kept_small
        transforms, heads = self._transforms.copy(), self._heads
        self._rounds.append(SolvedAgain(transforms, given.bones, given.weights, heads, start.new, small, start.lost))

    def result(self) -> SolvedAgain:
        rounds = self._rounds if self._first_may_stay() else self._rounds[1:]
        best = min(rounds, key=lambda each: self._posable.squared_error(each.transforms, (each.bones, each.weights)))
        return replace(best, kept_small=self._kept_small)

    def _first_may_stay(self) -> bool:
        """Whether the stored weights are what they would become, but for the error."""
        first, start = self._rounds[0], self._start
        counts = [(each.weights > 0).sum(axis=1) for each in self._rounds[:2]]
        # Where locked bones are more than the limit, they stay.
        if start.new.any() or start.lost.any() or (counts[0] > np.maximum(counts[1], self._max_influences)).any():
            return False
        if self._posable.broken(first.heads, (first.bones, first.weights)):
            return False
        if not self._smoothness:
            return True
        neighbors = Smoothness(neighbor_weights(self._rest, self._animation.triangles, self._edges))
        count = len(self._skeleton.parents)
        energies = [neighbors.energy(weight_matrix(each.bones, each.weights, count)) for each in self._rounds]
        return energies[0] <= _AS_SMOOTH * max(energies[1:])

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
        self._new_joints = NewJoints(
            self._animation,
            self._rest,
            self._moving,
            self._joints,
            edited.parents,
            edited.movable,
            self._motion,
            edited.fixed,
            self._importance,
            progress,
        )
        self._joints = self._new_joints.joints

    def move_joints(self, progress: Progress) -> None:
        """Move the joints that are found anew, and the bones with them."""
        if self._new_joints is not None:
            self._joints = self._new_joints.moved(self._moving, self._motion, span(progress, 0.0, 0.5))
            self.solve_motion(span(progress, 0.5, 1.0))

    def hold_bones_that_move_alike(self) -> None:
        """Lock the weights of known bones that move as others do, such as those of a side that stands still, or of feet
        on the ground. The motion does not tell them apart, so that any weights would do. The largest one stays free.
        Vertices of a new bone follow none that moves as it does but is not next to it in the skeleton."""
        given, known = self._given, ~self._start.new
        alike = self._alike()
        bones = np.flatnonzero(known)
        groups = connected_components(alike[np.ix_(bones, bones)], directed=False)[1]
        order = np.argsort(-self._amounts(given.bones, given.weights)[bones], kind="stable")
        held = known.copy()
        held[bones[order[np.unique(groups[order], return_index=True)[1]]]] = False
        apart = alike & ~linked_bones(self._skeleton.parents)
        owners, ((vertices, near), *around) = strongest_bones(given.bones, given.weights), self._parts
        for bone in np.flatnonzero(~known & apart.any(axis=1)):
            mine = vertices & (owners == bone)
            vertices = vertices & ~mine
            around.append((mine, near & ~apart[bone]))
        self._parts = (vertices, near), *around
        self._lock(held)

    def _alike(self) -> np.ndarray:
        """(Q, Q) bool, symmetric: bones that carry the vertices of either to the same places; none with itself."""
        spreads = moments(self._rest, self._given.bones, self._given.weights, len(self._skeleton.parents))
        alike = np.zeros((len(spreads), len(spreads)), bool)
        for bone, spread in enumerate(spreads):
            apart = self._transforms - self._transforms[:, [bone]]
            moved = np.einsum("fpij,jk,fpik->p", apart, spread, apart) / len(apart)
            alike[bone] = moved < (_ALIKE * diagonal(self._rest)) ** 2
        np.fill_diagonal(alike, False)
        return alike & alike.T

    def _lock(self, bones: np.ndarray) -> None:
        """Keep the weights of ``bones`` (Q,) bool from here on."""
        if bones.any():
            self._given = replace(self._given, locked_bones=self._given.locked_bones | bones)
            self._posable = self._posable_weights()

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
            importance=self._importance,
            progress=progress,
        )
        self._transforms[:] = solved[:, ~fixed]

    def solve_weights(self, progress: Progress) -> None:
        skin = self._weighted(span(progress, 0.0, 0.6))
        grown = self._amounts(*skin) > self._most
        if grown.any():
            self._kept_small |= grown
            self._lock(grown)
            skin = self._weighted(span(progress, 0.6, 1.0))
        former = self._given.bones, self._given.weights
        bones, weights = self._posable.limited(self._transforms, self._heads, skin, former)
        stays = self._given.locked_vertices
        if self._left_out.any():
            stays, self._left_out = stays | ~self._left_out, np.zeros(len(stays), bool)
        self._given = replace(self._given, bones=bones, weights=weights, locked_vertices=stays)

    def _posable_weights(self) -> PosableWeights:
        given = replace(self._given, locked_vertices=self._stored.locked_vertices)
        return PosableWeights(
            self._matrix, self._rest, given, self._skeleton.parents, self._max_influences, self._importance
        )

    def _weighted(self, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
        """bones and weights (N, K), of each part of the vertices for the bones that it may follow."""
        given = self._given
        parts = [
            replace(given, locked_bones=given.locked_bones | ~near, locked_vertices=given.locked_vertices | ~vertices)
            for vertices, near in self._parts
        ]
        parts = [part for part in parts if part.free_vertices.any()]
        skin = given.bones, given.weights
        if not parts and not replace(given, locked_bones=self._stored.locked_bones).free_vertices.any():
            # The solve tells so.
            parts = [given]
        for number, part in enumerate(parts):
            step = span(progress, number / len(parts), (number + 1) / len(parts))
            part = replace(part, bones=skin[0], weights=skin[1])
            skin = solve_weights(
                self._animation,
                self._rest,
                self._transforms,
                self._max_influences,
                step,
                smoothness=self._smoothness,
                given=part,
                edges=self._edges,
            )
        return skin

    def _amounts(self, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(Q,) how many vertices each bone moves, by their weights."""
        return np.bincount(bones.ravel(), weights.ravel(), len(self._skeleton.parents))
