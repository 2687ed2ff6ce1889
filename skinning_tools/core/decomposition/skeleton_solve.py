# SPDX-License-Identifier: GPL-3.0-or-later
"""What the solves of skeletons begin with and end with, whether their joints are held or not."""

from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..binding.influence_rows import padded_influences
from ..joint_hierarchy import JointHierarchy
from ..progress import Progress, span
from ..strongest import strongest_first
from .bone_model import homogeneous
from .reduction import AnimationMatrix
from .residual import fit_residual_shapes
from .solver import checked_importance, measured
from .types import Decomposition, Settings
from .vertex_step import VertexState

# The share of the squared error that a round must save for more than one to follow.
WORTH_IT = 0.02


def begun(
    animation: Animation, free: Decomposition, hierarchy: JointHierarchy, importance: np.ndarray | None
) -> tuple[AnimationMatrix, VertexState, np.ndarray, np.ndarray]:
    """The animation; the vertices, motion (F, P, 3, 4) and joints (P, 3) to start from, in solver units."""
    matrix = AnimationMatrix(animation.frames)
    points, motion = matrix.from_object_space(free.rest, free.transforms)
    # Pruning may have left fewer bones than a vertex has slots.
    skin = strongest_first(free.bones, free.weights, free.bone_count)
    state = VertexState(homogeneous(points), *skin, checked_importance(importance, animation))
    return matrix, state, motion, matrix.points_from_object_space(hierarchy.joints)


def finished(
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
