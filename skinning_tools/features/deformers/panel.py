# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel "Bake Deformers"."""

import bpy

from ...blender import background
from ...blender.character import target_mesh
from ...blender.figures import rows_of_panel
from ...blender.job_checks import reason_not_to_work
from ...blender.records import read_record
from ...ui.drawing import SidebarPanel, draw_button, draw_failure, draw_job, draw_rows, idle_column, split_layout
from ...ui.groups import WEIGHTS
from .earlier_weights import check_restorable
from .figures import FIGURES, BakeFigures
from .settings import DeformerSettings
from .subject import check_bakeable
from .teacher import EARLIER


class SKINNING_PT_bake_deformers(SidebarPanel, bpy.types.Panel):
    bl_label = "Bake Deformers"
    bl_idname = "SKINNING_PT_bake_deformers"
    bl_parent_id = WEIGHTS
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Bake Deformers", "Restore Weights", "Save Training Set")

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        settings, job = context.scene.skinning_deformers, background.running_job()
        mesh = target_mesh(context)
        column = idle_column(layout)
        for name in DeformerSettings.places:
            column.prop(settings, name)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_bake_deformers)
        baked = mesh is not None and EARLIER in mesh.data
        name, check = ("restore_weights", check_restorable) if baked else ("bake_deformers", check_bakeable)
        text, icon = ("Restore Weights", "LOOP_BACK") if baked else ("Bake Deformers", "MOD_SMOOTH")
        reason = "" if job is not None else reason_not_to_work(context, check)
        body = layout.column()
        body.enabled = job is None
        draw_button(body, context, f"skinning.{name}", text, icon, reason)
        if not baked:
            draw_button(body, context, "skinning.save_training_set", "Save Training Set", "EXPORT", reason)
        draw_failure(layout, context, SKINNING_PT_bake_deformers)
        figures = read_record(mesh.data, FIGURES, BakeFigures) if mesh is not None else None
        if figures is not None:
            draw_rows(layout, rows_of_panel(figures.figures()))


registry = [SKINNING_PT_bake_deformers]
