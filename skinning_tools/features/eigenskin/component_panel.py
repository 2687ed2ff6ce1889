# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of the components that are shown before anything is built."""

import bpy

from ...blender import background
from ...blender.job_checks import reason_not_to_work
from ...ui.drawing import SidebarPanel, draw_failure, draw_job, draw_rows, draw_text, idle_column, split_layout
from . import component_view
from .build import check_buildable
from .components import Components


class SKINNING_PT_eigenskin_components(SidebarPanel, bpy.types.Panel):
    bl_label = "Components"
    bl_idname = "SKINNING_PT_eigenskin_components"
    bl_parent_id = "SKINNING_PT_eigenskin"
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Show Components",)

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        found = component_view.display.subject
        operator = "skinning.show_eigenskin_components"
        job = background.running_job()
        if job is not None:
            draw_job(layout, job, SKINNING_PT_eigenskin_components)
        else:
            reason = reason_not_to_work(context, check_buildable)
            row = layout.row(align=True)
            button = row.row(align=True)
            button.enabled = not reason
            button.operator(operator, text="Show Components" if found is None else "Find Again", icon="HIDE_OFF")
            if found is not None:
                row.operator(operator, text="", icon="X").show = False
            elif component_view.display.failure or reason:
                draw_text(layout, context, component_view.display.failure or reason, "INFO")
        draw_failure(layout, context, SKINNING_PT_eigenskin_components)
        if found is not None:
            _draw_shown(idle_column(layout), context, found)


def _draw_shown(layout: bpy.types.UILayout, context: bpy.types.Context, found: Components) -> None:
    settings = context.window_manager.skinning_components
    layout.label(text=found.name, icon="MESH_DATA", translate=False)
    layout.prop_search(settings, "support", settings, "supports", icon="BONE_DATA")
    layout.prop(settings, "component")
    layout.prop(settings, "value", slider=True)
    layout.prop(settings, "colors")
    name, component = component_view.chosen(settings, found)[:2]
    support = found.supports[name]
    squares = support.singular_values**2
    draw_rows(
        layout,
        [
            ("Component", f"{component + 1} of {len(support.components)}"),
            ("Captured", f"{squares[component] / squares.sum():.1%}"),
            ("Singular Value", f"{support.singular_values[component]:.3g}"),
            ("Vertices", f"{len(support.vertices):,}"),
        ],
    )


registry = [SKINNING_PT_eigenskin_components]
