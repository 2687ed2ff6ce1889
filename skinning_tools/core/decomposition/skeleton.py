# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton from an animation: bones, the tree of their joints, and weights that hold when it is posed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..joint_hierarchy import JointHierarchy
from ..joint_search import find_joint_hierarchy
from ..limb_pairs import with_limb_pairs
from ..progress import Progress, ignore, span
from .clips import decompose_clips
from .empty_bones import without_empty_bones, without_empty_branches
from .jointed import solve_jointed
from .posable import solve_posable
from .separate_parts import with_separate_parts
from .still_sides import with_still_sides
from .types import Decomposition, Settings


def find_skeleton(
    animation: Animation,
    lengths: Sequence[int],
    settings: Settings,
    progress: Progress = ignore,
    importance: np.ndarray | None = None,
    *,
    held: bool = False,
    slip: float = 0.0,
) -> tuple[Decomposition, JointHierarchy, float | None]:
    """The bones, the tree of their joints, and, if ``held``, E_RMS (per mille of the unit ball) before joints count.

    lengths: the frames of each clip, see ``decompose_clips``. importance (N,): of each vertex, > 0. held: bones only
    rotate about their joints, of which each may slip by ``slip``, a share of the mesh's diagonal. Bones that are not
    rigid are linked as they are. Where bones are pruned, those go, too, that have lost all weights since, and carry no
    bone with any. Raises what ``decompose_clips`` raises.
    """
    rigid = settings.bone_kind == "RIGID"
    # Shapes and smoothing are for the bones as they are in the end, which do not keep what a surface or an emphasis
    # gains.
    plain = replace(settings, residual_shapes=0, smoothness=0.0, emphasis=0.0, surface=0.0)
    found = decompose_clips(animation, lengths, plain if held else settings, span(progress, 0.0, 0.5), importance)
    free_e_rms = found.e_rms if held else None
    if settings.prune:
        found = without_empty_bones(found)
    if rigid:
        found = with_separate_parts(found, animation.triangles, settings.bone_count)
    hierarchy = find_joint_hierarchy(found.rest, found.bones, found.weights, found.transforms, animation.triangles)
    part = span(progress, 0.5, 1.0)
    if held:
        found, hierarchy = solve_jointed(animation, found, hierarchy, settings, part, importance, slip)
    elif rigid:
        found, hierarchy = solve_posable(animation, found, hierarchy, settings, part, importance)
    if settings.prune:
        found, hierarchy = without_empty_branches(found, hierarchy)
    if rigid:
        found, hierarchy = with_still_sides(found, hierarchy, settings.bone_count)
    return found, with_limb_pairs(hierarchy, found.rest, found.bones, found.weights), free_e_rms
