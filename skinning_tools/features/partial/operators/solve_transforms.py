# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Motion: keyframes for bones whose weights are there already."""

import bpy

from .. import partial_motion, partial_settings
from .solve import PartialSolve


class SKINNING_OT_solve_transforms(PartialSolve, bpy.types.Operator):
    """Solve for the keyframes with which the bones, by the mesh's weights, come closest to its target's animation.
    They make a new action; the old one stays in the file"""

    bl_idname = "skinning.solve_transforms"
    bl_label = "Solve Motion"

    __annotations__ = partial_settings.common_annotations("soft_min") | partial_settings.transform_annotations(
        "soft_min"
    )
    names = partial_settings.TRANSFORM_NAMES
    group = "transforms"
    solve = staticmethod(partial_motion.solve_transforms)


registry = [SKINNING_OT_solve_transforms]
