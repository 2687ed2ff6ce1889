# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of Convert Animation to Skinning: settings, button and progress, the figures of the result, and the list
of all conversions in the file."""

from collections.abc import Sequence
from typing import Any

import bpy
from bpy.props import IntProperty

from ...blender import background, error_display
from ...blender.conversion_figures import REPORT_PROPERTY, has_figures
from ...blender.conversions import Result, conversions, index_of_conversion, places_of_conversions, result_of
from ...blender.figures import rows_of_panel
from ...blender.job_checks import active_object
from ...blender.translation import translated
from ...blender.visibility import make_active
from ...blender.wording import sentence
from ...ui.compare import draw_shown
from ...ui.drawing import (
    ListRows,
    SidebarPanel,
    draw_failure,
    draw_frame_range,
    draw_job,
    draw_rows,
    draw_text,
    idle_column,
    named_row,
    split_layout,
)
from ...ui.groups import ANIMATION
from ...ui.presets import PresetsMenu
from .chosen_sources import Chosen, chosen_sources, reason_not_to_convert, stands_for_source
from .error_plot import draw_error_plot, draw_sweeps_plot
from .estimate import amount_text, estimate, other_durations, work_of_settings
from .figures import errors_of_bone_counts, errors_of_clips, errors_of_objects, figures_of_record
from .notes import shapes_note
from .result import worst_clip, worst_frame
from .settings import PRESETS
from .worst_mark import marked


class SKINNING_PT_conversion_presets(PresetsMenu, bpy.types.Panel):
    bl_label = "Conversion Presets"
    presets = PRESETS


class SKINNING_PT_convert_animation(SidebarPanel, bpy.types.Panel):
    bl_label = "Convert Animation"
    bl_idname = "SKINNING_PT_convert_animation"
    bl_parent_id = ANIMATION
    titles = ("Convert Animation to Skinning", "Convert Again", "Suggest Bones")

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        SKINNING_PT_conversion_presets.draw_panel_header(self.layout)

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        job = background.running_job()
        settings = idle_column(layout)
        draw_settings(settings, context.scene, active_object(context))

        if job is not None:
            draw_job(layout, job, SKINNING_PT_convert_animation)
            return
        chosen = context.scene.skinning_conversion
        if stands_for_source(context, chosen):
            choice = layout.column(align=True)
            choice.label(text="Earlier Result")
            choice.use_property_split = False
            choice.row(align=True).prop(chosen, "on_result", expand=True)
        reason = reason_not_to_convert(context, chosen)
        read = Chosen(()) if reason else chosen_sources(context, active_object(context), chosen)
        sources = read.sources
        draw_text(layout, context, reason or objects_text(read), "INFO" if reason else "MESH_DATA")
        button = layout.row()
        button.scale_y = 1.5
        button.enabled = not reason
        text = "Convert to Skinning"
        if len(sources) > 1:
            text = f"Convert {len(sources)} {'Clips' if chosen.as_clips else 'Objects'} to Skinning"
        button.operator("skinning.convert_animation", text=translated(text), icon="ARMATURE_DATA")
        if not reason:
            _draw_estimate(layout, context, sources)
        draw_failure(layout, context, SKINNING_PT_convert_animation)


class SKINNING_PT_conversion_result(SidebarPanel, bpy.types.Panel):
    bl_label = "Result"
    bl_idname = "SKINNING_PT_conversion_result"
    bl_parent_id = ANIMATION

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return result_of(context.view_layer.objects.active) is not None

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        result = result_of(context.view_layer.objects.active)
        assert result is not None
        figures = result.figures
        draw_rows(layout, rows_of_panel(figures_of_record(figures)))
        for note in figures.get("notes", ()):
            draw_text(layout, context, sentence(note), "INFO")
        _draw_errors(layout, context, result)
        text = translated(f"Time: {sum(figures['seconds'].values()):.1f} s")
        if (body := _section(layout, "time", text, closed=True)) is not None:
            draw_rows(body, [(name.title(), f"{value:.2f} s") for name, value in figures["seconds"].items()])

        row = named_row(layout, "Select")
        for part, label, target in (
            ("SOURCE", "Source", result.source),
            ("MESH", "Mesh", result.mesh),
            ("RIG", "Rig", result.rig),
        ):
            cell = row.row(align=True)
            cell.enabled = target is not None
            cell.operator(
                "skinning.select_result",
                text=label,
                depress=target is not None and target == context.view_layer.objects.active,
            ).part = part
        shown = any(error_display.shows_error(mesh) for mesh in result.meshes)
        layout.operator(
            "skinning.show_error", text="Hide Error" if shown else "Show Error", icon="COLOR", depress=shown
        )


def _draw_errors(layout: bpy.types.UILayout, context: bpy.types.Context, result: Result) -> None:
    """Collapsible sections: the error by objects, clips, bone counts, frames and sweeps."""
    figures = result.figures
    parts, clips = errors_of_objects(figures), errors_of_clips(figures)
    curve, worst = curve_rows(figures), worst_frame(figures)
    if parts and (body := _section(layout, "parts", "E_RMS of the Objects")) is not None:
        draw_rows(body, [(part.group[1], part.text) for part in parts if part.group])
    if clips and (body := _section(layout, "clips", "E_RMS of the Clips")) is not None:
        draw_rows(body, [(clip.group[1], clip.text) for clip in clips if clip.group])
    if curve and (body := _section(layout, "curve", "Error over Bones")) is not None:
        draw_curve(body, curve)
    if worst is not None and (body := _section(layout, "frames", "Error over Time")) is not None:
        draw_error_plot(body, figures)
        body.operator(
            "skinning.show_worst_frame",
            text=", ".join([translated(f"Go to Worst Frame, {worst:g}"), *worst_clip(figures)]),
            icon="TIME",
            depress=marked(context, result) is not None,
        )
    history = list(figures.get("history", ()))
    if len(history) > 1 and (body := _section(layout, "history", "Error over Sweeps", closed=True)) is not None:
        draw_sweeps_plot(body, history)


def draw_settings(layout: bpy.types.UILayout, scene: bpy.types.Scene, source: bpy.types.Object | None) -> None:
    """source: the mesh whose vertex groups are offered."""
    settings = scene.skinning_conversion
    column = layout.column()
    column.prop(settings, "quality")
    row = column.row()
    # As Clips is about the selected meshes in any case.
    row.active = not settings.as_clips
    row.prop(settings, "selected_objects")
    column.prop(settings, "as_clips")
    row = column.row(align=True)
    row.prop(settings, "bone_count")
    row.operator("skinning.suggest_bones", text="", icon="LIGHT")
    for name in ("target_error", "bone_kind", "max_influences", "smoothness", "joint_hierarchy"):
        column.prop(settings, name)
    if settings.joint_hierarchy and settings.bone_kind == "RIGID":
        column.prop(settings, "rotation_only")
        if settings.rotation_only:
            column.prop(settings, "joint_slip")
    if settings.joint_hierarchy:
        column.prop(settings, "rotation_limits")
        if settings.rotation_limits:
            column.prop(settings, "limit_margin")
    draw_frame_range(layout, scene, settings)
    if (body := _section(layout, "advanced", "Advanced", closed=True)) is not None:
        for name in ("iterations", "emphasis", "surface", "optimize_rest_pose", "residual_shapes"):
            row = body.row()
            row.active = name not in ("emphasis", "surface") or settings.method == "STANDARD"
            row.prop(settings, name)
        body.prop(settings, "root_bone")
        body.prop(settings, "key_tolerance")
        if source is not None and source.type == "MESH":
            body.prop_search(settings, "importance", source, "vertex_groups")
        else:
            body.prop(settings, "importance")
        body.prop(settings, "method")


def _section(layout: bpy.types.UILayout, name: str, label: str, closed: bool = False) -> bpy.types.UILayout | None:
    """The layout of a collapsible section, None while it is collapsed."""
    header, body = layout.panel(f"skinning_conversion_{name}", default_closed=closed)
    header.label(text=label)
    return body


def objects_text(read: Chosen) -> str:
    """The names of the objects that the button will convert."""
    names, results = (", ".join(ob.name for ob in objects) for objects in (read.sources, read.results))
    if results:
        return f"Converts {names}, the source of {results}"
    if any(map(has_figures, read.sources)):
        return f"Converts {names}, the result of a conversion"
    return f"Converts {names}"


def _draw_estimate(layout: bpy.types.UILayout, context: bpy.types.Context, objects: Sequence[bpy.types.Object]) -> None:
    """Show how long the conversion will take and whether there is enough memory."""
    work = work_of_settings(context, objects, context.scene.skinning_conversion)
    expected, note = estimate(work), shapes_note(work)
    if note:
        draw_text(layout, context, note, "INFO")
    layout.label(text=translated(sentence(expected.text())), icon="TIME")
    others = [f"{translated(label)} {translated(duration)}" for label, duration in other_durations(work)]
    if others:
        draw_text(layout, context, ", ".join(others), "BLANK1")
    if expected.free is not None and not expected.fits:
        free = amount_text(expected.free)
        text = f"Only {free} of memory are free. Choose a shorter frame range or a larger step"
        draw_text(layout, context, text, "ERROR")


def curve_rows(record: dict) -> list[tuple[str, float, str, bool]]:
    """For each bone count that was tried: its name, the length of its bar from 0 to 1, its error as text, and whether
    it was chosen."""
    figures, taken = errors_of_bone_counts(record), ("curve", str(record["bone_count"]))
    largest = max((figure.value["e_rms"] for figure in figures), default=0.0) or 1.0
    return [(figure.label, figure.value["e_rms"] / largest, figure.text, figure.group == taken) for figure in figures]


def draw_curve(layout: bpy.types.UILayout, rows: list[tuple[str, float, str, bool]]) -> None:
    column = layout.column(align=True)
    for name, length, text, taken in rows:
        split = column.split(factor=0.4)
        split.label(text=name, icon="CHECKMARK" if taken else "BLANK1")
        split.progress(factor=length, text=text)


class SKINNING_UL_conversions(ListRows, bpy.types.UIList):
    """The objects of the file that represent a conversion"""

    bl_idname = "SKINNING_UL_conversions"

    def draw_row(self, layout: bpy.types.UILayout, data: bpy.types.bpy_struct, item: bpy.types.bpy_struct) -> None:
        figures = item[REPORT_PROPERTY]
        columns = layout.row()
        columns.active = item.visible_get()
        name = columns.split(factor=0.4)
        name.label(text=item.name)
        for text in conversion_cells(figures):
            name.label(text=text)

    def filter_items(
        self, context: bpy.types.Context, data: bpy.types.bpy_struct, property: str
    ) -> tuple[list[int], list[int]]:
        objects = getattr(data, property)
        places, bit = places_of_conversions(), self.bitflag_filter_item
        found = [objects[place] for place in places]
        named = self.filter_name and bpy.types.UI_UL_list.filter_items_by_name(self.filter_name, bit, found, "name")
        shown = [0] * len(objects)
        for place, flag in zip(places, named or [bit] * len(places), strict=True):
            shown[place] = flag
        return shown, []


def conversion_cells(figures: Any) -> tuple[str, str, str]:
    """E_RMS, bones and seconds of a conversion in a row of the list."""
    seconds = sum(figures["seconds"].values())
    return (
        f"{figures['e_rms']:.2f}",
        f"{figures['bone_count']}",
        f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s",
    )


class SKINNING_PT_conversions(SidebarPanel, bpy.types.Panel):
    bl_label = "Conversions"
    bl_idname = "SKINNING_PT_conversions"
    bl_parent_id = ANIMATION

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return bool(conversions())

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.enabled = background.running_job() is None
        heads = layout.split(factor=0.4)
        heads.label(text="Armature")
        for text in ("E_RMS", "Bones", "Time"):
            heads.label(text=text)
        layout.template_list(
            SKINNING_UL_conversions.bl_idname,
            "",
            bpy.data,
            "objects",
            context.scene,
            "skinning_conversion_index",
            rows=3,
        )
        result = result_of(context.view_layer.objects.active)
        if result is None:
            return
        draw_shown(layout, "skinning.compare_result", [(part.source, part.mesh) for part in result.parts])
        column = layout.column(align=True)
        row = column.row(align=True).split(factor=0.65, align=True)
        row.operator("skinning.convert_again", icon="FILE_REFRESH")
        row.operator("skinning.convert_again", text="Replace").replace = True
        column.operator("skinning.use_result_settings", icon="COPYDOWN")
        column.operator("skinning.delete_result", icon="TRASH")


def _chosen(scene: bpy.types.Scene) -> int:
    return index_of_conversion(bpy.context.view_layer.objects.active)


def _choose(scene: bpy.types.Scene, index: int) -> None:
    """Make the object of the clicked row active."""
    if bpy.context.mode in {"OBJECT", "POSE"} and 0 <= index < len(bpy.data.objects):
        make_active(bpy.context, bpy.data.objects[index])


registry = [
    SKINNING_PT_conversion_presets,
    SKINNING_PT_convert_animation,
    SKINNING_PT_conversion_result,
    SKINNING_UL_conversions,
    SKINNING_PT_conversions,
]


def register() -> None:
    bpy.types.Scene.skinning_conversion_index = IntProperty(
        name="Conversion",
        description="The conversion of the active object",
        get=_chosen,
        set=_choose,
        options={"SKIP_SAVE"},
    )


def unregister() -> None:
    del bpy.types.Scene.skinning_conversion_index
