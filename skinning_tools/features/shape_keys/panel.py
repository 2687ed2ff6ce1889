# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of shape keys turned into bones, and the sliders of the active rig."""

import bpy

from ...blender import background
from ...blender.actions import property_path
from ...blender.job_checks import active_object, reason_not_to_work
from ...ui.compare import draw_shown
from ...ui.drawing import (
    SidebarPanel,
    draw_button,
    draw_failure,
    draw_figures,
    draw_job,
    draw_text,
    idle_column,
    split_layout,
)
from ...ui.groups import ANIMATION
from .faces import face_of
from .reading import check_faces, check_shape_keys, faces_meant
from .settings import ShapeKeySettings
from .sliders import rig_and_sliders


class SKINNING_PT_shape_keys(SidebarPanel, bpy.types.Panel):
    bl_label = "Convert Shape Keys"
    bl_idname = "SKINNING_PT_shape_keys"
    bl_parent_id = ANIMATION
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Convert Shape Keys to Bones",)

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        job = background.running_job()
        settings = idle_column(layout)
        for name in ShapeKeySettings.declared:
            if name != "bone_kind":
                settings.prop(context.scene.skinning_shape_keys, name)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_shape_keys)
            return
        together = context.scene.skinning_shape_keys.selected_objects
        if together:
            _draw_meant(layout, context)
        draw_button(layout, context, "skinning.convert_shape_keys", "Convert to Bones", "SHAPEKEY_DATA")
        draw_failure(layout, context, SKINNING_PT_shape_keys)
        active = active_object(context)
        face = face_of(active)
        if face is not None:
            if face.source is not None:
                draw_shown(layout, "skinning.compare_face", face.pairs)
            draw_figures(layout, face.record)
            return
        reason = reason_not_to_work(context, check_shape_keys)
        if reason and not together and rig_and_sliders(active) is None:
            draw_text(layout, context, reason, "INFO")


def _draw_meant(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Which meshes Selected Objects converts, or why it cannot."""

    def check(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        check_faces(faces_meant(context, active, selected=True)[0])

    reason = reason_not_to_work(context, check)
    meant = [] if reason else faces_meant(context, active_object(context), selected=True)[0]
    names = ", ".join(ob.name for ob in meant if ob is not None)
    draw_text(layout, context, reason or f"Converts {names}", "INFO" if reason else "MESH_DATA")


class SKINNING_PT_face_sliders(SidebarPanel, bpy.types.Panel):
    bl_label = "Sliders"
    bl_idname = "SKINNING_PT_face_sliders"
    bl_parent_id = "SKINNING_PT_shape_keys"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return rig_and_sliders(active_object(context)) is not None

    def draw(self, context: bpy.types.Context) -> None:
        found = rig_and_sliders(active_object(context))
        assert found is not None
        rig, names = found
        column = self.layout.column(align=True)
        for name in names:
            column.prop(rig, property_path(name), text=name, slider=True, translate=False)
        self.layout.operator_menu_enum("skinning.add_slider_poses", "kind", icon="ARMATURE_DATA")
        self.layout.operator("skinning.save_slider_table", icon="EXPORT")


registry = [SKINNING_PT_shape_keys, SKINNING_PT_face_sliders]
