# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of joint helpers: the present ones, and buttons that add bone links, twist bones and bulge bones."""

import bpy

from ...blender import background
from ...blender.bone_selection import selected_bones
from ...blender.helper_bones.records import BULGE, LINKS, TWIST, Helper, find_helpers
from ...blender.job_checks import active_object, reason_not_to_work
from ...blender.translation import translated
from ...blender.wording import counted
from ...ui.drawing import SidebarPanel, draw_button, draw_failure, draw_job, draw_text, split_layout
from ...ui.groups import DEFORMATION
from .bulge_bones import slider_names
from .bulge_presets import PRESETS
from .joints import helped_armature

# More would fill the sidebar.
_SHOWN = 24
_SHOWN_NAMES = 3


class SKINNING_PT_joint_helpers(SidebarPanel, bpy.types.Panel):
    bl_label = "Bone Links and Bulges"
    bl_idname = "SKINNING_PT_joint_helpers"
    bl_parent_id = DEFORMATION
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Add Bone Links", "Remove Bone Links", "Add Bulge Bone", "Remove Bulge Bone")

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        reason = reason_not_to_work(context, helped_armature)
        job = background.running_job()
        if job is not None:
            draw_job(layout, job, SKINNING_PT_joint_helpers)
            return
        if reason:
            draw_text(layout, context, reason, "INFO")
            return
        draw_failure(layout, context, SKINNING_PT_joint_helpers)
        armature = helped_armature(context, active_object(context))
        helpers = find_helpers(armature, (LINKS, TWIST, BULGE))
        if not helpers:
            draw_text(layout, context, "The armature has no bone links, twist bones or bulge bones yet", "INFO")
        for helper in helpers[:_SHOWN]:
            _draw_helper(layout, armature, helper)
        if len(helpers) > _SHOWN:
            layout.label(text=translated(f"and {len(helpers) - _SHOWN} more"))


class _Part(SidebarPanel):
    """Mix-in for the subpanels."""

    bl_parent_id = "SKINNING_PT_joint_helpers"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return not reason_not_to_work(context, helped_armature)


class SKINNING_PT_bone_links(_Part, bpy.types.Panel):
    bl_label = "Bone Links"
    bl_idname = "SKINNING_PT_bone_links"

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        armature = helped_armature(context, active_object(context))
        settings = armature.skinning_joint_helpers
        layout.prop(settings, "kind", expand=True)
        layout.prop(settings, "all_joints")
        if not settings.all_joints:
            _draw_names(layout, "Joints" if settings.kind == LINKS else "Bones", selected_bones(armature))
        layout.prop(settings, "count")
        column = layout.column()
        column.active = settings.count == 0 or settings.all_joints
        column.prop(settings, "threshold")
        column.prop(settings, "most")
        if settings.kind == LINKS:
            column = layout.column(align=True)
            column.prop(settings, "reach")
            column.prop(settings, "spread")
            column.prop(settings, "across")
        column = layout.column(align=True)
        column.prop(settings, "bias", slider=True)
        column.prop(settings, "ease", slider=True)
        layout.prop(settings, "mirror")
        text = "Add Bone Links" if settings.kind == LINKS else "Add Twist Bones"
        draw_button(layout, context, "skinning.add_bone_links", text, "CONSTRAINT_BONE")


class SKINNING_PT_bulge_bones(_Part, bpy.types.Panel):
    bl_label = "Bulge, Shoulder and Cloth Bones"
    bl_idname = "SKINNING_PT_bulge_bones"
    # With both panels open, the sidebar is longer than the window.
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        armature = helped_armature(context, active_object(context))
        settings = armature.skinning_joint_helpers
        layout.prop(settings, "preset")
        active = armature.data.bones.active
        _draw_names(layout, "Bone", [active.name] if active is not None else [])
        layout.prop_search(settings, "driver_bone", armature.data, "bones")
        preset = PRESETS[settings.preset]
        layout.prop_search(settings, "mesh", context.scene, "objects", icon="MESH_DATA")
        layout.prop(settings, "motion")
        if preset.driven or settings.driver_bone:
            layout.prop(settings, "measure")
            column = layout.column(align=True)
            column.prop(settings, "angle_start")
            column.prop(settings, "angle_end")
        layout.prop(settings, "amount")
        layout.prop(settings, "radius")
        layout.prop(settings, "along_surface")
        layout.prop(settings, "center")
        if settings.center == "BONE" and preset.girdle is None:
            layout.prop(settings, "around")
        layout.prop(settings, "mirror")
        draw_button(layout, context, "skinning.add_bulge_bone", "Add Bulge Bone", "BONE_DATA")


def _draw_helper(layout: bpy.types.UILayout, armature: bpy.types.Object, helper: Helper) -> None:
    box = layout.box().column(align=True)
    row = box.row()
    if helper.kind == BULGE:
        row.label(text=helper.skin[0], icon="BONE_DATA")
        row.operator("skinning.remove_bulge_bone", text="", icon="X", emboss=False).bones = helper.skin[0]
        bone = armature.pose.bones[helper.skin[0]]
        sliders = box.column(align=True)
        sliders.use_property_split = True
        for name in slider_names(armature, helper.skin[0]):
            sliders.prop(bone, f'["{name}"]', text=_LABELS[name])
        return
    links = counted(len(helper.skin), "link" if helper.kind == LINKS else "twist bone")
    row.label(
        text=f"{helper.label}: {translated(links)}", icon="CONSTRAINT_BONE" if helper.kind == LINKS else "MOD_SCREW"
    )
    row.operator("skinning.remove_bone_links", text="", icon="X", emboss=False).joints = helper.skin[0]
    shares = box.column(align=True)
    shares.use_property_split = True
    for number, name in enumerate(helper.skin, 1):
        for constraint in armature.pose.bones[name].constraints[:1]:
            shares.prop(constraint, "influence", text=translated(f"Share {number}"))


_LABELS = {"amount": "Amount", "angle_start": "From", "angle_end": "To", "bulge": "Bulge", "reach": "Reach"}


def _draw_names(layout: bpy.types.UILayout, label: str, names: list[str]) -> None:
    row = layout.split(factor=0.4)
    side = row.row()
    side.alignment = "RIGHT"
    side.label(text=label)
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    row.label(text=", ".join(names[:_SHOWN_NAMES]) + more if names else "none selected")


registry = [SKINNING_PT_joint_helpers, SKINNING_PT_bone_links, SKINNING_PT_bulge_bones]
