# SPDX-License-Identifier: GPL-3.0-or-later
"""Suggest a number of bones for the animation of the active mesh."""

import bpy
from bpy.app.translations import pgettext_rpt as rpt_

from ....blender import dependencies
from ....blender.job_checks import active_object
from ....ui.boundary import reported
from ..chosen_sources import chosen_sources, reason_not_to_convert
from ..suggestion import suggest_bones


class SKINNING_OT_suggest_bones(bpy.types.Operator):
    """Set the number of bones from how many independent motions a few frames have, \
so that an E_RMS of about 2 is left"""

    bl_idname = "skinning.suggest_bones"
    bl_label = "Suggest Bones"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        chosen = context.scene.skinning_conversion
        reason = reason_not_to_convert(context, chosen.selected_objects, chosen.on_result)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            chosen, scene = context.scene.skinning_conversion, context.scene
            sources = chosen_sources(context, active_object(context), chosen.selected_objects, chosen.on_result).sources
            frames = scene if chosen.use_scene_range else chosen
            found = suggest_bones(context, sources, chosen.bone_kind, frames.frame_start, frames.frame_end)
            chosen.bone_count = found.bone_count
            text = rpt_("{name}: {count} bones, from {reason}")
            self.report({"INFO"}, text.format(name=sources[0].name, count=found.bone_count, reason=found.reason))
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_suggest_bones]
