# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones added to a rig, whose own bones keep their motion, where the error is largest."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ..animation import Animation, check_animation
from ..dense import one_blas_thread
from ..errors import BadSettings
from ..progress import Progress, ignore, span
from .helper_solver import HelperBones, HelperSolver
from .helper_targets import HelperTargets
from .partial_transforms import checked_skin

__all__ = ["OWN_WEIGHTS", "HelperBones", "add_helper_bones", "helper_solver"]

OWN_WEIGHTS = ("KEEP", "ADAPT")

_Solver = TypeVar("_Solver", bound=HelperSolver)


@one_blas_thread()
def add_helper_bones(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int = 4,
    *,
    bone_kind: str = "RIGID",
    max_influences: int = 8,
    own_weights: str = "KEEP",
    iterations: int = 20,
    locked_bones: np.ndarray | None = None,
    locked_vertices: np.ndarray | None = None,
    importance: np.ndarray | None = None,
    progress: Progress = ignore,
) -> HelperBones:
    """``bone_count`` helpers with which a rig of P bones follows ``animation`` better.

    rest (N, 3) and transforms (F, P, 3, 4) in object space; bones and weights (N, K), which count as in Blender (see
    ``convex_influences``); a vertex that no bone moves stays without bones. max_influences: most bones of a
    vertex, its own included; a vertex that already has so many gets no helper. locked_bones (P,): bones that give no
    weight; locked_vertices (N,): vertices that no helper moves. importance (F,): by how much the errors of each frame
    count; None: all alike.
    Raises BadAnimation and BadMesh (see ``check_animation``), BadSettings, BadWeights where nothing is left to help,
    Cancelled.
    """
    solver = helper_solver(
        HelperSolver,
        animation,
        rest,
        transforms,
        bones,
        weights,
        bone_count,
        bone_kind=bone_kind,
        max_influences=max_influences,
        own_weights=own_weights,
        locked_bones=locked_bones,
        locked_vertices=locked_vertices,
        importance=importance,
    )
    solver.seed(bone_count, bone_kind, span(progress, 0.0, 0.3))
    solver.solve(iterations, span(progress, 0.3, 0.6 if own_weights == "ADAPT" else 0.95))
    if own_weights == "ADAPT":
        solver.adapt(iterations, span(progress, 0.6, 0.95))
    return solver.result(span(progress, 0.95, 1.0))


def helper_solver(
    make: Callable[[Animation, np.ndarray, np.ndarray, HelperTargets, int], _Solver],
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int,
    *,
    bone_kind: str,
    max_influences: int,
    own_weights: str,
    locked_bones: np.ndarray | None,
    locked_vertices: np.ndarray | None,
    importance: np.ndarray | None,
) -> _Solver:
    """The solver that ``make`` returns for checked arguments, which are those of ``add_helper_bones``."""
    check_animation(animation)
    own_count = transforms.shape[1]
    bones, weights = checked_skin(animation, rest, bones, weights, own_count, bone_kind)
    if bone_count < 1:
        raise BadSettings(f"The number of helper bones must be at least 1, not {bone_count}")
    if bone_count > animation.vertex_count:
        raise BadSettings(
            f"{animation.name} has {animation.vertex_count} vertices, too few for {bone_count} helper bones. "
            "Ask for at most one per vertex"
        )
    if len(transforms) != len(animation.frames):
        raise BadSettings(f"The bones have {len(transforms)} frames, {animation.name} has {len(animation.frames)}")
    if own_weights not in OWN_WEIGHTS:
        raise BadSettings(f"Own weights must be one of {', '.join(OWN_WEIGHTS)}, not {own_weights}")
    if max_influences < 2:
        raise BadSettings(
            f"Max influences must be at least 2, the vertex's own bone and a helper, not {max_influences}"
        )
    max_influences = min(max_influences, own_count + bone_count)
    given = rest, transforms, bones, weights, max_influences, locked_bones, locked_vertices, importance
    return make(animation, rest, transforms, HelperTargets(animation, *given), max_influences)
