# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of the weight view: its settings, and the legend of its colors."""

import bpy

from ...blender.active_vertex import active_vertex
from ...blender.character import character_of, target_mesh
from ...blender.job_checks import reason_not_to_work
from ...blender.translation import translated
from ...ui.drawing import ListRows, SidebarPanel, draw_mesh, draw_text
from ...ui.groups import WEIGHTS
from . import weight_view

BUTTONS = (("BONES", "Bones"), ("COUNT", "Influences"))
_LIST_ROWS = 6


class SKINNING_UL_shown_bones(ListRows, bpy.types.UIList):
    def draw_row(self, layout: bpy.types.UILayout, data: bpy.types.bpy_struct, item: bpy.types.bpy_struct) -> None:
        row = layout.row(align=True)
        row.use_property_split = False
        _draw_swatch(row, item)
        row.label(text=item.name)
        share = row.row()
        share.alignment = "RIGHT"
        share.label(text=f"{item.share:.1%}")


class SKINNING_PT_weight_view(SidebarPanel, bpy.types.Panel):
    bl_label = "Weight View"
    bl_idname = "SKINNING_PT_weight_view"
    bl_parent_id = WEIGHTS
    # Its button switches off what is shown, whatever is selected.
    always = True
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        draw_mesh(layout, context)
        mesh_object = target_mesh(context)
        shown = weight_view.shows_weights(mesh_object)
        group = mesh_object.data.skinning_weight_view if mesh_object is not None and shown else None
        row = layout.row(align=True)
        for mode, label in BUTTONS:
            active = group is not None and group.mode == mode
            button = row.operator("skinning.show_weights", text=label, depress=active)
            button.mode = mode
            if group is not None:
                button.palette = group.palette
        if shown:
            row.operator("skinning.show_weights", text="", icon="X").mode = "OFF"
        reason = reason_not_to_work(
            context,
            lambda context, mesh_object: weight_view.check_showable(context, character_of(context, mesh_object)),
        )
        if reason:
            draw_text(layout, context, reason, "INFO")
        if group is None:
            return
        _draw_hints(layout, context, mesh_object)
        if group.mode == "COUNT":
            _draw_counts(layout, group, mesh_object)
        _draw_vertex(layout, group, mesh_object)
        if group.mode == "BONES":
            layout.prop(group, "palette")
            layout.template_list(
                "SKINNING_UL_shown_bones", "", group, "bones", group, "active_index", rows=_LIST_ROWS, sort_lock=True
            )
        refresh = layout.operator("skinning.show_weights", text="Refresh", icon="FILE_REFRESH")
        refresh.mode, refresh.most, refresh.palette = group.mode, group.most, group.palette


def _draw_hints(layout: bpy.types.UILayout, context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Draw hints on why the colors may not be visible."""
    space = context.space_data
    if mesh_object.mode == "WEIGHT_PAINT":
        if space.overlay.weight_paint_mode_opacity > 0:
            draw_text(layout, context, "The weights of the active group cover the colors", "INFO")
        layout.prop(space.overlay, "weight_paint_mode_opacity", text="Active Group's Opacity")
    elif space.shading.type != "SOLID" or space.shading.color_type != "VERTEX":
        draw_text(layout, context, "This view does not show color attributes", "INFO")
        layout.prop(space.shading, "color_type", text="Color")


def _draw_counts(layout: bpy.types.UILayout, group: bpy.types.PropertyGroup, mesh_object: bpy.types.Object) -> None:
    layout.prop(group, "most")
    whole = max(len(mesh_object.data.vertices), 1)
    column = layout.column(align=True)
    for item in group.counts:
        row = column.row()
        _draw_swatch(row, item)
        bones = "no bone" if not item.influences else "1 bone" if item.influences == 1 else f"{item.influences} bones"
        row.label(text=translated(bones))
        row.label(text=f"{item.vertices / whole:.1%}")
        row.label(text=f"{item.vertices:,}")


def _draw_vertex(layout: bpy.types.UILayout, group: bpy.types.PropertyGroup, mesh_object: bpy.types.Object) -> None:
    """Draw the bones of the active vertex."""
    vertex = active_vertex(mesh_object)
    if vertex is None:
        return
    colored = {item.name: item for item in group.bones}
    weights = sorted(((weight, name) for name, weight in vertex.groups.items() if name in colored), reverse=True)
    total = sum(weight for weight, _ in weights)
    box = layout.box().column(align=True)
    box.label(text=translated(f"Vertex {vertex.index}"))
    for weight, name in weights:
        row = box.row()
        _draw_swatch(row, colored[name])
        row.label(text=name)
        row.label(text=f"{weight / total:.3f}" if total > 0 else "0")


def _draw_swatch(row: bpy.types.UILayout, item: bpy.types.PropertyGroup) -> None:
    swatch = row.row()
    swatch.ui_units_x = 1.2
    swatch.prop(item, "color", text="")


registry = [SKINNING_UL_shown_bones, SKINNING_PT_weight_view]
