# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of bones for given weights; some bones may be held by joints, or have a given motion."""

from dataclasses import dataclass

import numpy as np

from ..animation import Animation, check_animation
from ..deform.influences import convex_influences
from ..dense import one_blas_thread
from ..errors import BadSettings, BadWeights
from ..progress import Progress, checkpoint, ignore, span
from .bone_model import homogeneous
from .jointed_bones import JointedBones, affine_motion
from .reduction import AnimationMatrix
from .sweeps import vertex_blocks
from .transforms import NormalEquations, design_matrix
from .types import BONE_KINDS

_STAGE = "Motion"


@dataclass(frozen=True, eq=False)
class Joints:
    """heads (P, 3): each bone's joint at rest, in object space; parents (P,) int: the bone whose motion takes it along,
    −1 where the bone moves freely."""

    heads: np.ndarray
    parents: np.ndarray


@one_blas_thread()
def solve_transforms(
    animation: Animation,
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int,
    bone_kind: str = "AFFINE",
    *,
    bone_axes: np.ndarray | None = None,
    unscaled: np.ndarray | None = None,
    joints: Joints | None = None,
    given: np.ndarray | None = None,
    fixed: np.ndarray | None = None,
    importance: np.ndarray | None = None,
    progress: Progress = ignore,
) -> np.ndarray:
    """The bone matrices (F, P, 3, 4) that bring given weights closest to ``animation``, in its object space.

    rest (N, 3); bones and weights (N, K), which count as in Blender (see ``convex_influences``). SCALED bones stretch
    along the columns of ``bone_axes`` (P, 3, 3), by default the object's axes, except for the bones ``unscaled`` (P,),
    which are rigid. The bones ``fixed`` (P,) keep the motion ``given`` (F, P, 3, 4), and the others start from it where
    that is closest; a bone without any weight follows its joint, or stands still.
    importance (N,): how often each vertex counts, None for once.
    Kavan et al. 2010, section 4.2, for AFFINE; alternating weighted Procrustes for the others and along joints.
    Raises BadAnimation and BadMesh (see ``check_animation``), BadSettings, BadWeights, Cancelled.
    """
    check_animation(animation)
    bones, weights = checked_skin(animation, rest, bones, weights, bone_count, bone_kind)
    matrix = AnimationMatrix(animation.frames)
    fixed = np.zeros(bone_count, bool) if fixed is None else np.asarray(fixed, bool)
    frame_count = len(animation.frames)
    standing = np.tile(np.eye(3, 4), (frame_count, bone_count, 1, 1))
    given = standing if given is None else np.asarray(given, float)
    points, start = matrix.from_object_space(np.asarray(rest, float), given)
    if not np.any(weights):
        raise BadWeights(f"No vertex of {animation.name} has weights, so no bone's motion can be found")
    skin = homogeneous(points), bones, weights, bone_count
    equations = skin_equations(matrix, *skin, span(progress, 0.0, 0.3), importance)
    if joints is None:
        joints = Joints(np.zeros((bone_count, 3)), np.full(bone_count, -1))
    heads = matrix.points_from_object_space(joints.heads)
    parents = np.where(fixed, -1, joints.parents)
    free = ~fixed
    if bone_kind == "AFFINE" and (parents < 0).all():
        solved = affine_motion(equations, start, free)
        checkpoint(progress, 1.0, _STAGE)
    else:
        axes = np.tile(np.eye(3), (bone_count, 1, 1)) if bone_axes is None else bone_axes
        rigid_bones = np.full(bone_count, bone_kind == "RIGID")
        if bone_kind == "SCALED" and unscaled is not None:
            rigid_bones |= np.asarray(unscaled, bool)
        hierarchy = JointedBones(equations, heads, parents, free, bone_kind, rigid_bones, axes)
        solved = hierarchy.solve(start, matrix.counted_norm(importance), span(progress, 0.3, 1.0))
    solved = matrix.to_object_space(points, solved)[1]
    solved[:, fixed] = given[:, fixed]
    return solved


def checked_skin(
    animation: Animation, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int, bone_kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (N, K) as ``convex_influences`` has them.

    Raises BadSettings and BadWeights where the arrays do not fit each other or ``animation``.
    """
    if bone_kind not in BONE_KINDS:
        raise BadSettings(f"Bone kind must be one of {', '.join(BONE_KINDS)}, not {bone_kind}")
    if np.shape(rest) != animation.frames.shape[1:]:
        raise BadSettings(f"The rest pose has {len(rest)} vertices, {animation.name} has {animation.vertex_count}")
    return convex_influences(bones, weights, len(rest), bone_count, animation.name)


def skin_equations(
    matrix: AnimationMatrix,
    points: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int,
    progress: Progress,
    importance: np.ndarray | None = None,
) -> NormalEquations:
    """The equations over the vertices that bones move; other vertices would not change them. importance (N,): how often
    each vertex counts, None for once."""
    moved = np.flatnonzero(np.asarray(weights).any(axis=1))
    equations = NormalEquations(bone_count, matrix.height)
    blocks = vertex_blocks(len(moved))
    for number, part in enumerate(blocks):
        rows = moved[part]
        design = design_matrix(points[rows], bones[rows], weights[rows], bone_count)
        equations.add(design, matrix.rows(rows), None if importance is None else importance[rows])
        checkpoint(progress, (number + 1) / len(blocks), _STAGE)
    return equations
