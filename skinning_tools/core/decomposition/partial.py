# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights for bones whose motion is given; some of the weights may be kept."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..animation import Animation, check_animation
from ..deform.influences import convex_influences, weight_matrix
from ..dense import one_blas_thread
from ..errors import BadSettings, BadWeights
from ..geometry import diagonal
from ..progress import Progress, ignore, span
from .bone_model import homogeneous
from .hold import hold_rows
from .partial_transforms import Joints
from .reduction import AnimationMatrix
from .smoothness import neighbor_weights
from .transforms import to_rows
from .weight_problem import Given, WeightProblem

__all__ = ["Given", "Joints", "SolvedSkin", "WeightProblem", "solve_skin", "solve_weights"]

# Sweeps of rest positions and weights in turn; few positions change after the fifth.
_SHIFTING_SWEEPS = 7


@dataclass(frozen=True)
class SolvedSkin:
    """bones (N, K) int32 and weights (N, K) float64, strongest first; rest (N, 3) of the mesh that they are for."""

    bones: np.ndarray
    weights: np.ndarray
    rest: np.ndarray


def solve_weights(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    max_influences: int = 4,
    progress: Progress = ignore,
    *,
    smoothness: float = 0.0,
    hold: float = 0.0,
    given: Given | None = None,
    joints: Joints | None = None,
    edges: np.ndarray | None = None,
    importance: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The convex weights that make given bones follow ``animation`` (Kavan et al. 2010, section 4.4).

    rest (N, 3) and transforms (F, P, 3, 4) in the object space of ``animation.frames``. smoothness from 0 to 1: how
    much error is allowed for weights that are smooth over the surface of ``animation.triangles`` and over the ``edges``
    (E, 2) without triangles. given: the existing weights, and which of them stay. joints: of the bones; the existing
    weights are then kept where these hardly move. hold from 0 to 1: how firmly they are kept everywhere, see
    ``hold_rows``. importance (F,): by how much the errors of each frame count, such as that of
    ``clip_importance.importance_of``; None: all alike.
    Returns bones (N, K) int32 and weights (N, K) float64, strongest first, unused slots repeat the first with weight 0;
    K = max_influences, or P if that is less, or more where locked bones leave no slot for a free bone.
    Raises BadAnimation and BadMesh (see ``check_animation``), BadSettings where the shapes do not fit, BadWeights where
    everything is locked or ``given`` is unusable, Cancelled.
    """
    solved = solve_skin(
        animation,
        rest,
        transforms,
        max_influences,
        progress,
        smoothness=smoothness,
        hold=hold,
        given=given,
        joints=joints,
        edges=edges,
        importance=importance,
    )
    return solved.bones, solved.weights


@one_blas_thread()
def solve_skin(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    max_influences: int = 4,
    progress: Progress = ignore,
    *,
    smoothness: float = 0.0,
    hold: float = 0.0,
    given: Given | None = None,
    joints: Joints | None = None,
    edges: np.ndarray | None = None,
    importance: np.ndarray | None = None,
    most_shift: float = 0.0,
) -> SolvedSkin:
    """``solve_weights`` that may also move the rest positions, each by up to ``most_shift`` of the diagonal of
    ``rest``. Locked vertices, and those with weights of locked bones, stay in place."""
    check_animation(animation)
    _check(animation, rest, transforms, max_influences, smoothness, hold)
    if given is not None:
        convex = convex_influences(given.bones, given.weights, len(rest), transforms.shape[1], animation.name)
        given = replace(given, bones=convex[0], weights=convex[1])
    rest = np.asarray(rest, float)
    matrix = AnimationMatrix(animation.frames, importance)
    points, moved = matrix.from_object_space(rest, np.asarray(transforms, float))
    problem = WeightProblem.of(
        matrix, homogeneous(points), to_rows(moved), min(max_influences, transforms.shape[1]), given
    )
    if not len(problem.chosen):
        raise BadWeights(
            f"All weights of {animation.name} are locked, so there is nothing to solve for. Unlock some vertex groups, "
            "or lock fewer vertices"
        )
    if given is not None:
        problem.start_from(given.bones, given.weights)
        if joints is not None:
            _hold(problem, given, joints, matrix, moved, hold)
    fit = span(progress, 0.0, 0.3 if smoothness else 1.0)
    sweeps = 1 + _SHIFTING_SWEEPS if most_shift else 1
    for sweep in range(sweeps):
        if sweep:
            problem.shift(most_shift * diagonal(points))
        _fit(problem, span(fit, sweep / sweeps, (sweep + 1) / sweeps))
    if smoothness:
        neighbors = neighbor_weights(rest, animation.triangles, edges)
        problem.smooth(problem.balanced(neighbors, smoothness), span(progress, 0.3, 1.0))
    if most_shift:
        rest = rest + (problem.points - points) * matrix.radius
    return SolvedSkin(*problem.result(), rest)


def _fit(problem: WeightProblem, progress: Progress, among: np.ndarray | None = None) -> None:
    for done, allowed, rows in problem.groups(among):
        problem.fit(rows, allowed, span(progress, done, done + len(rows) / len(problem.chosen)))


def _hold(
    problem: WeightProblem, given: Given, joints: Joints, matrix: AnimationMatrix, moved: np.ndarray, amount: float
) -> None:
    """Hold the problem to the weights ``given``, and vertices without any to those that the motion alone gives them."""
    bone_count = moved.shape[1]
    weights = weight_matrix(given.bones, given.weights, bone_count).copy()
    weights.sum_duplicates()
    loose = np.asarray(~given.weights.any(axis=1))
    if loose.any():
        _fit(problem, ignore, loose)
        weights = weights + sparse.diags(loose.astype(float)) @ problem.weights()
    heads = matrix.points_from_object_space(joints.heads)
    problem.hold(weights, hold_rows(replace(joints, heads=heads), moved, amount))


def _check(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    max_influences: int,
    smoothness: float,
    hold: float,
) -> None:
    frame_count = len(transforms)
    if frame_count != len(animation.frames):
        raise BadSettings(f"The bones have {frame_count} frames, {animation.name} has {len(animation.frames)}")
    if rest.shape != animation.frames.shape[1:]:
        raise BadSettings(f"The rest pose has {len(rest)} vertices, {animation.name} has {animation.vertex_count}")
    if max_influences < 1:
        raise BadSettings(f"Max influences must be at least 1, not {max_influences}")
    for name, value in (("Smoothness", smoothness), ("Hold", hold)):
        if not 0 <= value <= 1:
            raise BadSettings(f"{name} must be from 0 to 1, not {value:g}")
