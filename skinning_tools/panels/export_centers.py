# SPDX-License-Identifier: GPL-3.0-or-later
"""Below the centers of rotation: what brings them into a glTF file."""

import bpy

from ..scene.rotation_centers import bake_record


class SKINNING_PT_export_centers(bpy.types.Panel):
    bl_label = "Export to glTF"
    bl_idname = "SKINNING_PT_export_centers"
    bl_parent_id = "SKINNING_PT_rotation_centers"
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Skinning"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        object = context.active_object
        return object is not None and object.type == "MESH" and bake_record(object) is not None

    def draw(self, context):
        layout = self.layout
        layout.operator("skinning.prepare_centers_for_export", icon="EXPORT")
        layout.label(text="Then export with Data > Mesh > Attributes", icon="INFO")


registry = [SKINNING_PT_export_centers]
