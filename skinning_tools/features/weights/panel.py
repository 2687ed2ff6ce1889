# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of the tools on weights: rogue weights, smoothing, compression, partition."""

import bpy

from ...blender import background
from ...blender.character import target_mesh
from ...blender.job_checks import reason_not_to_work
from ...blender.lengths import length_text
from ...blender.weight_tools import weighted_mesh, weighted_or_edited_mesh
from ...blender.wording import counted, vertices_text
from ...ui.drawing import (
    SidebarPanel,
    draw_failure,
    draw_frame_range,
    draw_job,
    draw_mesh,
    draw_rows,
    draw_text,
    split_layout,
)
from .compression import compression_figures
from .rigid_parts import check_partitionable, partition_figures, share_rows


class SKINNING_UL_rogue_weights(bpy.types.UIList):
    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0):
        group = data.id_data.vertex_groups.get(item.bone)
        locked = group is not None and group.lock_weight
        # Names of bones need the room.
        split = layout.split(factor=0.66, align=True)
        row = split.row(align=True)
        row.use_property_split = False
        row.prop(item, "checked", text="")
        row.label(text=item.bone, icon="LOCKED" if locked else "BONE_DATA")
        row = split.row(align=True)
        row.alignment = "RIGHT"
        row.label(text=f"{item.vertex_count:,}")
        row.label(text=f"{item.strength:.2f}")


class _Part(SidebarPanel):
    """Mix-in of all panels here."""

    bl_options = {"DEFAULT_CLOSED"}

    def prepared(self, context):
        """The layout of a sub-panel, and the mesh that is meant; None in place of the mesh where there is none."""
        layout = split_layout(self)
        layout.enabled = background.running_job() is None
        object = target_mesh(context)
        return layout, object if object is not None and object.type == "MESH" else None


class SKINNING_PT_weights(_Part, bpy.types.Panel):
    bl_label = "Weights"
    bl_idname = "SKINNING_PT_weights"
    failures = (
        "Find Unweighted Vertices",
        "Find Rogue Weights",
        "Select Rogue Vertices",
        "Remove Rogue Weights",
        "Smooth Weights",
        "Compress Weights",
        "Partition into Rigid Parts",
    )

    def draw(self, context):
        job = background.running_job()
        if job is not None:
            draw_job(self.layout, job)
            return
        draw_mesh(split_layout(self), context)
        reason = reason_not_to_work(context, weighted_or_edited_mesh)
        if reason:
            draw_text(self.layout, context, reason, "INFO")
        self.layout.operator("skinning.find_unweighted", icon="VERTEXSEL")
        draw_failure(self.layout, context, SKINNING_PT_weights)


class SKINNING_PT_rogue_weights(_Part, bpy.types.Panel):
    bl_label = "Rogue Weights"
    bl_idname = "SKINNING_PT_rogue_weights"
    bl_parent_id = "SKINNING_PT_weights"

    def draw(self, context):
        layout, object = self.prepared(context)
        layout.operator("skinning.find_rogue_weights", icon="VIEWZOOM")
        shown = object.skinning_rogue_weights if object is not None else None
        if shown is None or not shown.islands:
            return
        _draw_heads(layout)
        row = layout.row()
        row.template_list(
            "SKINNING_UL_rogue_weights", "", shown, "islands", shown, "active_index", rows=4, sort_lock=True
        )
        side = row.column(align=True)
        side.operator("skinning.check_rogue_weights", text="", icon="CHECKBOX_HLT").checked = True
        side.operator("skinning.check_rogue_weights", text="", icon="CHECKBOX_DEHLT").checked = False
        row = layout.row(align=True)
        row.operator("skinning.select_rogue_weights", text="Select", icon="RESTRICT_SELECT_OFF").index = min(
            shown.active_index, len(shown.islands) - 1
        )
        row.operator("skinning.select_rogue_weights", text="Select Checked").index = -1
        layout.operator("skinning.remove_rogue_weights", text="Remove Checked", icon="BRUSH_DATA").only_checked = True


class SKINNING_PT_smooth_weights(_Part, bpy.types.Panel):
    bl_label = "Smooth"
    bl_idname = "SKINNING_PT_smooth_weights"
    bl_parent_id = "SKINNING_PT_weights"

    def draw(self, context):
        layout, object = self.prepared(context)
        settings = context.scene.skinning_weight_tools.smooth
        column = layout.column()
        column.prop(settings, "strength")
        column.prop(settings, "iterations")
        column.prop(settings, "max_influences")
        column.prop(settings, "keep_creases")
        column.prop(settings, "use_selection")
        row = column.row(align=True)
        if object is not None:
            row.prop_search(settings, "vertex_group", object, "vertex_groups")
        else:
            row.prop(settings, "vertex_group")
        invert = row.row(align=True)
        invert.use_property_split = False
        invert.enabled = bool(settings.vertex_group)
        invert.prop(settings, "invert_vertex_group", text="", icon="ARROW_LEFTRIGHT", toggle=True)
        layout.operator("skinning.smooth_weights", icon="MOD_SMOOTH")


class SKINNING_PT_compress_weights(_Part, bpy.types.Panel):
    bl_label = "Compress"
    bl_idname = "SKINNING_PT_compress_weights"
    bl_parent_id = "SKINNING_PT_weights"

    def draw(self, context):
        layout, object = self.prepared(context)
        settings = context.scene.skinning_weight_tools.compress
        layout.row().prop(settings, "bits", expand=True)
        column = layout.column()
        column.prop(settings, "max_influences")
        column.prop(settings, "threshold")
        header, body = layout.panel("skinning_compress_frames", default_closed=True)
        header.label(text="Frames to Measure")
        if body is not None:
            draw_frame_range(body, context.scene, settings)
        layout.operator("skinning.compress_weights", icon="MOD_DECIM")
        _draw_reason(layout, context, weighted_mesh)
        figures = compression_figures(object) if object is not None else None
        if figures is not None:
            draw_rows(layout, _compression_rows(context, figures))


class SKINNING_PT_partition_rigid(_Part, bpy.types.Panel):
    bl_label = "Partition"
    bl_idname = "SKINNING_PT_partition_rigid"
    bl_parent_id = "SKINNING_PT_weights"

    def draw(self, context):
        layout, object = self.prepared(context)
        settings = context.scene.skinning_weight_tools.partition
        column = layout.column()
        column.prop(settings, "output")
        column.prop(settings, "tolerance")
        column.prop(settings, "least_faces")
        layout.operator("skinning.partition_rigid", icon="MOD_EXPLODE")
        _draw_reason(layout, context, check_partitionable)
        figures = partition_figures(object) if object is not None else None
        if figures is not None:
            draw_rows(
                layout,
                [
                    *((name.title(), f"{share:.1%} of vertices") for name, share in share_rows(figures.shares)),
                    ("Rigid Parts", f"{figures.parts:,}"),
                    ("Rigid Faces", f"{figures.rigid_faces:,}  ({figures.rigid_share:.1%})"),
                    ("Skin Faces", f"{figures.skin_faces:,}  ({1 - figures.rigid_share:.1%})"),
                ],
            )


def _draw_heads(layout) -> None:
    """Over the columns of the list of rogue weights."""
    split = layout.row().split(factor=0.54, align=True)
    split.label(text="Bone")
    row = split.row(align=True)
    row.label(text="Vertices")
    row.label(text="Weight")


def _draw_reason(layout, context, check) -> None:
    """What is said where Edit Mode, or a mesh without faces, is no hindrance to the other tools."""
    if reason_not_to_work(context, weighted_or_edited_mesh):
        return
    reason = reason_not_to_work(context, check)
    if reason:
        draw_text(layout, context, reason, "INFO")


def _compression_rows(context, figures) -> list[tuple[str, str]]:
    rows = [
        ("Bytes per Vertex", f"{figures.byte_count}  ({figures.bits} bits, {counted(figures.influences, 'bone')})"),
        ("Over the Limit", vertices_text(figures.cut)),
    ]
    if not figures.frames:
        return [*rows, ("Largest Error", "not measured")]
    when = "present pose" if figures.posed else f"frame {figures.frame}"
    return [
        *rows,
        ("Largest Error", length_text(context.scene, figures.largest)),
        ("Worst Vertex", f"{figures.vertex}, {when}"),
        ("Mean Error", length_text(context.scene, figures.mean)),
    ]


registry = [
    SKINNING_UL_rogue_weights,
    SKINNING_PT_weights,
    SKINNING_PT_rogue_weights,
    SKINNING_PT_smooth_weights,
    SKINNING_PT_compress_weights,
    SKINNING_PT_partition_rigid,
]
