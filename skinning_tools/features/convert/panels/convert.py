# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of Convert Animation to Skinning: settings, button, progress, and the figures of the result."""

from typing import NamedTuple

import bpy
from bl_ui.utils import PresetPanel
from bpy.app.translations import pgettext_iface as iface_

from ....blender import background, error_display
from ....blender.conversion_figures import has_figures
from ....blender.conversions import result_of
from ....blender.job_checks import active_object
from ....blender.lengths import length_text
from ....blender.wording import sentence
from ....ui.drawing import (
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
from ..chosen_sources import Chosen, chosen_sources, reason_not_to_convert, stands_for_source
from ..conversion import shapes_note
from ..error_plot import draw_error_plot
from ..estimate import amount_text, estimate, work_of_settings
from ..presets import SHIPPED, SUBDIR, user_folders
from ..result import worst_frame
from ..worst_mark import marked


class SKINNING_PT_conversion_presets(PresetPanel, bpy.types.Panel):
    bl_label = "Conversion Presets"
    bl_space_type = "VIEW_3D"
    bl_region_type = "HEADER"
    preset_subdir = SUBDIR
    preset_operator = "skinning.apply_conversion_preset"
    preset_add_operator = "skinning.add_conversion_preset"

    def draw(self, context):
        layout = self.layout
        layout.emboss = "PULLDOWN_MENU"
        layout.operator_context = "EXEC_DEFAULT"
        # Those of the extension first, which cannot be removed.
        self._draw_folders([str(SHIPPED)], None)
        layout.separator()
        self._draw_folders(user_folders(), self.preset_add_operator)

    def _draw_folders(self, folders: list[str], add_operator: str | None) -> None:
        # Without any folder Blender says "Missing Paths", which is no fault: there are no presets of one's own yet.
        self.path_menu(
            folders or [str(SHIPPED)],
            self.preset_operator,
            filter_ext=lambda ending: bool(folders) and ending.lower() == ".py",
            display_name=lambda path: bpy.path.display_name(path, title_case=False),
            add_operator=add_operator,
        )


class SKINNING_PT_convert_animation(SidebarPanel, bpy.types.Panel):
    bl_label = "Convert Animation"
    bl_idname = "SKINNING_PT_convert_animation"
    failures = ("Convert Animation to Skinning", "Convert Again", "Suggest Bones")

    def draw_header_preset(self, context):
        SKINNING_PT_conversion_presets.draw_panel_header(self.layout)

    def draw(self, context):
        layout = split_layout(self)
        job = background.running_job()
        settings = idle_column(layout)
        draw_settings(settings, context.scene)

        if job is not None:
            draw_job(layout, job)
            return
        chosen = context.scene.skinning_conversion
        meant = chosen.selected_objects, chosen.on_result
        if stands_for_source(context, chosen.selected_objects):
            choice = layout.column(align=True)
            choice.label(text="Earlier Result")
            choice.use_property_split = False
            choice.row(align=True).prop(chosen, "on_result", expand=True)
        reason = reason_not_to_convert(context, *meant)
        read = Chosen(()) if reason else chosen_sources(context, active_object(context), *meant)
        sources = read.sources
        draw_text(layout, context, reason or objects_text(read), "INFO" if reason else "MESH_DATA")
        button = layout.row()
        button.scale_y = 1.5
        button.enabled = not reason
        text = iface_("Convert to Skinning")
        if len(sources) > 1:
            text = iface_("Convert {count} Objects to Skinning").format(count=len(sources))
        button.operator("skinning.convert_animation", text=text, icon="ARMATURE_DATA")
        if not reason:
            _draw_estimate(layout, context, sources)
        draw_failure(layout, context, SKINNING_PT_convert_animation)


class SKINNING_PT_conversion_result(SidebarPanel, bpy.types.Panel):
    bl_label = "Result"
    bl_idname = "SKINNING_PT_conversion_result"

    @classmethod
    def poll(cls, context):
        return result_of(context.view_layer.objects.active) is not None

    def draw(self, context):
        layout = self.layout
        result = result_of(context.view_layer.objects.active)
        figures = result.figures
        draw_rows(layout, figure_rows(figures, context.scene))
        for note in figures.get("notes", ()):
            draw_text(layout, context, sentence(note), "INFO")
        parts = part_rows(figures)
        if parts:
            header, body = layout.panel("skinning_conversion_parts", default_closed=False)
            header.label(text="E_RMS of the Objects")
            if body is not None:
                draw_rows(body, parts)
        curve = curve_rows(figures)
        if curve:
            header, body = layout.panel("skinning_conversion_curve", default_closed=False)
            header.label(text="Error over Bones")
            if body is not None:
                draw_curve(body, curve)
        worst = worst_frame(figures)
        if worst is not None:
            header, body = layout.panel("skinning_conversion_frames", default_closed=False)
            header.label(text="Error over Time")
            if body is not None:
                draw_error_plot(body, figures)
                body.operator(
                    "skinning.show_worst_frame",
                    text=iface_("Go to Worst Frame, {frame:g}").format(frame=worst),
                    icon="TIME",
                    depress=marked(context, result) is not None,
                )
        header, body = layout.panel("skinning_conversion_time", default_closed=True)
        header.label(text=iface_("Time: {seconds:.1f} s").format(seconds=sum(figures["seconds"].values())))
        if body is not None:
            draw_rows(body, [(iface_(name.title()), f"{value:.2f} s") for name, value in figures["seconds"].items()])

        row = named_row(layout, "Select")
        for part, label in (
            ("SOURCE", "Source"),
            ("MESH", "Mesh"),
            ("RIG", "Rig"),
        ):
            target = {"SOURCE": result.source, "MESH": result.mesh, "RIG": result.rig}[part]
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


def draw_settings(layout, scene) -> None:
    settings = scene.skinning_conversion
    column = layout.column()
    column.prop(settings, "selected_objects")
    row = column.row(align=True)
    row.prop(settings, "bone_count")
    row.operator("skinning.suggest_bones", text="", icon="LIGHT")
    column.prop(settings, "target_error")
    column.prop(settings, "bone_kind")
    column.prop(settings, "max_influences")
    column.prop(settings, "smoothness")
    column.prop(settings, "joint_hierarchy")
    draw_frame_range(layout, scene, settings)
    header, body = layout.panel("skinning_conversion_advanced", default_closed=True)
    header.label(text="Advanced")
    if body is not None:
        body.prop(settings, "iterations")
        body.prop(settings, "optimize_rest_pose")
        body.prop(settings, "residual_shapes")
        body.prop(settings, "root_bone")
        body.prop(settings, "key_tolerance")
        body.prop(settings, "method")


def objects_text(read: Chosen) -> str:
    """What the button will convert, by name."""
    names, results = (", ".join(ob.name for ob in objects) for objects in (read.sources, read.results))
    if results:
        return iface_("Converts {names}, the source of {results}").format(names=names, results=results)
    if any(map(has_figures, read.sources)):
        return iface_("Converts {names}, the result of a conversion").format(names=names)
    return iface_("Converts {names}").format(names=names)


def _draw_estimate(layout, context, objects) -> None:
    """How long the button's work will take, and whether the memory is enough for it."""
    work = work_of_settings(context, objects, context.scene.skinning_conversion)
    expected, note = estimate(work), shapes_note(work)
    if note:
        draw_text(layout, context, note, "INFO")
    layout.label(text=sentence(expected.text()), icon="TIME")
    if not expected.fits:
        text = iface_("{amount} of memory are free. Choose a shorter frame range or a larger step")
        free = text.format(amount=amount_text(expected.free))
        draw_text(layout, context, free, "ERROR")


def figure_rows(figures: dict, scene) -> list[tuple[str, str]]:
    """The figures of a conversion as (name, value) texts."""
    distance = length_text(scene, figures["largest_distance"], 3)
    step = iface_(", step {step}").format(step=figures["frame_step"]) if figures["frame_step"] != 1 else ""
    target = figures["settings"].get("target_error", 0.0)
    missed = iface_("(target {target:g} missed)").format(target=target) if 0 < target < figures["e_rms"] else ""
    rows = [
        ("E_RMS", f"{figures['e_rms']:.3f}  {missed}".rstrip()),
        ("Largest Error", f"{figures['max_error']:.3f}  ({distance})"),
        ("Bones", f"{figures['bone_count']} {iface_(figures['settings']['bone_kind'].title())}"),
        ("Vertices", f"{figures['vertex_count']:,}"),
        ("Frames", f"{figures['frame_start']:g} – {figures['frame_end']:g}{step}"),
    ]
    shapes, keys = figures["settings"].get("residual_shapes", 0), figures.get("keys")
    if shapes:
        rows.append(("Residual Shapes", f"{shapes}"))
    if "joint_count" in figures:
        rows.append(("Joints", f"{figures['joint_count']}"))
    if keys:
        rows.append(("Keys", iface_("{after:,} of {before:,}").format(after=keys["after"], before=keys["before"])))
    return rows


def part_rows(figures: dict) -> list[tuple[str, str]]:
    """Name and E_RMS of each object of a conversion of several; empty where there was one."""
    return [(part["source"], f"{part['e_rms']:.3f}") for part in figures.get("parts", ())]


class CurveRow(NamedTuple):
    """A bone count that was tried: its name, the length of its bar from 0 to 1, its error as text, whether it is the
    one that was taken."""

    name: str
    length: float
    text: str
    taken: bool


def curve_rows(figures: dict) -> list[CurveRow]:
    """The curve of error over bones of a conversion, in order; empty where there was no target error."""
    curve = figures.get("curve")
    if not curve:
        return []
    largest = max(max(curve["e_rms"]), 1e-12)
    return [
        CurveRow(
            (iface_("{count} bone") if count == 1 else iface_("{count} bones")).format(count=count),
            error / largest,
            f"{error:.3g}" if solved else iface_("about {error:.2g}").format(error=error),
            count == figures["bone_count"],
        )
        for count, error, solved in zip(curve["bone_count"], curve["e_rms"], curve["solved"], strict=True)
    ]


def draw_curve(layout, rows: list[CurveRow]) -> None:
    column = layout.column(align=True)
    for row in rows:
        split = column.split(factor=0.4)
        split.label(text=row.name, icon="CHECKMARK" if row.taken else "BLANK1")
        split.progress(factor=row.length, text=row.text)


registry = [SKINNING_PT_conversion_presets, SKINNING_PT_convert_animation, SKINNING_PT_conversion_result]
