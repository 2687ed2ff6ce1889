# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of the preview: method, colors, and what the preview does not show."""

from typing import TYPE_CHECKING

import bpy

from ...blender.character import on_mesh_meant, target_mesh
from ...blender.job_checks import reason_not_to_work
from ...blender.skin_reader import check_turning
from ...blender.translation import translated
from ...ui.drawing import SidebarPanel, draw_mesh, draw_text
from ...ui.groups import DEFORMATION
from ..centers.bake_state import shown_bake_state
from ..centers.baking import MISSING, STALE
from . import session
from .settings import SkinningPreviewSettings

if TYPE_CHECKING:
    from .skin_view import SkinView

BUTTONS = (("LBS", "Linear"), ("DQS", "Dual Quat."), ("CRS", "Centers"))


class SKINNING_PT_preview(SidebarPanel, bpy.types.Panel):
    bl_label = "Preview"
    bl_idname = "SKINNING_PT_preview"
    bl_parent_id = DEFORMATION
    # Its button switches off what is shown, whatever is selected.
    always = True
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        settings = context.window_manager.skinning_preview
        shown = session.display.subject
        draw_mesh(layout, context)
        reason = "" if shown is not None else reason_not_to_work(context, on_mesh_meant(check_turning))
        row = layout.row(align=True)
        row.enabled = not reason
        for mode, label in BUTTONS:
            depress = shown is not None and shown.mode == mode
            row.operator("skinning.preview", text=label, depress=depress).mode = mode
        if shown is not None:
            layout.operator("skinning.preview", text="Turn Off", icon="X").mode = "OFF"
        elif session.display.failure or reason:
            draw_text(layout, context, session.display.failure or reason, "INFO")
        self._draw_bake(context, shown)
        if shown is not None:
            draw_settings(layout, settings, shown)

    def _draw_bake(self, context: bpy.types.Context, shown: "SkinView | None") -> None:
        """Draw the button that bakes the centers, if the preview has none or outdated ones."""
        mesh = shown.target() if shown is not None else target_mesh(context)
        if mesh is None or mesh.data.is_editmode or not mesh.vertex_groups:
            return
        state = shown_bake_state(mesh)
        if state == MISSING:
            draw_text(self.layout, context, f'"{mesh.name}" has no centers of rotation yet', "INFO")
        elif state == STALE:
            draw_text(self.layout, context, "The centers of rotation are older than the mesh or its weights", "ERROR")
        if state in (MISSING, STALE):
            row = self.layout.row()
            # The previewed mesh, whatever is active: while posing, it is the armature.
            row.context_pointer_set("active_object", mesh)
            row.operator("skinning.bake_rotation_centers", text="Bake Centers")


def draw_settings(layout: bpy.types.UILayout, settings: SkinningPreviewSettings, shown: "SkinView") -> None:
    layout.use_property_split = True
    layout.use_property_decorate = False
    column = layout.column()
    column.prop(settings, "side_by_side")
    if settings.side_by_side:
        column.prop(settings, "spacing")
    column.prop(settings, "offset")
    column = layout.column()
    column.prop(settings, "colors")
    if settings.colors == "DISTANCE":
        column.prop(settings, "compared")
        column.prop(settings, "color_range")
    column = layout.column()
    column.prop(settings, "opacity")
    column.prop(settings, "in_front")
    row = column.row()
    row.enabled = shown.has_centers
    row.prop(settings, "show_centers")
    if shown.data.crowded:
        layout.label(text=translated(f"{shown.data.crowded:,} vertices show only their strongest bones"), icon="INFO")


registry = [SKINNING_PT_preview]
