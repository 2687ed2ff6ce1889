# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of the tools on weights: rogue weights, smoothing, compression, partition."""

from collections.abc import Callable

import bpy

from ...blender import background
from ...blender.character import target_mesh
from ...blender.control_points import SKIN_TYPES
from ...blender.job_checks import reason_not_to_work
from ...blender.weight_tools import weighted_mesh, weighted_or_edited_mesh
from ...ui.drawing import (
    ListRows,
    SidebarPanel,
    draw_failure,
    draw_figures,
    draw_frame_range,
    draw_job,
    draw_mesh,
    draw_text,
    draw_vertex_group,
    split_layout,
)
from ...ui.groups import WEIGHTS
from ...ui.presets import PresetsMenu
from .compression import compression_figures
from .rigid_parts import check_partitionable, partition_figures
from .settings import PRESETS, PartitionSettings


class SKINNING_UL_rogue_weights(ListRows, bpy.types.UIList):
    def draw_row(self, layout: bpy.types.UILayout, data: bpy.types.bpy_struct, item: bpy.types.bpy_struct) -> None:
        group = data.id_data.vertex_groups.get(item.bone)
        locked = group is not None and group.lock_weight
        # Bone names need the space.
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
    """Mix-in for all panels in this module."""

    bl_options = {"DEFAULT_CLOSED"}

    def prepared(self, context: bpy.types.Context) -> tuple[bpy.types.UILayout, bpy.types.Object | None]:
        """The layout of a sub-panel, and the mesh to work on or None."""
        layout = split_layout(self)
        layout.enabled = background.running_job() is None
        return layout, target_mesh(context, SKIN_TYPES)


class SKINNING_PT_weights(_Part, bpy.types.Panel):
    bl_label = "Weights"
    bl_idname = "SKINNING_PT_weights"
    bl_parent_id = WEIGHTS
    titles = (
        "Find Unweighted Vertices",
        "Find Rogue Weights",
        "Select Rogue Vertices",
        "Remove Rogue Weights",
        "Smooth Weights",
        "Compress Weights",
        "Save Weight Table",
        "Partition into Rigid Parts",
    )

    def draw(self, context: bpy.types.Context) -> None:
        job = background.running_job()
        if job is not None:
            draw_job(self.layout, job, SKINNING_PT_weights)
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

    def draw(self, context: bpy.types.Context) -> None:
        layout, mesh_object = self.prepared(context)
        layout.operator("skinning.find_rogue_weights", icon="VIEWZOOM")
        shown = mesh_object.skinning_rogue_weights if mesh_object is not None else None
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


class SKINNING_PT_smooth_presets(PresetsMenu, bpy.types.Panel):
    bl_label = "Smooth Presets"
    presets = PRESETS


class SKINNING_PT_smooth_weights(_Part, bpy.types.Panel):
    bl_label = "Smooth"
    bl_idname = "SKINNING_PT_smooth_weights"
    bl_parent_id = "SKINNING_PT_weights"

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        SKINNING_PT_smooth_presets.draw_panel_header(self.layout)

    def draw(self, context: bpy.types.Context) -> None:
        layout, mesh_object = self.prepared(context)
        settings = context.scene.skinning_weight_tools.smooth
        column = layout.column()
        column.prop(settings, "strength")
        column.prop(settings, "iterations")
        column.prop(settings, "max_influences")
        column.prop(settings, "keep_creases")
        column.prop(settings, "use_selection")
        draw_vertex_group(column, settings, mesh_object)
        layout.operator("skinning.smooth_weights", icon="MOD_SMOOTH")


class SKINNING_PT_compress_weights(_Part, bpy.types.Panel):
    bl_label = "Compress"
    bl_idname = "SKINNING_PT_compress_weights"
    bl_parent_id = "SKINNING_PT_weights"

    def draw(self, context: bpy.types.Context) -> None:
        layout, mesh_object = self.prepared(context)
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
        draw_figures(layout, compression_figures(mesh_object) if mesh_object is not None else None)
        layout.separator()
        layout.prop(context.scene.skinning_weight_tools.gltf, "weights")
        layout.operator("skinning.save_weight_table", icon="EXPORT")


class SKINNING_PT_partition_rigid(_Part, bpy.types.Panel):
    bl_label = "Partition"
    bl_idname = "SKINNING_PT_partition_rigid"
    bl_parent_id = "SKINNING_PT_weights"

    def draw(self, context: bpy.types.Context) -> None:
        layout, mesh_object = self.prepared(context)
        settings = context.scene.skinning_weight_tools.partition
        column = layout.column()
        for name in PartitionSettings.declared:
            column.prop(settings, name)
        layout.operator("skinning.partition_rigid", icon="MOD_EXPLODE")
        _draw_reason(layout, context, check_partitionable)
        draw_figures(layout, partition_figures(mesh_object) if mesh_object is not None else None)


def _draw_heads(layout: bpy.types.UILayout) -> None:
    """Draw the column headings of the list of rogue weights."""
    split = layout.row().split(factor=0.54, align=True)
    split.label(text="Bone")
    row = split.row(align=True)
    row.label(text="Vertices")
    row.label(text="Weight")


def _draw_reason(layout: bpy.types.UILayout, context: bpy.types.Context, check: Callable) -> None:
    """Draw the reason why this tool cannot run, such as Edit Mode or a mesh without faces, although others can."""
    if reason_not_to_work(context, weighted_or_edited_mesh):
        return
    reason = reason_not_to_work(context, check)
    if reason:
        draw_text(layout, context, reason, "INFO")


registry = [
    SKINNING_PT_smooth_presets,
    SKINNING_UL_rogue_weights,
    SKINNING_PT_weights,
    SKINNING_PT_rogue_weights,
    SKINNING_PT_smooth_weights,
    SKINNING_PT_compress_weights,
    SKINNING_PT_partition_rigid,
]
