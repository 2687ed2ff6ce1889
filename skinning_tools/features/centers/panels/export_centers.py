# SPDX-License-Identifier: GPL-3.0-or-later
"""Below the centers of rotation: what brings them into a glTF file."""

import bpy

from ....blender.character import target_mesh
from ....ui.drawing import SidebarPanel, draw_text
from ..center_export import export_state
from ..rotation_centers import FRESH, STALE, bake_record


class SKINNING_PT_export_centers(SidebarPanel, bpy.types.Panel):
    bl_label = "Export to glTF"
    bl_idname = "SKINNING_PT_export_centers"
    bl_parent_id = "SKINNING_PT_rotation_centers"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        object = target_mesh(context)
        return object is not None and object.type == "MESH" and bake_record(object) is not None

    def draw(self, context):
        layout = self.layout
        layout.operator("skinning.prepare_centers_for_export", icon="EXPORT")
        state = export_state(target_mesh(context))
        if state == STALE:
            draw_text(layout, context, "Moved or baked since: prepare again", "ERROR")
            return
        done = "Prepared: export" if state == FRESH else "Then export"
        layout.label(text=f"{done} with Data > Mesh > Attributes", icon="INFO")


registry = [SKINNING_PT_export_centers]
