# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton that was edited, solved again: weights to start from, then weights and motion in turn."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from ..animation import Animation, check_animation
from ..binding.influence_rows import padded_influences, tidy_influences
from ..dense import one_blas_thread
from ..progress import Progress, ignore, span
from ..seams import with_seams
from ..segments import segment_distances
from ..strongest import strongest_bones
from .bone_model import BoneModel, homogeneous
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
# A vertex that has kept more of its weights than it lost shares the rest among its bones.
_LEAST_LEFT = 0.5
# A bone that an earlier solve has left with less than this share of the mean part gets no more than this multiple of
# what it had: a pouch that moves like the body whose bone was deleted would take that over.
_SMALL, _MOST_GROWTH = 1 / 8, 2.0


@dataclass(frozen=True, eq=False)
class FirstWeights:
    """Weights to start from: bones and weights (N, K) whose rows sum to 1. new (P,) bool: bones that had none before;
    lost (N,) bool: vertices whose bones are gone, and that have one of a neighbor for the time being."""

    bones: np.ndarray
    weights: np.ndarray
    new: np.ndarray
    lost: np.ndarray


def first_weights(
    rest: np.ndarray, edges: np.ndarray, bones: np.ndarray, weights: np.ndarray, ends: np.ndarray, parents: np.ndarray
) -> FirstWeights:
    """Weights to start from where bones were added and removed.

    rest (N, 3), edges (E, 2); bones, weights (N, K) as stored: of the bones that are left, and 0 of new bones.
    ends (P, 2, 3): heads and tails; parents (P,) int. What a vertex has lost of its weights goes to the strongest bone
    of a near vertex that kept them, see ``_sources``. A new bone takes the vertices that are nearer to it than to their
    own bone, if that is next to it in the skeleton, or if nothing is.
    """
    new = np.bincount(bones[weights > 0], minlength=len(ends)) == 0
    bones, weights, lost = _handed_on(rest, edges, bones, weights)
    own, axes = strongest_bones(bones, weights), ends[:, 1] - ends[:, 0]
    best, distances = own.copy(), segment_distances(rest, ends[own, 0], axes[own])
    for bone, beside in zip(np.flatnonzero(new), _beside(parents, new), strict=True):
        distance = segment_distances(rest, ends[bone, 0], axes[bone])
        nearer = beside[own] & (distance < distances)
        best[nearer], distances[nearer] = bone, distance[nearer]
    taken = best != own
    bones[taken], weights[taken] = best[taken, None], 0.0
    weights[taken, 0] = 1.0
    return FirstWeights(bones, weights, new, lost & ~taken)


def _handed_on(
    rest: np.ndarray, edges: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (N, K + 1) that sum to 1, with one bone for what vertices have lost, and which have lost most (N,) bool."""
    sums = weights.sum(axis=1)
    kept = sums > _LEAST_LEFT
    kept = kept if kept.any() else sums > 0
    heirs = owners = strongest_bones(bones, weights)
    if kept.any() and not kept.all():
        heirs = owners[_sources(rest, edges, kept, owners)]
    weights = np.where(kept[:, None], weights / np.where(kept, sums, 1.0)[:, None], weights)
    missing = np.where(kept, 0.0, 1.0 - weights.sum(axis=1))
    return np.column_stack([bones, heirs]), np.column_stack([weights, missing]), ~kept


def _sources(rest: np.ndarray, edges: np.ndarray, kept: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(N,) the vertex nearest to each among those ``kept`` (N,) bool, with the strongest bones ``owners`` (N,).

    Along the edges and seams, else in space. Along them, distances count less the more vertices a bone has, so that a
    small one, such as a pouch, does not take over most of the body that it lies on.
    """
    count, sources = len(rest), np.where(kept, np.arange(len(rest)), -1)
    lost, edges = ~kept, with_seams(rest, edges)
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[lost[both[:, 1]]]
    lengths = np.maximum(np.linalg.norm(rest[both[:, 0]] - rest[both[:, 1]], axis=1), 1e-30)
    graph = sparse.csr_matrix((lengths, both.T), shape=(count, count))
    border = np.unique(both[kept[both[:, 0]], 0])
    parts, nearest = np.bincount(owners[kept], minlength=owners.max() + 1), np.full(count, np.inf)
    for owner in np.unique(owners[border]):
        own = border[owners[border] == owner]
        away, _, found = dijkstra(graph, indices=own, min_only=True, return_predecessors=True)
        away = away / parts[owner]
        nearer = lost & (away < nearest)
        nearest[nearer], sources[nearer] = away[nearer], found[nearer]
    apart = np.flatnonzero(sources < 0)
    if len(apart):
        given = np.flatnonzero(kept)
        sources[apart] = given[cKDTree(rest[given]).query(rest[apart])[1]]
    return sources


def _beside(parents: np.ndarray, new: np.ndarray) -> list[np.ndarray]:
    """For each new bone (P,) bool: the old bones next to it in the skeleton, past other new ones; all if none is."""
    links = [(bone, parent) for bone, parent in enumerate(parents) if parent >= 0]
    neighbors = np.zeros((len(parents), len(parents)), bool)
    for bone, parent in links:
        neighbors[bone, parent] = neighbors[parent, bone] = True
    found = []
    for bone in np.flatnonzero(new):
        reached = np.zeros(len(parents), bool)
        waiting = [bone]
        while waiting:
            at = waiting.pop()
            if not reached[at]:
                reached[at] = True
                waiting += np.flatnonzero(neighbors[at] & ~reached).tolist() if new[at] else []
        found.append(reached & ~new if (reached & ~new).any() else ~new)
    return found


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
    large part, and have about the few vertices that they had."""

    transforms: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    heads: np.ndarray
    new: np.ndarray
    kept_small: np.ndarray


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
) -> SolvedAgain:
    """Motion, weights and joints of a skeleton that bring ``rest`` (N, 3) closest to the animation, within
    near_weights.PoseLimits, starting from the ``stored`` weights of the bones that are left.

    If nothing was changed, all joints hold in the skeleton's motion, and the stored weights are within the limits, then
    without smoothness the error does not rise. What is left as for ``solve_weights``, which see for the errors raised.
    """
    check_animation(animation)
    start = first_weights(rest, edges, stored.bones, stored.weights, skeleton.ends, skeleton.parents)
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
        self._left_out, self._new_joints = start.lost, None
        self._posable = _PosableWeights(animation, rest, self._given, skeleton.parents)
        amounts = self._amounts(start.bones, start.weights)
        small = skeleton.known & ~start.new & (amounts < _SMALL * amounts.mean())
        self._most = np.where(small, _MOST_GROWTH * amounts, np.inf)
        self._kept_small = np.zeros(len(skeleton.parents), bool)

    def result(self) -> SolvedAgain:
        skin = self._given.bones, self._given.weights
        return SolvedAgain(self._transforms, *skin, self._heads, self._start.new, self._kept_small)

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
