# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators of partial solves: weights, motion, and helper bones, which are also removed."""

import bpy

from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from . import helper_removal, helpers, motion, weights
from .settings import HelperSettings, MotionSettings, RemovalSettings, WeightSettings


class _Named(Checked):
    """Mix-in: what to work on may be named, which is not known before it runs. What it stands for is checked then."""

    @staticmethod
    def require(context, object):
        """Nothing."""


class SKINNING_OT_solve_weights(_Named, SkinningJob, bpy.types.Operator):
    """Solve for the weights with which the armature's motion brings the mesh closest to its target's animation"""

    bl_idname = "skinning.solve_weights"
    bl_label = "Solve Weights"

    settings = WeightSettings
    work = staticmethod(weights.solve_weights)


class SKINNING_OT_solve_transforms(_Named, SkinningJob, bpy.types.Operator):
    """Solve for the keyframes with which the bones, by the mesh's weights, come closest to its target's animation.
    They make a new action; the old one stays in the file"""

    bl_idname = "skinning.solve_transforms"
    bl_label = "Solve Motion"

    settings = MotionSettings
    work = staticmethod(motion.solve_transforms)


class SKINNING_OT_add_helper_bones(_Named, SkinningJob, bpy.types.Operator):
    """Add bones to the armature that bring the mesh closer to its target's animation. Those that are there, \
and their keyframes, stay as they are"""

    bl_idname = "skinning.add_helper_bones"
    bl_label = "Add Helper Bones"

    settings = HelperSettings
    work = staticmethod(helpers.add_helper_bones)


class SKINNING_OT_remove_helper_bones(_Named, AtOnce, bpy.types.Operator):
    """Remove the helper bones that were added to the armature, with their keyframes and what names them. Their \
weights go to the other bones of the same vertices"""

    bl_idname = "skinning.remove_helper_bones"
    bl_label = "Remove Helper Bones"

    settings = RemovalSettings
    work = staticmethod(helper_removal.remove_helper_bones)


registry = [
    SKINNING_OT_solve_weights,
    SKINNING_OT_solve_transforms,
    SKINNING_OT_add_helper_bones,
    SKINNING_OT_remove_helper_bones,
]
