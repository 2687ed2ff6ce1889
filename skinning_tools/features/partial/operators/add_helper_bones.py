# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones, which correct what a rig's own leave over: add and remove."""

import bpy
from bpy.props import StringProperty

from ....blender.job_checks import active_object
from ....ui.boundary import Checked, reported
from .. import partial_helper_removal, partial_helpers, partial_settings
from .solve import PartialSolve


class SKINNING_OT_add_helper_bones(PartialSolve, bpy.types.Operator):
    """Add bones to the armature that bring the mesh closer to its target's animation. Those that are there, \
and their keyframes, stay as they are"""

    bl_idname = "skinning.add_helper_bones"
    bl_label = "Add Helper Bones"

    __annotations__ = partial_settings.common_annotations("soft_min") | partial_settings.helper_annotations("soft_min")
    names = partial_settings.HELPER_NAMES
    group = "helpers"
    solve = staticmethod(partial_helpers.add_helper_bones)


class SKINNING_OT_remove_helper_bones(Checked, bpy.types.Operator):
    """Remove the helper bones that were added to the armature, with their keyframes and what names them. Their \
weights go to the other bones of the same vertices"""

    bl_idname = "skinning.remove_helper_bones"
    bl_label = "Remove Helper Bones"
    bl_options = {"REGISTER", "UNDO"}

    armature: StringProperty(
        name="Armature",
        description="The armature that has them. Empty stands for the active or selected one, or the active mesh's",
        options={"SKIP_SAVE"},
    )

    @staticmethod
    def require(context, object):
        """Nothing: the armature may be named, which is not known before it runs."""

    def execute(self, context):
        with reported(self):
            removed = partial_helper_removal.remove_helper_bones(context, active_object(context), self.armature)
            self.report({"INFO"}, removed.summary())
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_add_helper_bones, SKINNING_OT_remove_helper_bones]
