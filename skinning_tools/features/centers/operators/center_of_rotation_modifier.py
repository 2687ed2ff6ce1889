# SPDX-License-Identifier: GPL-3.0-or-later
"""Add and remove the modifier that deforms about centers of rotation."""

import bpy

from ....blender import dependencies
from ....blender.center_records import modifier_record
from ....blender.character import on_mesh_meant, target_mesh
from ....ui.boundary import Checked, reported
from .. import crs_modifier


class SKINNING_OT_add_center_of_rotation_modifier(Checked, bpy.types.Operator):
    """Deform about the baked centers of rotation by Geometry Nodes. The Armature modifier is turned off meanwhile"""

    bl_idname = "skinning.add_center_of_rotation_modifier"
    bl_label = "Add Center of Rotation Modifier"
    bl_options = {"REGISTER", "UNDO"}

    require = staticmethod(on_mesh_meant(crs_modifier.check_addable))

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            object = target_mesh(context)
            modifier = crs_modifier.add(context, object)
            record = modifier_record(modifier)
            self.report(
                {"INFO"},
                f'{object.name}: modifier "{modifier.name}" deforms by {len(record.bones)} bones, '
                f'modifier "{record.armature_modifier}" is turned off',
            )
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_remove_center_of_rotation_modifier(Checked, bpy.types.Operator):
    """Remove the modifier, and turn the Armature modifier on again"""

    bl_idname = "skinning.remove_center_of_rotation_modifier"
    bl_label = "Remove Center of Rotation Modifier"
    bl_options = {"REGISTER", "UNDO"}

    require = staticmethod(on_mesh_meant(crs_modifier.check_removable))

    def execute(self, context):
        with reported(self):
            object = target_mesh(context)
            armature = crs_modifier.remove(object)
            left = f'modifier "{armature.name}" as before' if armature is not None else "no Armature modifier is left"
            self.report({"INFO"}, f"{object.name}: {crs_modifier.LABEL} modifier removed, {left}")
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_add_center_of_rotation_modifier, SKINNING_OT_remove_center_of_rotation_modifier]
