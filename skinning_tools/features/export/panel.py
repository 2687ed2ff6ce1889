# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of the export."""

import bpy

from ...blender import background
from ...blender.job_checks import active_object, reason_not_to_work
from ...ui.drawing import SidebarPanel, draw_button, draw_failure, draw_text, idle_column, split_layout
from ...ui.groups import ANIMATION
from . import export

_SHEARED = (
    "Affine bones shear, which an engine that keeps scale apart, such as Unreal, cannot play: convert with Scaled bones"
)


class SKINNING_PT_export(SidebarPanel, bpy.types.Panel):
    bl_label = "Export"
    bl_idname = "SKINNING_PT_export"
    bl_parent_id = ANIMATION
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Export Character", "Select Result for Export")

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        settings, column = context.scene.skinning_export, idle_column(layout)
        for name in ("engine", "file_format", "all_clips", "compare"):
            column.prop(settings, name)
        # After an export, its notes say it.
        unsaid = background.last_failure(*self.titles) is None
        if unsaid and export.plays_apart(active_object(context), settings.engine):
            draw_text(column, context, _SHEARED, "INFO")
        reason = reason_not_to_work(context, export.check_exportable)
        draw_button(layout, context, "skinning.export_character", "Export", "EXPORT", reason)
        draw_failure(layout, context, SKINNING_PT_export)
        if not reason:
            layout.operator("skinning.select_for_export", icon="RESTRICT_SELECT_OFF")


registry = [SKINNING_PT_export]
