# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of Fit Weights to Pose: posed copies, settings, the fit, and the reachable region."""

from collections.abc import Sequence
from functools import partial

import bpy

from ...blender import background, error_display
from ...blender.active_vertex import active_vertex
from ...blender.job_checks import active_object, reason_not_to_work
from ...blender.skin_reader import armature_of
from ...blender.translation import translated
from ...core.errors import SkinningError
from ...ui.drawing import SidebarPanel, draw_failure, draw_job, draw_mesh, draw_text, idle_column, split_layout
from ...ui.groups import WEIGHTS
from . import drag_tool, reachable_view
from .drag import check_draggable
from .fit import ERROR_ATTRIBUTE, check_ready
from .posed_copies import check_startable, copies_of, fit_target, is_copy
from .reachable_region import shown_mesh
from .settings import FitSettings, SkinningWeightFit


class SKINNING_PT_fit_weights(SidebarPanel, bpy.types.Panel):
    bl_label = "Fit Weights to Pose"
    bl_idname = "SKINNING_PT_fit_weights"
    bl_parent_id = WEIGHTS
    bl_options = {"DEFAULT_CLOSED"}
    titles = (
        "Start Weight Fit",
        "Fit Weights to Pose",
        "Drag Vertex in Pose",
        "Show Posed Copy",
        "Show Fit Error",
        "Cancel Weight Fit",
    )

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        settings = context.scene.skinning_weight_fit
        draw_mesh(idle_column(layout), context)
        original = _original(context)
        if original is None:
            draw_text(layout, context, reason_not_to_work(context, fit_target), "INFO")
            if is_copy(active_object(context)):
                layout.operator("skinning.cancel_weight_fit", text="Cancel", icon="X")
            return
        job = background.running_job()
        column = idle_column(layout)
        column.prop(settings, "source")
        copies = copies_of(original, context.scene)
        _draw_source(column, context, settings, original, copies)
        _draw_settings(column, settings)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_fit_weights)
            return
        reason = reason_not_to_work(context, partial(check_ready, settings=FitSettings.of(settings)))
        row = layout.row(align=True)
        row.scale_y = 1.5
        button = row.row(align=True)
        button.enabled = not reason
        button.operator("skinning.fit_weights_to_pose", text="Fit Weights", icon="MOD_VERTEX_WEIGHT")
        if copies:
            row.operator("skinning.cancel_weight_fit", text="Cancel", icon="X")
        if reason and (copies or settings.source != "COPIES"):
            draw_text(layout, context, reason, "INFO")
        draw_failure(layout, context, SKINNING_PT_fit_weights)
        _draw_drag(layout, context, settings)
        _draw_reachable(layout, context)
        _draw_error(layout, original)


def _original(context: bpy.types.Context) -> bpy.types.Object | None:
    """The mesh object to fit, or None."""
    try:
        original = fit_target(context, active_object(context))
    except SkinningError:
        return None
    return original if armature_of(original) is not None else None


def _draw_source(
    layout: bpy.types.UILayout,
    context: bpy.types.Context,
    settings: SkinningWeightFit,
    original: bpy.types.Object,
    copies: Sequence[bpy.types.Object],
) -> None:
    if settings.source == "OBJECT":
        layout.prop_search(settings, "target", context.scene, "objects")
        return
    if settings.source == "SHAPE_KEY":
        keys = original.data.shape_keys
        if keys is None:
            draw_text(layout, context, f'"{original.name}" has no shape keys', "INFO")
        else:
            layout.prop_search(settings, "shape_key", keys, "key_blocks")
        return
    active = context.view_layer.objects.active
    column = layout.column(align=True)
    for copy in copies:
        row = column.row(align=True)
        shown = copy == active
        row.operator(
            "skinning.show_fit_copy",
            text=translated(f"{copy.name}, frame {copy.skinning_fit_copy.frame}"),
            icon="HIDE_OFF" if copy.visible_get() else "HIDE_ON",
            depress=shown,
        ).name = copy.name
    reason = reason_not_to_work(context, check_startable)
    row = column.row(align=True)
    row.enabled = not reason
    row.operator("skinning.start_weight_fit", text="Add This Pose" if copies else "Start", icon="ADD")
    if reason:
        draw_text(layout, context, reason, "INFO")
    elif not copies:
        draw_text(layout, context, "Pose the armature, then press Start and move vertices of the copy", "INFO")


def _draw_settings(layout: bpy.types.UILayout, settings: SkinningWeightFit) -> None:
    column = layout.column()
    column.prop(settings, "candidates")
    column.prop(settings, "max_influences")
    column.row().prop(settings, "vertices", expand=True)
    if settings.vertices == "MOVED":
        column.prop(settings, "threshold")
    if settings.source == "COPIES":
        column.prop(settings, "keep_copies")


def _draw_drag(layout: bpy.types.UILayout, context: bpy.types.Context, settings: SkinningWeightFit) -> None:
    """Draw the button that lets the mouse drag vertices."""
    reason = reason_not_to_work(context, check_draggable)
    column = layout.column(align=True)
    row = column.row()
    row.enabled = not reason
    row.operator("skinning.drag_vertex", text="Drag Vertices", icon="VIEW_PAN", depress=drag_tool.display.shown)
    column.prop(settings, "radius")


def _draw_reachable(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    reachable = reachable_view.display
    layout.operator(
        "skinning.show_reachable",
        text="Hide Reachable Region" if reachable.shown else "Show Reachable Region",
        icon="MESH_ICOSPHERE",
        depress=reachable.shown,
    ).show = not reachable.shown
    if reachable.failure:
        draw_text(layout, context, reachable.failure, "ERROR")
    elif reachable.shown and active_vertex(shown_mesh(context)) is None:
        draw_text(layout, context, "Select one vertex to see where it can move", "INFO")


def _draw_error(layout: bpy.types.UILayout, original: bpy.types.Object) -> None:
    if ERROR_ATTRIBUTE not in original.data.attributes:
        return
    shown = error_display.shows_colors(original)
    layout.operator(
        "skinning.show_fit_error", text="Hide Distance Left" if shown else "Show Distance Left", icon="COLOR"
    ).show = not shown


registry = [SKINNING_PT_fit_weights]
