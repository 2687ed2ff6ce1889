# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of helper bones whose weights are fixed, such as in frames that the solve for the weights has not seen."""

import numpy as np

from ..animation import Animation, check_animation
from ..deform.influences import weight_matrix
from ..dense import one_blas_thread, product
from ..progress import Progress, checkpoint, ignore, span
from . import rigid
from .bone_model import homogeneous
from .partial_transforms import checked_skin, skin_equations
from .reduction import AnimationMatrix
from .sweeps import vertex_blocks
from .transforms import NormalEquations, from_rows, reduced_equations, to_rows

# Beside the total error, this share of the weighted distance between each helper's own prediction and the target
# counts: else helpers of small weight would leap far. A helper of weight w that corrects an error δ would move by δ /
# (w + this); below _LIGHT it is held by (_LIGHT / w)², and so moves by 82 δ at most, and not at all as its weight
# vanishes.
NEARNESS, _LIGHT = 3e-4, 0.03
# How firmly affine helpers are held to an earlier motion.
HOLD = 1e-6
_SWEEPS = 20


def add_near(near: NormalEquations, points: np.ndarray, strength: np.ndarray, data: np.ndarray) -> None:
    """Equations for each helper alone: it should move vertices as they move. points (n, 4); strength (n, H): its
    weights; data (n, 3F)."""
    helper_count = strength.shape[1]
    near.products += product((strength[:, :, None] * points[:, None]).reshape(len(points), -1).T, data)
    own = np.arange(helper_count)
    near.moments.reshape(helper_count, 4, helper_count, 4)[own, :, own, :] += np.einsum(
        "nh,ni,nj->hij", strength, points, points
    )


def keep_near(equations: NormalEquations, near: NormalEquations, heavy: np.ndarray, total: np.ndarray) -> None:
    """Keep each helper close to the motion of its vertices. heavy, total (H,): sums of the squares of its weights, and
    of its weights."""
    # The weight of each helper: the mean of its shares, by themselves.
    lightness = np.clip(_LIGHT * total / np.where(heavy > 0, heavy, 1.0), 1.0, 1e5)
    strength = np.repeat(NEARNESS * lightness**2, 4)[:, None]
    equations.products += strength * near.products
    equations.moments += strength * near.moments


@one_blas_thread()
def move_helpers(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    helper_count: int,
    bone_kind: str = "RIGID",
    bone_axes: np.ndarray | None = None,
    *,
    progress: Progress = ignore,
) -> np.ndarray:
    """The motion (F, H, 3, 4) of helpers that brings given weights closest to ``animation``, in its object space.

    rest (N, 3); transforms (F, P, 3, 4): of the rig's own bones; bones and weights (N, K): of these, then of the H
    helpers. bone_axes (H, 3, 3): along which SCALED helpers stretch.
    An animation of one frame, or that stands still, will do: a pose has helpers, too. Raises BadAnimation and BadMesh
    (see ``check_animation``), BadSettings, BadWeights, Cancelled.
    """
    check_animation(animation, may_stand_still=True, may_be_a_pose=True)
    own_count = transforms.shape[1]
    count = own_count + helper_count
    bones, weights = checked_skin(animation, rest, bones, weights, count, bone_kind)
    matrix = AnimationMatrix(animation.frames)
    points, own = matrix.from_object_space(np.asarray(rest, float), transforms)
    points = homogeneous(points)
    standing = np.tile(np.eye(3, 4), (len(own), helper_count, 1, 1))
    shares = weight_matrix(bones, weights, count)[:, own_count:]
    # Other vertices do not depend on the helpers.
    rows = np.flatnonzero(shares.getnnz(axis=1))
    weights = np.where(np.isin(np.arange(len(points)), rows)[:, None], weights, 0.0)
    whole = skin_equations(matrix, points, bones, weights, count, span(progress, 0.0, 0.5))
    equations = reduced_equations(whole, np.concatenate([own, standing], axis=1), np.arange(count) >= own_count)
    near = NormalEquations(helper_count, matrix.height)
    for block in vertex_blocks(len(rows)):
        part = rows[block]
        add_near(near, points[part], shares[part].toarray(), matrix.rows(part))
    keep_near(equations, near, np.asarray(shares.power(2).sum(axis=0)).ravel(), np.asarray(shares.sum(axis=0)).ravel())
    motion = rigid.fit_alone(near.products, near.bone_moments)
    if bone_kind != "RIGID":
        motion = from_rows(equations.solve(to_rows(motion), HOLD))
    for number in range(0 if bone_kind == "AFFINE" else _SWEEPS):
        motion = rigid.sweep(equations, motion, bone_axes if bone_kind == "SCALED" else None)
        checkpoint(progress, 0.5 + 0.5 * (number + 1) / _SWEEPS, "Helper bones")
    return matrix.to_object_space(points[:, :3], motion)[1]
