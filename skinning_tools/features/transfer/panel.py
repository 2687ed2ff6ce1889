# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of transferred weights."""

import bpy

from ...blender import background
from ...blender.character import target_mesh
from ...blender.job_checks import reason_not_to_work
from ...blender.translation import translated
from ...ui.drawing import (
    SidebarPanel,
    draw_button,
    draw_failure,
    draw_figures,
    draw_job,
    draw_mesh,
    draw_vertex_group,
    idle_column,
    split_layout,
)
from ...ui.groups import WEIGHTS
from .settings import SkinningTransferSettings
from .targets import find_targets
from .transfer import transfer_record


class SKINNING_PT_transfer_weights(SidebarPanel, bpy.types.Panel):
    bl_label = "Transfer Weights"
    bl_idname = "SKINNING_PT_transfer_weights"
    bl_parent_id = WEIGHTS
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Transfer Weights", "Select Transferred")

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        settings = context.scene.skinning_transfer
        column = idle_column(layout)
        draw_mesh(column, context)
        mesh_object = target_mesh(context)
        _draw_settings(column, context, settings, mesh_object)
        job = background.running_job()
        if job is not None:
            draw_job(layout, job, SKINNING_PT_transfer_weights)
            return
        targets = []
        given = settings.source, settings.mirror != "NONE"
        reason = reason_not_to_work(
            context, lambda context, active: targets.append(find_targets(context, active, *given))
        )
        if not reason:
            meshes = targets[0].meshes
            what = f'"{meshes[0].name}"' if len(meshes) == 1 else f"{len(meshes)} meshes"
            layout.label(text=translated(f'"{targets[0].source.name}" to {what}'), icon="MOD_DATA_TRANSFER")
        draw_button(layout, context, "skinning.transfer_weights", "Transfer Weights", "MOD_DATA_TRANSFER", reason)
        draw_failure(layout, context, SKINNING_PT_transfer_weights)
        record = transfer_record(mesh_object) if mesh_object is not None else None
        if record is not None:
            draw_figures(layout, record)
            row = layout.row(align=True)
            row.operator("skinning.select_transferred", text="Select Matched").kind = "MATCHED"
            row.operator("skinning.select_transferred", text="Select Filled In").kind = "FILLED"


def _draw_settings(
    column: bpy.types.UILayout,
    context: bpy.types.Context,
    settings: SkinningTransferSettings,
    mesh_object: bpy.types.Object | None,
) -> None:
    column.prop_search(settings, "source", context.scene, "objects")
    column.prop(settings, "mirror")
    column.prop(settings, "replace")
    column.prop(settings, "factor")
    draw_vertex_group(column, settings, mesh_object)
    column.prop(settings, "max_influences")
    column.prop(settings, "lock_rim")
    header, body = column.panel("skinning_transfer_more", default_closed=True)
    header.label(text="Matching")
    if body is not None:
        body.prop(settings, "groups")
        body.prop(settings, "use_pose")
        body.prop(settings, "distance")
        body.prop(settings, "angle")


registry = [SKINNING_PT_transfer_weights]
