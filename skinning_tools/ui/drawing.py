# SPDX-License-Identifier: GPL-3.0-or-later
"""What the panels have in common, and what several of them draw: texts, figures, the frames, the job that runs."""

import textwrap

from bpy.app.translations import pgettext_iface as iface_

from ..blender import background, look_ups
from ..blender.job_checks import active_object
from ..blender.wording import TAB, duration_text, sentence

# Pixels that a letter of the interface's font takes on average at a scale of one, those of margins and the icon, and
# those of a box's margins and the button that closes it.
LETTER_WIDTH = 6.5
MARGIN_WIDTH = 60
BOX_WIDTH = 50


class SidebarPanel:
    """A panel in the sidebar's tab. failures: the titles of the operators whose failures it shows.

    What a subclass defines as ``draw`` and ``poll`` looks through the objects of the file once; see scene.look_ups.
    """

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = TAB
    failures: tuple[str, ...] = ()

    def __init_subclass__(cls, **given):
        super().__init_subclass__(**given)
        if "draw" in vars(cls):
            cls.draw = look_ups.shares(cls.draw)
        if "poll" in vars(cls):
            cls.poll = classmethod(look_ups.shares(vars(cls)["poll"].__func__))


def split_layout(panel):
    """The layout of a panel, with the names of properties beside their values."""
    layout = panel.layout
    layout.use_property_split = True
    layout.use_property_decorate = False
    return layout


def idle_column(layout):
    """A column for what cannot be changed while a job runs."""
    column = layout.column()
    column.enabled = background.running_job() is None
    return column


def draw_mesh(layout, context) -> None:
    """Which mesh is worked on, where its armature is active: in Pose Mode a click does not choose one."""
    object = active_object(context)
    if object is not None and object.type == "ARMATURE":
        layout.prop(context.scene, "skinning_mesh", icon="MESH_DATA")


def draw_frame_range(layout, scene, settings) -> None:
    """The range of ``settings``, or the scene's, which is what will be read where they say so."""
    column = layout.column()
    column.prop(settings, "use_scene_range")
    range_column = column.column(align=True)
    range_column.enabled = not settings.use_scene_range
    range_owner = scene if settings.use_scene_range else settings
    range_column.prop(range_owner, "frame_start", text="Frame Start")
    range_column.prop(range_owner, "frame_end", text="End")
    column.prop(settings, "frame_step", text="Step")


def draw_job(layout, job: background.RunningJob) -> None:
    """How far a modal job has come, and the way to stop it."""
    layout.progress(factor=job.fraction, text=f"{iface_(job.stage)}, {job.fraction:.0%}")
    row = layout.row()
    left = job.seconds_left
    text = "" if left is None else iface_("{time} left").format(time=sentence(duration_text(left)))
    row.label(text=text, icon="TIME")
    row.operator("skinning.cancel_job", text="Cancel (Esc)", icon="X")


def draw_failure(layout, context, panel: type[SidebarPanel]) -> None:
    """Why the last of the panel's operators failed: the popup has only its first words."""
    text = background.last_failure(*panel.failures)
    if text:
        row = layout.box().row()
        draw_text(row, context, text, "ERROR", MARGIN_WIDTH + BOX_WIDTH)
        row.operator("skinning.dismiss_failure", text="", icon="X", emboss=False)


def draw_rows(layout, rows: list[tuple[str, str]]) -> None:
    grid = layout.grid_flow(row_major=True, columns=2, even_columns=True)
    for name, value in rows:
        grid.label(text=name)
        grid.label(text=value)


def named_row(layout, name: str):
    """A row for buttons that are alternatives, behind what all of them do."""
    row = layout.split(factor=0.2, align=True)
    row.label(text=name)
    return row.row(align=True)


def draw_text(layout, context, text: str, icon: str, margin: float = MARGIN_WIDTH) -> None:
    """A text in as many lines as the sidebar's width, less the pixels ``margin``, asks for."""
    width = context.region.width / context.preferences.system.ui_scale - margin
    column = layout.column(align=True)
    column.scale_y = 0.8
    for index, line in enumerate(textwrap.wrap(iface_(text), max(20, int(width / LETTER_WIDTH)))):
        column.label(text=line, icon=icon if index == 0 else "BLANK1")
