# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton that was edited, solved again: weights to start from, then weights and motion in turn."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from ..animation import Animation, check_animation
from ..binding.influence_rows import padded_influences, tidy_influences
from ..deform.influences import weight_matrix
from ..dense import one_blas_thread
from ..progress import Progress, ignore, span
from ..segments import segment_distances
from .bone_model import BoneModel, homogeneous
from .near_weights import PoseLimits
from .new_joints import NewJoints
from .partial import Given, solve_weights
from .partial_transforms import Joints, skin_equations, solve_transforms
from .reduction import AnimationMatrix
from .smoothness import Smoothness, neighbor_weights
from .transforms import to_rows
from .vertex_step import VertexState

# Weights and motion in turn: the error falls by less than a hundredth in the rounds after the third.
_ROUNDS = 3
# Weights stay if they are so smooth, by the energy of those that would take their place.
_AS_SMOOTH = 1.1
# The share of the time that finding joints takes.
_FINDING = 0.15
# A vertex that has lost more of its weights than it kept takes those of its neighbors.
_LEAST_LEFT = 0.5


def first_weights(
    rest: np.ndarray, edges: np.ndarray, bones: np.ndarray, weights: np.ndarray, ends: np.ndarray, parents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights to start from where bones were added and removed: bones and weights (N, K) whose rows sum to 1.

    rest (N, 3), edges (E, 2); bones, weights (N, K) as stored: of the bones that are left, and 0 of new bones.
    ends (P, 2, 3): heads and tails; parents (P,) int. A vertex without its weights takes those of the nearest vertex
    along the edges that kept them, else of the nearest in space. A new bone takes the vertices that are nearer to it
    than to their own bone, if that is next to it in the skeleton, or if nothing is.
    """
    bones, weights = _handed_on(rest, edges, bones, weights)
    everyone, own = np.arange(len(rest)), np.take_along_axis(bones, weights.argmax(axis=1)[:, None], axis=1)[:, 0]
    new = np.bincount(bones[weights > 0], minlength=len(ends)) == 0
    axes = ends[:, 1] - ends[:, 0]
    best, distances = own.copy(), segment_distances(rest, ends[own, 0], axes[own])
    for bone, beside in zip(np.flatnonzero(new), _beside(parents, new), strict=True):
        distance = segment_distances(rest, ends[bone, 0], axes[bone])
        nearer = beside[own] & (distance < distances)
        best[nearer], distances[nearer] = bone, distance[nearer]
    taken = everyone[best != own]
    bones[taken], weights[taken] = best[taken, None], 0.0
    weights[taken, 0] = 1.0
    return bones, weights


def _handed_on(
    rest: np.ndarray, edges: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that sum to 1, those without their weights from their nearest neighbors."""
    sums = weights.sum(axis=1)
    kept = sums > _LEAST_LEFT
    kept = kept if kept.any() else sums > 0
    given, lost = np.flatnonzero(kept), np.flatnonzero(~kept)
    sources = np.arange(len(rest))
    if len(lost) and len(given):
        lengths = np.linalg.norm(rest[edges[:, 0]] - rest[edges[:, 1]], axis=1)
        graph = sparse.csr_matrix((np.maximum(lengths, 1e-30), edges.T), shape=(len(rest), len(rest)))
        away, _, nearest = dijkstra(graph, directed=False, indices=given, min_only=True, return_predecessors=True)
        sources = np.where(np.isfinite(away), nearest, -1)
        apart = np.flatnonzero(sources < 0)
        if len(apart):
            sources[apart] = given[cKDTree(rest[given]).query(rest[apart])[1]]
    weights = weights[sources]
    return bones[sources], weights / weights.sum(axis=1, keepdims=True)


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


def solve_again(
    animation: Animation,
    rest: np.ndarray,
    start: Given,
    joints: Joints,
    max_influences: int,
    progress: Progress = ignore,
    *,
    parents: np.ndarray,
    given: np.ndarray,
    fixed: np.ndarray,
    smoothness: float = 0.0,
    edges: np.ndarray | None = None,
    movable: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Transforms (F, P, 3, 4) of rigid bones, bones and weights (N, K), and joints (P, 3), that bring ``rest`` (N, 3)
    closest to the animation, starting from the weights ``start``, within near_weights.PoseLimits.

    joints of all P bones, held or not; the bones ``fixed`` (P,), which come last and have no weights, keep the motion
    ``given`` (F, P, 3, 4), and the others, whose ``parents`` in the skeleton are among them, may start from it. If all
    joints hold in it, and ``start`` is within the limits and as smooth as ``smoothness`` asks for, then the error is at
    most that of ``start`` with ``given``. movable, bool: those of the others whose joints are found anew, see
    NewJoints. What is left as for ``solve_weights``, which see for the errors raised.
    """
    check_animation(animation)
    bones, weights, count, given = start.bones, start.weights, len(parents), given.copy()
    posable = _PosableWeights(animation, rest, start, parents)
    moving = None
    if movable is not None and movable.any():
        begin = span(progress, 0.0, _FINDING)
        moving = NewJoints(animation, rest, (bones, weights), joints, parents, movable, given, fixed, begin)
        joints, progress = moving.joints, span(progress, _FINDING, 1.0)
    found: list[_Found] = []
    for number in range(_ROUNDS + 1):
        part = span(progress, number / (_ROUNDS + 1), (number + 1) / (_ROUNDS + 1))
        given[:, :count] = _motion(animation, rest, bones, weights, joints, given, fixed, span(part, 0.0, 0.4))
        if moving is not None and number < _ROUNDS:
            joints = moving.moved((bones, weights), given)
            given[:, :count] = _motion(animation, rest, bones, weights, joints, given, fixed, ignore)
        heads = joints.heads[:count]
        found.append(_Found(given[:, :count].copy(), bones, weights, heads))
        if number == _ROUNDS:
            break
        solved = solve_weights(
            animation,
            rest,
            given[:, :count],
            max_influences,
            span(part, 0.4, 1.0),
            smoothness=smoothness,
            given=Given(bones, weights, start.locked_bones, start.locked_vertices),
            edges=edges,
        )
        bones, weights = posable.limited(given[:, :count], heads, solved, (bones, weights))
    first = found[0]
    may_stay = (first.weights > 0).sum(axis=1).max() <= max_influences and not posable.broken(first)
    if may_stay and smoothness:
        neighbors = Smoothness(neighbor_weights(rest, animation.triangles, edges))
        energies = [neighbors.energy(weight_matrix(each.bones, each.weights, count)) for each in found]
        may_stay = energies[0] <= _AS_SMOOTH * max(energies[1:])
    best = min(found if may_stay else found[1:], key=posable.squared_error)
    return best.transforms, best.bones, best.weights, best.heads


@dataclass(frozen=True, eq=False)
class _Found:
    """What ``solve_again`` returns."""

    transforms: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    heads: np.ndarray


class _PosableWeights:
    """Keeps weights within the limits of posing, but for vertices that are locked or have weights of locked bones."""

    def __init__(self, animation: Animation, rest: np.ndarray, start: Given, parents: np.ndarray):
        self._rest, self._parents, self._locked = rest, parents, start.locked_bones
        self._whole = matrix = AnimationMatrix(animation.frames)
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
        state = self._state(bones, weights)
        earlier = tidy_influences(former[0][self._free], former[1][self._free], width)
        before = VertexState(state.points, *padded_influences(*earlier, width))
        model = BoneModel(to_rows(self._matrix.from_object_space(self._rest, transforms)[1]))
        limits = self._limits(heads, len(transforms))
        limits.keep(model, state, self._matrix, optimize_rest_pose=False, former=before)
        bones, weights = bones.copy(), weights.copy()
        bones[self._free], weights[self._free] = state.bones, state.weights
        return bones, weights

    def broken(self, found: _Found) -> bool:
        """Whether some weights are beyond the limits."""
        limits = self._limits(found.heads, len(found.transforms))
        return bool(limits.broken(self._state(found.bones, found.weights)).any())

    @one_blas_thread()
    def squared_error(self, found: _Found) -> float:
        """Of all vertices, less that of vertices at 0, in solver units."""
        points, motion = self._whole.from_object_space(self._rest, found.transforms)
        skin = homogeneous(points), found.bones, found.weights, len(found.heads)
        return skin_equations(self._whole, *skin, ignore).squared_error(to_rows(motion))

    def _limits(self, heads: np.ndarray, frame_count: int) -> PoseLimits:
        return PoseLimits(self._parents, self._matrix.points_from_object_space(heads), frame_count, self._locked)

    def _state(self, bones: np.ndarray, weights: np.ndarray) -> VertexState:
        points = homogeneous(self._matrix.points_from_object_space(self._rest[self._free]))
        return VertexState(points, bones[self._free], weights[self._free])


def _motion(
    animation: Animation,
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    joints: Joints,
    given: np.ndarray,
    fixed: np.ndarray,
    progress: Progress,
) -> np.ndarray:
    skin = rest, bones, weights, len(fixed)
    solved = solve_transforms(animation, *skin, "RIGID", joints=joints, given=given, fixed=fixed, progress=progress)
    return solved[:, ~fixed]
