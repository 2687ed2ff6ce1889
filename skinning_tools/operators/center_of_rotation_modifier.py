# SPDX-License-Identifier: GPL-3.0-or-later
"""Add and remove the modifier that deforms about centers of rotation."""

import bpy

from ..core.errors import BadScene
from ..scene import crs_modifier, dependencies
from ..scene.job_checks import reason_not_to_work
from ..scene.skin_reader import native_modifier
from .boundary import reported


class SKINNING_OT_add_center_of_rotation_modifier(bpy.types.Operator):
    """Deform about the baked centers of rotation by Geometry Nodes. The Armature modifier is turned off meanwhile"""

    bl_idname = "skinning.add_center_of_rotation_modifier"
    bl_label = "Add Center of Rotation Modifier"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        reason = reason_not_to_work(context, crs_modifier.check_addable)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            object = context.active_object
            modifier = crs_modifier.add(context, object)
            tree = modifier.node_group[crs_modifier.CRS_PROPERTY]
            self.report(
                {"INFO"},
                f'{object.name}: modifier "{modifier.name}" deforms by {len(tree["bones"])} bones, '
                f'modifier "{tree["armature_modifier"]}" is turned off',
            )
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_remove_center_of_rotation_modifier(bpy.types.Operator):
    """Remove the modifier, and turn the Armature modifier on again"""

    bl_idname = "skinning.remove_center_of_rotation_modifier"
    bl_label = "Remove Center of Rotation Modifier"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        reason = reason_not_to_work(context, _check_removable)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    def execute(self, context):
        with reported(self):
            object = context.active_object
            crs_modifier.remove(object)
            self.report({"INFO"}, f"{object.name}: {crs_modifier.LABEL} modifier removed, Armature modifier as before")
            return {"FINISHED"}
        return {"CANCELLED"}


def _check_removable(context, object) -> None:
    if object is None or object.type != "MESH" or native_modifier(object) is None:
        raise BadScene(f"The active object has no {crs_modifier.LABEL} modifier")
    if object.data.is_editmode:
        raise BadScene("Go to Object Mode first")


registry = [SKINNING_OT_add_center_of_rotation_modifier, SKINNING_OT_remove_center_of_rotation_modifier]
