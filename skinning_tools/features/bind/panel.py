# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of binding."""

from collections.abc import Sequence

import bpy

from ...blender import background
from ...blender.control_points import SKIN_TYPES
from ...blender.figures import rows_of_panel
from ...blender.job_checks import active_object, reason_not_to_work
from ...blender.translation import translated
from ...core.errors import SkinningError
from ...ui.drawing import (
    SidebarPanel,
    draw_button,
    draw_failure,
    draw_job,
    draw_rows,
    draw_text,
    idle_column,
    split_layout,
)
from ...ui.groups import WEIGHTS
from ...ui.presets import PresetsMenu
from . import segment_view
from .bind import bind_record, check_bindable
from .settings import METHODS, PRESETS, SkinningBindSettings, binds_objects, chosen_armature
from .targets import Targets, find_armature
from .volumes import volume_summary, volumes_of

_METHOD_NAMES = {identifier: name for identifier, name, *_ in METHODS}


class SKINNING_PT_bind_presets(PresetsMenu, bpy.types.Panel):
    bl_label = "Bind Presets"
    presets = PRESETS


class SKINNING_PT_bind(SidebarPanel, bpy.types.Panel):
    bl_label = "Bind"
    bl_idname = "SKINNING_PT_bind"
    bl_parent_id = WEIGHTS
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Bind", "Show Segments", "Find T-Intersections", "Generate Volumes", "Mirror Volumes", "Remove Volumes")

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        SKINNING_PT_bind_presets.draw_panel_header(self.layout)

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        settings = context.scene.skinning_bind
        job = background.running_job()
        column = idle_column(layout)
        _draw_settings(column, context, settings)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_bind)
            return
        if settings.method == "CONTAINMENT":
            _draw_volumes(layout, context, settings)
        targets, given = [], (chosen_armature(context.scene), settings)
        reason = reason_not_to_work(context, lambda context, _: targets.append(check_bindable(context, *given)))
        if not reason:
            layout.label(text=translated(_what_is_bound(targets[0])), icon="MOD_ARMATURE")
        text = "Parent to Bones" if binds_objects(settings) else "Bind"
        draw_button(layout, context, "skinning.bind", text, "BONE_DATA", reason)
        draw_failure(layout, context, SKINNING_PT_bind)
        _draw_figures(layout, context, targets)


def _what_is_bound(targets: Targets) -> str:
    meshes = targets.meshes
    what = f'"{meshes[0].name}"' if len(meshes) == 1 else f"{len(meshes)} meshes"
    return f'{what} to "{targets.armature.name}"'


def _draw_settings(layout: bpy.types.UILayout, context: bpy.types.Context, settings: SkinningBindSettings) -> None:
    layout.prop(settings, "method")
    method = settings.bl_rna.properties["method"].enum_items[settings.method]
    draw_text(layout, context, method.description, "INFO")
    rigid = settings.method == "RIGID"
    layout.prop(settings, "armature", text="Armature")
    if rigid:
        column = layout.column(align=True)
        column.prop(settings, "as_objects")
        row = column.row()
        row.enabled = not settings.as_objects
        row.prop(settings, "whole_parts")
    else:
        layout.prop(settings, "max_influences")
    layout.prop(settings, "in_pose")
    column = layout.column()
    column.enabled = not binds_objects(settings)
    column.prop(settings, "replace")
    column.prop(settings, "selected_bones")
    column.prop(settings, "all_bones")
    if not binds_objects(settings):
        shown = segment_view.display.shown
        text, icon = ("Hide Segments", "HIDE_ON") if shown else ("Show Segments", "HIDE_OFF")
        layout.operator("skinning.show_segments", text=text, icon=icon, depress=shown).show = not shown
        if segment_view.display.failure:
            draw_text(layout, context, segment_view.display.failure, "INFO")
    if not rigid:
        layout.operator("skinning.find_t_intersections", icon="VERTEXSEL")
        header, body = layout.panel("skinning_bind_limits", default_closed=True)
        header.label(text="Limits")
        if body is not None:
            body.prop(settings, "distance_limit")
            body.prop(settings, "use_envelopes")


def _draw_volumes(layout: bpy.types.UILayout, context: bpy.types.Context, settings: bpy.types.PropertyGroup) -> None:
    try:
        armature = find_armature(context, chosen_armature(context.scene))
    except SkinningError:
        return
    present = bool(volumes_of(armature))
    box = layout.box()
    box.prop(settings, "volume_kind")
    box.operator(
        "skinning.generate_volumes",
        text="Generate Again" if present else "Generate Volumes",
        icon="FILE_REFRESH" if present else "ADD",
    )
    if present:
        row = box.row(align=True)
        row.operator("skinning.mirror_volumes", text="Mirror", icon="MOD_MIRROR")
        row.operator("skinning.remove_volumes", text="Remove", icon="X")
    draw_text(box, context, volume_summary(armature), "META_CAPSULE")
    column = box.column(align=True)
    column.prop(settings, "falloff_inside")
    column.prop(settings, "falloff_outside")
    box.prop(settings, "smooth")


def _draw_figures(layout: bpy.types.UILayout, context: bpy.types.Context, targets: Sequence[Targets]) -> None:
    """Draw the figures of the mesh that the button works on, or of the active one."""
    meshes = targets[0].meshes if targets else (active_object(context),)
    mesh_object = meshes[0]
    record = (
        bind_record(mesh_object)
        if len(meshes) == 1 and mesh_object is not None and mesh_object.type in SKIN_TYPES
        else None
    )
    if record is None:
        return
    draw_rows(
        layout,
        [
            ("Method", _METHOD_NAMES.get(record.method, record.method)),
            *rows_of_panel(record.figures()),
            ("Time", f"{record.seconds:.1f} s"),
        ],
    )


registry = [SKINNING_PT_bind_presets, SKINNING_PT_bind]
