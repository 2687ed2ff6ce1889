# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels of Convert Animation to Skinning: settings, button and progress; the figures of the result; the list of
all conversions of the file."""

from typing import NamedTuple

import bpy
from bl_ui.utils import PresetPanel
from bpy.app.translations import pgettext_iface as iface_
from bpy.props import IntProperty

from ...blender import background, error_display
from ...blender.conversion_figures import REPORT_PROPERTY, has_figures
from ...blender.conversions import conversions, index_of_conversion, places_of_conversions, result_of
from ...blender.job_checks import active_object
from ...blender.lengths import length_text
from ...blender.visibility import make_active
from ...blender.wording import sentence
from ...ui.drawing import (
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
from .chosen_sources import Chosen, chosen_sources, reason_not_to_convert, stands_for_source
from .conversion import shapes_note
from .error_plot import draw_error_plot
from .estimate import amount_text, estimate, work_of_settings
from .presets import SHIPPED, SUBDIR, user_folders
from .result import worst_frame
from .worst_mark import marked


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
        parts, curve, worst = part_rows(figures), curve_rows(figures), worst_frame(figures)
        if parts and (body := _section(layout, "parts", "E_RMS of the Objects")) is not None:
            draw_rows(body, parts)
        if curve and (body := _section(layout, "curve", "Error over Bones")) is not None:
            draw_curve(body, curve)
        if worst is not None and (body := _section(layout, "frames", "Error over Time")) is not None:
            draw_error_plot(body, figures)
            body.operator(
                "skinning.show_worst_frame",
                text=iface_("Go to Worst Frame, {frame:g}").format(frame=worst),
                icon="TIME",
                depress=marked(context, result) is not None,
            )
        text = iface_("Time: {seconds:.1f} s").format(seconds=sum(figures["seconds"].values()))
        if (body := _section(layout, "time", text, closed=True)) is not None:
            draw_rows(body, [(iface_(name.title()), f"{value:.2f} s") for name, value in figures["seconds"].items()])

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


def draw_settings(layout, scene) -> None:
    settings = scene.skinning_conversion
    column = layout.column()
    column.prop(settings, "selected_objects")
    row = column.row(align=True)
    row.prop(settings, "bone_count")
    row.operator("skinning.suggest_bones", text="", icon="LIGHT")
    for name in ("target_error", "bone_kind", "max_influences", "smoothness", "joint_hierarchy"):
        column.prop(settings, name)
    draw_frame_range(layout, scene, settings)
    if (body := _section(layout, "advanced", "Advanced", closed=True)) is not None:
        for name in ("iterations", "optimize_rest_pose", "residual_shapes", "root_bone", "key_tolerance", "method"):
            body.prop(settings, name)


def _section(layout, name: str, label: str, closed: bool = False):
    """The layout of a part that can be folded, None while it is."""
    header, body = layout.panel(f"skinning_conversion_{name}", default_closed=closed)
    header.label(text=label)
    return body


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


class SKINNING_UL_conversions(bpy.types.UIList):
    """Of all objects of the file, those that stand for a conversion"""

    bl_idname = "SKINNING_UL_conversions"

    def draw_item(self, context, layout, data, item, icon, active_data, active_property):
        figures = item[REPORT_PROPERTY]
        columns = layout.row()
        columns.active = item.visible_get()
        name = columns.split(factor=0.4)
        name.label(text=item.name)
        for text in conversion_cells(figures):
            name.label(text=text)

    def filter_items(self, context, data, property):
        objects = getattr(data, property)
        places, bit = places_of_conversions(), self.bitflag_filter_item
        found = [objects[place] for place in places]
        named = self.filter_name and bpy.types.UI_UL_list.filter_items_by_name(self.filter_name, bit, found, "name")
        shown = [0] * len(objects)
        for place, flag in zip(places, named or [bit] * len(places), strict=True):
            shown[place] = flag
        return shown, []


def conversion_cells(figures) -> tuple[str, str, str]:
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

    @classmethod
    def poll(cls, context):
        return bool(conversions())

    def draw(self, context):
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
        row = named_row(layout, "Show")
        for show, label in (("SOURCE", "Source"), ("RESULT", "Result"), ("BOTH", "Both")):
            row.operator("skinning.compare_result", text=label, depress=shown_of(result) == show).show = show
        column = layout.column(align=True)
        row = column.row(align=True).split(factor=0.65, align=True)
        row.operator("skinning.convert_again", icon="FILE_REFRESH")
        row.operator("skinning.convert_again", text="Replace").replace = True
        column.operator("skinning.use_result_settings", icon="COPYDOWN")
        column.operator("skinning.delete_result", icon="TRASH")


def shown_of(result) -> str:
    """Which of operators.SHOWN is what the view layer shows, "" where none is."""
    sources, meshes = (any(ob.visible_get() for ob in objects) for objects in (result.sources, result.meshes))
    return {(True, True): "BOTH", (True, False): "SOURCE", (False, True): "RESULT"}.get((sources, meshes), "")


def _chosen(scene) -> int:
    return index_of_conversion(bpy.context.view_layer.objects.active)


def _choose(scene, index: int) -> None:
    """Make the conversion's object the active one, as its row was clicked."""
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
        description="The conversion whose object is the active one",
        get=_chosen,
        set=_choose,
        options={"SKIP_SAVE"},
    )


def unregister() -> None:
    del bpy.types.Scene.skinning_conversion_index
