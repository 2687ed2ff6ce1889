# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the panels: their base class, and drawing of texts, figures, frame range and running job."""

import textwrap
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import bpy

from ..blender import background, look_ups
from ..blender.figures import Figure, rows_of_panel
from ..blender.job_checks import active_object
from ..blender.translation import translated
from ..blender.wording import TAB, duration_text, sentence
from .manual import page_address

# Average width of a letter of the interface's font in pixels at a scale of one; width of margins and icon; width of a
# box's margins and its close button.
LETTER_WIDTH = 6.5
MARGIN_WIDTH = 60
BOX_WIDTH = 50

_NOTHING_TO_DEFORM = {"EMPTY", "CAMERA", "LIGHT", "LIGHT_PROBE", "SPEAKER"}


class HasFigures(Protocol):
    """A result, or what is stored of one."""

    def figures(self) -> list[Figure]: ...


class SidebarPanel:
    """A panel in the sidebar's tab. titles: of the operators whose progress and failures it shows. always: whether it
    is there while nothing is selected that it could work on.

    A subclass's ``draw`` and ``poll`` search the objects of the file once; see ``blender.look_ups``.
    """

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = TAB
    draw: ClassVar[Callable]
    titles: tuple[str, ...] = ()
    always = False

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return (
            cls.always
            or works_on_selection(context)
            or background.running_job() is not None
            or background.last_failure(*cls.titles) is not None
        )

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "draw" in vars(cls):
            cls.draw = look_ups.shares(cls.draw)
        if "poll" in vars(cls):
            cls.poll = classmethod(look_ups.shares(vars(cls)["poll"].__func__))  # type: ignore[method-assign, assignment]


class ListRows:
    """Mix-in of a UIList whose rows ``draw_row(layout, data, item)`` draws."""

    draw_row: Callable

    def draw_item(
        self,
        context: bpy.types.Context,
        layout: bpy.types.UILayout,
        data: bpy.types.bpy_struct,
        item: bpy.types.bpy_struct,
        icon: int,
        active_data: bpy.types.bpy_struct,
        active_property: str,
    ) -> None:
        self.draw_row(layout, data, item)


def works_on_selection(context: bpy.types.Context) -> bool:
    """Whether the active or a selected object is of a type that panels work on."""
    active = active_object(context)
    if active is not None and active.type not in _NOTHING_TO_DEFORM:
        return True
    return any(ob.type not in _NOTHING_TO_DEFORM for ob in context.view_layer.objects.selected)


def split_layout(panel: bpy.types.Panel) -> bpy.types.UILayout:
    """The layout of a panel, with property names next to the values."""
    layout = panel.layout
    layout.use_property_split = True
    layout.use_property_decorate = False
    return layout


def idle_column(layout: bpy.types.UILayout) -> bpy.types.UILayout:
    """A column for properties that cannot be changed while a job runs."""
    column = layout.column()
    column.enabled = background.running_job() is None
    return column


def draw_mesh(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the field for the mesh to work on while its armature is active: in Pose Mode a click does not select a
    mesh."""
    active = active_object(context)
    if active is not None and active.type == "ARMATURE":
        layout.prop(context.scene, "skinning_mesh", icon="MESH_DATA")


def draw_frame_range(layout: bpy.types.UILayout, scene: bpy.types.Scene, settings: bpy.types.PropertyGroup) -> None:
    """Draw the frame range of ``settings``, or the scene's range if the settings use that."""
    column = layout.column()
    column.prop(settings, "use_scene_range")
    range_column = column.column(align=True)
    range_column.enabled = not settings.use_scene_range
    range_owner = scene if settings.use_scene_range else settings
    range_column.prop(range_owner, "frame_start", text="Frame Start")
    range_column.prop(range_owner, "frame_end", text="End")
    column.prop(settings, "frame_step", text="Step")


def draw_job(layout: bpy.types.UILayout, job: background.RunningJob, panel: type[SidebarPanel]) -> None:
    """Draw the progress of a modal job of the panel, and its cancel button; of another panel's job that it runs."""
    if job.title not in panel.titles:
        layout.label(text=translated(f"{job.title} is running"), icon="TIME", translate=False)
        return
    layout.progress(factor=job.fraction, text=f"{translated(job.stage)}, {job.fraction:.0%}")
    # Halves, so that the button stays in its place when the time becomes known.
    row = layout.split()
    left = job.seconds_left
    text = "" if left is None else translated(f"{sentence(duration_text(left))} left")
    row.label(text=text, icon="TIME")
    row.operator("skinning.cancel_job", text="Cancel (Esc)", icon="X")


def draw_failure(layout: bpy.types.UILayout, context: bpy.types.Context, panel: type[SidebarPanel]) -> None:
    """Draw why the panel's last operator failed, or its notes: popup and status bar show only the beginning."""
    failure = background.last_failure(*panel.titles)
    if failure is None:
        return
    row = layout.box().row()
    draw_text(row, context, failure.text, failure.icon, MARGIN_WIDTH + BOX_WIDTH)
    buttons = row.column(align=True)
    buttons.operator("skinning.dismiss_failure", text="", icon="X", emboss=False)
    help_page = page_address("troubleshooting.md", failure.code)
    if help_page:
        buttons.operator("wm.url_open", text="", icon="HELP", emboss=False).url = help_page


def draw_button(
    layout: bpy.types.UILayout, context: bpy.types.Context, operator: str, text: str, icon: str, reason: str = ""
) -> bpy.types.OperatorProperties:
    """Draw the main button of a panel, disabled with the reason below if there is one; returns its properties."""
    button = layout.row()
    button.scale_y = 1.5
    button.enabled = not reason
    properties = button.operator(operator, text=text, icon=icon)
    if reason:
        draw_text(layout, context, reason, "INFO")
    return properties


def draw_figures(layout: bpy.types.UILayout, result: HasFigures | None) -> None:
    """Draw the ``figures`` of a result; nothing if it is None."""
    if result is not None:
        draw_rows(layout, rows_of_panel(result.figures()))


def draw_vertex_group(
    layout: bpy.types.UILayout, settings: bpy.types.PropertyGroup, mesh_object: bpy.types.Object | None
) -> None:
    """Draw ``vertex_group`` and ``invert_vertex_group`` of settings, to choose from the groups of a mesh if there is
    one."""
    row = layout.row(align=True)
    if mesh_object is not None:
        row.prop_search(settings, "vertex_group", mesh_object, "vertex_groups")
    else:
        row.prop(settings, "vertex_group")
    invert = row.row(align=True)
    invert.use_property_split = False
    invert.enabled = bool(settings.vertex_group)
    invert.prop(settings, "invert_vertex_group", text="", icon="ARROW_LEFTRIGHT", toggle=True)


def draw_rows(layout: bpy.types.UILayout, rows: list[tuple[str, str]]) -> None:
    """Names and values in two columns, as wide as their longest texts need."""
    shown = [(translated(name), translated(value)) for name, value in rows]
    if not shown:
        return
    names, values = (max(map(len, texts)) for texts in zip(*shown, strict=True))
    column, share = layout.column(), names / (names + values)
    for name, value in shown:
        row = column.split(factor=min(max(share, 0.35), 0.65))
        row.label(text=name, translate=False)
        row.label(text=value, translate=False)


def named_row(layout: bpy.types.UILayout, name: str) -> bpy.types.UILayout:
    """A row for alternative buttons after a common label."""
    row = layout.split(factor=0.2, align=True)
    row.label(text=name)
    return row.row(align=True)


def draw_text(
    layout: bpy.types.UILayout, context: bpy.types.Context, text: str, icon: str, margin: float = MARGIN_WIDTH
) -> None:
    """Draw a text, wrapped to the sidebar's width minus ``margin`` pixels; its paragraphs end in line breaks."""
    width = context.region.width / context.preferences.system.ui_scale - margin
    column = layout.column(align=True)
    column.scale_y = 0.8
    for number, paragraph in enumerate(translated(text).split("\n")):
        if number:
            column.separator()
        for line in textwrap.wrap(paragraph, max(20, int(width / LETTER_WIDTH))):
            column.label(text=line, icon=icon)
            icon = "BLANK1"
