# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of EigenSkin: the examples, the build, and the corrections with the share captured by each support."""

import bpy

from ...blender import background, error_display
from ...blender.character import character_of, target_mesh
from ...blender.figures import rows_of_panel
from ...blender.job_checks import reason_not_to_work
from ...blender.lengths import length_text
from ...blender.look_ups import is_in_some_scene
from ...blender.skin_reader import armature_of
from ...blender.translation import translated
from ...ui.drawing import (
    ListRows,
    SidebarPanel,
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
from ...ui.presets import PresetsMenu
from .build import check_buildable, length_of_unit, notes_on_modifiers
from .estimate import last_estimate
from .record import Record, eigenskin_record
from .settings import PRESETS, SkinningEigenskin

# Number of supports with a plot; more would fill the sidebar.
_SHOWN_SUPPORTS = 40


class SKINNING_UL_eigenskin_examples(ListRows, bpy.types.UIList):
    # The mesh to work on; the panel finds it once per redraw, since finding the mesh of a rig may be slow.
    shown_mesh_uid = 0

    def draw_row(self, layout: bpy.types.UILayout, data: bpy.types.bpy_struct, item: bpy.types.bpy_struct) -> None:
        row = layout.row(align=True)
        row.use_property_split = False
        lost = item.mesh is None or not is_in_some_scene(item.mesh)
        # Examples of the armature's other meshes are grayed out.
        row.active = lost or item.mesh.session_uid == self.shown_mesh_uid
        row.prop(item, "enabled", text="")
        # No icon of the kind, which is below: in a narrow sidebar a name ends with what tells it from its neighbors.
        row.prop(item, "name", text="", emboss=False, icon="ERROR" if lost else "NONE")
        if item.error_before > 0:
            share = row.row()
            share.alignment = "RIGHT"
            share.ui_units_x = 2
            share.label(text=f"{item.error_after / item.error_before:.0%}")


class SKINNING_PT_eigenskin_presets(PresetsMenu, bpy.types.Panel):
    bl_label = "EigenSkin Presets"
    presets = PRESETS


class SKINNING_PT_eigenskin(SidebarPanel, bpy.types.Panel):
    bl_label = "EigenSkin"
    bl_idname = "SKINNING_PT_eigenskin"
    bl_parent_id = DEFORMATION
    bl_options = {"DEFAULT_CLOSED"}
    titles = (
        "Add Example",
        "Add Examples from Frames",
        "Mirror Examples",
        "Pose Joints",
        "Estimate Error",
        "Pose Next Example",
        "Fit Weights to Examples",
        "Build EigenSkin",
        "Bake EigenSkin to Keyframes",
        "Remove EigenSkin Keyframes",
        "Show EigenSkin Error",
    )

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        SKINNING_PT_eigenskin_presets.draw_panel_header(self.layout)

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        draw_mesh(idle_column(layout), context)
        mesh_object = target_mesh(context)
        armature = armature_of(mesh_object) if mesh_object is not None else None
        if armature is None:
            reason = reason_not_to_work(context, character_of)
            draw_text(layout, context, reason or "Select a mesh that an armature deforms, or its armature", "INFO")
            return
        job = background.running_job()
        column = idle_column(layout)
        _draw_examples(column, context, armature, mesh_object)
        _draw_estimate(column, armature, mesh_object)
        _draw_settings(column, armature.skinning_eigenskin)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_eigenskin)
            return
        record = eigenskin_record(mesh_object)
        button = layout.row()
        button.scale_y = 1.5
        button.operator(
            "skinning.build_eigenskin", text="Rebuild" if record else "Build EigenSkin", icon="SHAPEKEY_DATA"
        )
        reason = reason_not_to_work(context, check_buildable)
        if reason:
            draw_text(layout, context, reason, "INFO")
        draw_failure(layout, context, SKINNING_PT_eigenskin)


class SKINNING_PT_eigenskin_result(SidebarPanel, bpy.types.Panel):
    bl_label = "Corrections"
    bl_idname = "SKINNING_PT_eigenskin_result"
    bl_parent_id = "SKINNING_PT_eigenskin"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return eigenskin_record(target_mesh(context)) is not None

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        mesh_object = target_mesh(context)
        record = eigenskin_record(mesh_object)
        assert record is not None
        armature = armature_of(mesh_object)
        group = armature.skinning_eigenskin if armature is not None else None
        _draw_figures(layout, context, mesh_object, record, group)
        for note in notes_on_modifiers(mesh_object):
            draw_text(layout, context, note, "INFO")
        row = layout.row(align=True)
        row.operator(
            "skinning.mute_eigenskin", text="Unmute" if record.muted else "Mute", icon="HIDE_ON", depress=record.muted
        ).mute = not record.muted
        row.operator("skinning.remove_eigenskin", text="Remove", icon="X")
        if record.baked:
            layout.operator("skinning.unbake_eigenskin", text="Remove Keyframes", icon="KEY_DEHLT")
        else:
            layout.operator("skinning.bake_eigenskin", text="Bake to Keyframes", icon="KEY_HLT")
        layout.operator("skinning.save_eigenskin_table", icon="EXPORT")
        _draw_heat_map(layout, mesh_object)
        _draw_supports(layout, record)


def _draw_examples(
    layout: bpy.types.UILayout, context: bpy.types.Context, armature: bpy.types.Object, mesh_object: bpy.types.Object
) -> None:
    group = armature.skinning_eigenskin
    SKINNING_UL_eigenskin_examples.shown_mesh_uid = mesh_object.session_uid
    row = layout.row()
    row.template_list(
        "SKINNING_UL_eigenskin_examples", "", group, "examples", group, "active_index", rows=4, sort_lock=True
    )
    side = row.column(align=True)
    side.operator_menu_enum("skinning.eigenskin_add_example", "source", text="", icon="ADD")
    side.operator("skinning.eigenskin_remove_example", text="", icon="REMOVE")
    side.separator()
    side.operator("skinning.eigenskin_apply_pose", text="", icon="POSE_HLT")
    side.operator("skinning.eigenskin_mirror", text="", icon="MOD_MIRROR")
    row = layout.row(align=True)
    row.operator("skinning.eigenskin_pose_joints", text="Pose Joints", icon="ARMATURE_DATA")
    row.operator("skinning.eigenskin_add_frames", text="Add Frames", icon="TIME")
    header, body = layout.panel("skinning_eigenskin_frames", default_closed=True)
    header.label(text="Frames to Add")
    if body is not None:
        body.prop(group, "use_markers")
        draw_frame_range(body, context.scene, group)
    shown = group.examples[group.active_index] if 0 <= group.active_index < len(group.examples) else None
    if shown is not None:
        kind = shown.bl_rna.properties["kind"].enum_items[shown.kind]
        layout.label(text=shown.name, icon=kind.icon, translate=False)
    if shown is not None and shown.mesh == mesh_object:
        _draw_example(layout, context, shown)


def _draw_example(layout: bpy.types.UILayout, context: bpy.types.Context, item: bpy.types.PropertyGroup) -> None:
    if not item.error_before:
        return
    unit = length_of_unit(item.mesh)
    if unit is None:
        text = "Measured by an earlier version, and scaled unevenly: rebuild to see lengths"
        draw_text(layout, context, text, "INFO")
        return
    before, after = (length_text(context.scene, value * unit) for value in (item.error_before, item.error_after))
    draw_rows(
        layout, [("Error Before", before), ("Error After", after), ("Worst Vertex", _worst_text(context, item, unit))]
    )


def _draw_estimate(layout: bpy.types.UILayout, armature: bpy.types.Object, mesh_object: bpy.types.Object) -> None:
    """The error to expect between the examples, and the next pose."""
    found = last_estimate(armature, mesh_object)
    row = layout.row(align=True)
    row.operator("skinning.eigenskin_estimate", icon="VIEWZOOM")
    if found is not None:
        row.operator("skinning.eigenskin_pose_next", icon="POSE_HLT")
        draw_rows(layout, rows_of_panel(found.figures()))


def _worst_text(context: bpy.types.Context, item: bpy.types.PropertyGroup, unit: float | None) -> str:
    """The worst vertex and its distance. unit: None if lengths are unknown."""
    vertex = str(item.worst_vertex)
    return vertex if unit is None else f"{vertex}  ({length_text(context.scene, item.worst_distance * unit)})"


def _draw_settings(layout: bpy.types.UILayout, group: SkinningEigenskin) -> None:
    column = layout.column()
    column.prop(group, "components")
    column.prop(group, "support_threshold")
    column.prop(group, "half_rotation")
    header, body = layout.panel("skinning_eigenskin_advanced", default_closed=True)
    header.label(text="Advanced")
    if body is not None:
        for name in ("max_per_vertex", "budget", "radius", "basis_functions", "joint_pairs", "normals", "show_normals"):
            body.prop(group, name)
        body.operator("skinning.eigenskin_fit_weights", icon="MOD_VERTEX_WEIGHT")


def _draw_figures(
    layout: bpy.types.UILayout,
    context: bpy.types.Context,
    mesh_object: bpy.types.Object,
    record: Record,
    group: bpy.types.PropertyGroup | None,
) -> None:
    keys = sum(support.count for support in record.supports)
    rows = [("Shape Keys", str(keys)), ("Supports", str(len(record.supports)))]
    items = [item for item in group.examples if item.mesh == mesh_object and item.error_before] if group else []
    if items:
        before = sum(item.error_before**2 for item in items) ** 0.5
        after = sum(item.error_after**2 for item in items) ** 0.5
        worst = max(items, key=lambda item: item.worst_distance)
        rows += [
            ("Error Left", f"{after / before:.1%}"),
            ("Worst Vertex", _worst_text(context, worst, length_of_unit(mesh_object))),
            ("In Example", worst.name),
        ]
    draw_rows(layout, rows)


def _draw_heat_map(layout: bpy.types.UILayout, mesh_object: bpy.types.Object) -> None:
    shown = error_display.shows_colors(mesh_object)
    row = layout.row(align=True)
    for mode, label in (("BEFORE", "Error Before"), ("AFTER", "Error After")):
        row.operator("skinning.show_eigenskin_error", text=label).shown = mode
    if shown:
        row.operator("skinning.show_eigenskin_error", text="", icon="X").shown = "OFF"


def _draw_supports(layout: bpy.types.UILayout, record: Record) -> None:
    """Draw the share of the squared displacements that each further component captures: kept ones filled in."""
    header, body = layout.panel("skinning_eigenskin_supports")
    header.label(text="Captured by Components")
    if body is None:
        return
    for support in record.supports[:_SHOWN_SUPPORTS]:
        column = body.column(align=True)
        column.label(text=support.name, icon="BONE_DATA")
        for index, share in enumerate(support.captured[: support.count + 1]):
            kept = index < support.count
            row = column.row()
            row.active = kept
            row.progress(factor=share, text=f"{index + 1}: {share:.1%}" + ("" if kept else translated(", not kept")))
    if len(record.supports) > _SHOWN_SUPPORTS:
        body.label(text=translated(f"and {len(record.supports) - _SHOWN_SUPPORTS} more"))


registry = [
    SKINNING_PT_eigenskin_presets,
    SKINNING_UL_eigenskin_examples,
    SKINNING_PT_eigenskin,
    SKINNING_PT_eigenskin_result,
]
