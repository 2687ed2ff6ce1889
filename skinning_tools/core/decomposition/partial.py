# SPDX-License-Identifier: GPL-3.0-or-later
"""Solves of one part of a decomposition with the others given."""

import numpy as np

from ..animation import Animation, check_animation
from ..dense import one_blas_thread
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore
from .bone_model import BoneModel, homogeneous
from .reduction import AnimationMatrix
from .sweeps import vertex_blocks
from .transforms import to_rows
from .vertex_step import VertexState, best_single_bones, improve_vertices

# Each pass lets other bones compete for a vertex's influences; few vertices change after the third.
_PASSES = 8
_SETTLED = 1e-12


@one_blas_thread()
def solve_weights(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    max_influences: int = 4,
    progress: Progress = ignore,
) -> tuple[np.ndarray, np.ndarray]:
    """The convex weights that make given bones follow ``animation`` (Kavan et al. 2010, section 4.4).

    rest (N, 3) and transforms (F, P, 3, 4) in the object space of ``animation.frames``.
    Returns bones (N, K) int32 and weights (N, K) float64, strongest first, K = max_influences.
    Raises BadAnimation and BadMesh (see ``check_animation``), BadSettings where the shapes do not fit, Cancelled.
    """
    check_animation(animation)
    frame_count = len(transforms)
    if frame_count != len(animation.frames):
        raise BadSettings(f"The bones have {frame_count} frames, {animation.name} has {len(animation.frames)}")
    if rest.shape != animation.frames.shape[1:]:
        raise BadSettings(f"The rest pose has {len(rest)} vertices, {animation.name} has {animation.vertex_count}")
    if max_influences < 1:
        raise BadSettings(f"Max influences must be at least 1, not {max_influences}")
    matrix = AnimationMatrix(animation.frames)
    rest, transforms = matrix.from_object_space(np.asarray(rest, float), np.asarray(transforms, float))
    model = BoneModel(to_rows(transforms))
    state = VertexState(
        homogeneous(rest),
        np.zeros((len(rest), max_influences), dtype=np.int32),
        np.zeros((len(rest), max_influences)),
    )
    state.weights[:, 0] = 1.0
    blocks = vertex_blocks(len(rest))
    for number, part in enumerate(blocks):
        data = matrix.rows(part)
        state.bones[part] = best_single_bones(model, data, state.points[part])[:, None]
        own_norms = np.einsum("ij,ij->i", data, data)
        last = np.full(len(data), np.inf)
        for _ in range(_PASSES):
            errors = improve_vertices(model, data, state, part, optimize_rest_pose=False) + own_norms
            if np.all(last - errors <= _SETTLED * own_norms):
                break
            last = errors
        checkpoint(progress, (number + 1) / len(blocks), "Weights")
    return state.bones, state.weights
