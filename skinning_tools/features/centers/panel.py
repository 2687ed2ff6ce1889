# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of the centers of rotation: baking, state, playback and export."""

import bpy

from ...blender import background
from ...blender.center_records import native_modifier
from ...blender.character import on_mesh_meant, target_mesh
from ...blender.figures import rows_of_panel
from ...blender.job_checks import reason_not_to_work
from ...blender.skin_reader import check_turning
from ...blender.translation import translated
from ...ui.drawing import (
    SidebarPanel,
    draw_button,
    draw_failure,
    draw_frame_range,
    draw_job,
    draw_mesh,
    draw_rows,
    draw_text,
    idle_column,
    split_layout,
)
from ...ui.groups import DEFORMATION
from . import modifier
from .bake_state import is_being_checked, shown_bake_state
from .baking import FRESH, MISSING, STALE, bake_record
from .export import export_state
from .settings import BakeSettings


class SKINNING_PT_rotation_centers(SidebarPanel, bpy.types.Panel):
    bl_label = "Centers of Rotation"
    bl_idname = "SKINNING_PT_rotation_centers"
    bl_parent_id = DEFORMATION
    bl_options = {"DEFAULT_CLOSED"}
    titles = (
        "Bake Centers of Rotation",
        "Apply as Shape Keys",
        "Bake to PC2",
        "Add Center of Rotation Modifier",
        "Remove Center of Rotation Modifier",
    )

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        job = background.running_job()
        settings = idle_column(layout)
        draw_mesh(settings, context)
        for name in BakeSettings.declared:
            settings.prop(context.scene.skinning_rotation_centers, name)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_rotation_centers)
            return
        draw_button(layout, context, "skinning.bake_rotation_centers", "Bake Centers", "PIVOT_MEDIAN")
        draw_failure(layout, context, SKINNING_PT_rotation_centers)
        reason = reason_not_to_work(context, on_mesh_meant(check_turning))
        mesh_object = target_mesh(context)
        if reason:
            draw_text(layout, context, reason, "INFO")
            if mesh_object is not None:
                state = shown_bake_state(mesh_object)
                if state in (FRESH, STALE):
                    # The state known before the mesh became unreadable.
                    _draw_state(layout, context, mesh_object, state)
                if native_modifier(mesh_object) is not None:
                    _draw_remove(layout)
            return
        state = shown_bake_state(mesh_object)
        _draw_state(layout, context, mesh_object, state)
        _draw_playback(layout, context, mesh_object, state)


def _draw_state(
    layout: bpy.types.UILayout, context: bpy.types.Context, mesh_object: bpy.types.Object, state: str
) -> None:
    record = bake_record(mesh_object)
    if state == MISSING or record is None:
        layout.label(text="Not baked yet", icon="RADIOBUT_OFF")
        return
    if is_being_checked(mesh_object):
        layout.label(text="Baked, being checked", icon="SORTTIME")
    elif state == FRESH:
        layout.label(text="Baked, up to date", icon="CHECKMARK")
    elif state == STALE:
        draw_text(layout, context, "Older than the mesh or its weights: bake again", "ERROR")
    draw_rows(layout, rows_of_panel(record.figures(len(mesh_object.data.vertices))))


def _draw_playback(
    layout: bpy.types.UILayout, context: bpy.types.Context, mesh_object: bpy.types.Object, state: str
) -> None:
    unavailable = modifier.reason_not_available()
    if native_modifier(mesh_object) is not None:
        above = modifier.refining_above(mesh_object)
        if above is not None:
            draw_text(layout, context, f'"{above.name}" adds vertices above the modifier: move it below', "ERROR")
        elif not unavailable and not modifier.is_current(mesh_object):
            draw_text(layout, context, "Modifier older than the rig", "ERROR")
            _draw_add(layout, state, "Update Modifier", "FILE_REFRESH")
        _draw_remove(layout)
    else:
        if modifier.is_leftover(mesh_object):
            draw_text(layout, context, "Its modifier is gone, but the Armature modifier is still off", "ERROR")
            _draw_remove(layout, "Restore Armature Modifier", "MOD_ARMATURE")
        if state != MISSING and not unavailable:
            _draw_add(layout, state, "Add Modifier", "GEOMETRY_NODES")
    if state == MISSING:
        return
    if unavailable:
        draw_text(layout, context, unavailable, "INFO")
    header, body = layout.panel("skinning_center_playback", default_closed=not unavailable)
    header.label(text="Frame Range")
    if body is not None:
        body.enabled = state == FRESH
        _draw_copies(body, context)


def _draw_copies(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    settings = context.scene.skinning_rotation_centers
    draw_frame_range(layout, context.scene, settings)
    layout.operator("skinning.crs_to_shape_keys", icon="SHAPEKEY_DATA")
    column = layout.column()
    column.prop(settings, "cache_path")
    row = column.row(align=True)
    row.enabled = bool(bpy.data.filepath or settings.cache_path)
    row.operator("skinning.crs_to_pc2", icon="FILE_CACHE")
    if not row.enabled:
        draw_text(column, context, "Save the .blend file to write the cache beside it, or choose a path", "INFO")


def _draw_add(layout: bpy.types.UILayout, state: str, label: str, icon: str) -> None:
    row = layout.row()
    row.enabled = state == FRESH
    row.operator("skinning.add_center_of_rotation_modifier", text=label, icon=icon)


def _draw_remove(layout: bpy.types.UILayout, label: str = "Remove Modifier", icon: str = "X") -> None:
    layout.operator("skinning.remove_center_of_rotation_modifier", text=label, icon=icon)


class SKINNING_PT_export_centers(SidebarPanel, bpy.types.Panel):
    bl_label = "Export to glTF"
    bl_idname = "SKINNING_PT_export_centers"
    bl_parent_id = "SKINNING_PT_rotation_centers"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        mesh_object = target_mesh(context)
        return mesh_object is not None and bake_record(mesh_object) is not None

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.operator("skinning.prepare_centers_for_export", icon="EXPORT")
        state = export_state(target_mesh(context))
        if state == STALE:
            draw_text(layout, context, "Moved or baked since: prepare again", "ERROR")
            return
        done = "Prepared: export" if state == FRESH else "Then export"
        layout.label(text=translated(f"{done} with Data > Mesh > Attributes"), icon="INFO")


registry = [SKINNING_PT_rotation_centers, SKINNING_PT_export_centers]
