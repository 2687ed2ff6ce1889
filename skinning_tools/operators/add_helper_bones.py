# SPDX-License-Identifier: GPL-3.0-or-later
"""Add Helper Bones: bones that correct what a rig's own leave over."""

import bpy

from ..scene import partial_helpers, partial_settings
from .partial_solve import PartialSolve


class SKINNING_OT_add_helper_bones(PartialSolve, bpy.types.Operator):
    """Add bones to the armature that bring the mesh closer to its target's animation. Those that are there, \
and their keyframes, stay as they are"""

    bl_idname = "skinning.add_helper_bones"
    bl_label = "Add Helper Bones"

    __annotations__ = partial_settings.common_annotations("soft_min") | partial_settings.helper_annotations("soft_min")
    names = partial_settings.HELPER_NAMES
    group = "helpers"
    solve = staticmethod(partial_helpers.add_helper_bones)


registry = [SKINNING_OT_add_helper_bones]
