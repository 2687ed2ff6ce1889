# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel "Solve for an Existing Rig": weights, motion or helper bones."""

from functools import partial

import bpy

from ...blender import background
from ...blender.character import target_mesh
from ...blender.figures import rows_of_panel
from ...blender.helper_bones.driven import DRIVEN
from ...blender.helper_bones.records import SOLVED, find_helpers
from ...blender.job_checks import active_object, reason_not_to_work
from ...blender.records import read_record
from ...blender.translation import translated
from ...blender.wording import counted, sentence
from ...core.errors import SkinningError
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
from ...ui.groups import ANIMATION
from .helper_removal import rig_with_helpers
from .new_root import check_reroot
from .outcome import FIGURES_PROPERTY, PartialFigures
from .parts import armature_meant, parts_of, reason_not_to_solve
from .settings import AgainSettings, HelperSettings, MotionSettings, WeightSettings

# By the name of the settings: the settings, the operator with its text and icon, and what the mesh must have.
_SOLVES = {
    "weights": (WeightSettings, "solve_weights", "Solve Weights", "MOD_VERTEX_WEIGHT", {"weighted": False}),
    "transforms": (
        MotionSettings,
        "solve_transforms",
        "Solve Motion",
        "ACTION",
        {"weighted": True, "writes_weights": False},
    ),
    "again": (AgainSettings, "solve_again", "Solve Again", "FILE_REFRESH", {"weighted": False}),
    "helpers": (HelperSettings, "add_helper_bones", "Add Helper Bones", "BONE_DATA", {"weighted": True}),
}


class SKINNING_PT_partial_solves(SidebarPanel, bpy.types.Panel):
    bl_label = "Solve for an Existing Rig"
    bl_idname = "SKINNING_PT_partial_solves"
    bl_parent_id = ANIMATION
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Solve Weights", "Solve Motion", "Solve Again", "Make Root", "Add Helper Bones", "Remove Helper Bones")

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        settings = context.scene.skinning_partial
        job = background.running_job()
        column = idle_column(layout)
        draw_mesh(column, context)
        column.prop_search(settings, "armature", context.scene, "objects", icon="ARMATURE_DATA")
        column.prop_search(settings, "target", context.scene, "objects", icon="MESH_DATA")
        meant = meant_text(context) if job is None else ""
        if meant:
            draw_text(column, context, meant, "INFO")
        draw_frame_range(column, context.scene, settings)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_partial_solves)
        mesh = target_mesh(context)
        for name in _SOLVES:
            body = _draw_solve(layout, context, name, mesh, job)
            if body is not None and name == "again":
                check = partial(check_reroot, armature=settings.armature)
                reason = "" if job is not None else reason_not_to_work(context, check)
                button = draw_button(body, context, "skinning.make_root", "Make Root", "BONE_DATA", reason)
                button.armature = settings.armature
            if body is not None and name == "helpers":
                _draw_removal(body, context, job)
        draw_failure(layout, context, SKINNING_PT_partial_solves)
        figures = read_record(mesh, FIGURES_PROPERTY, PartialFigures) if mesh is not None else None
        if figures is not None:
            _draw_figures(layout, context, figures)


def meant_text(context: bpy.types.Context) -> str:
    """The objects that a solve would work on, if the selection decides; "" if the panel's fields decide, or if it could
    not start."""
    settings = context.scene.skinning_partial
    if settings.armature and settings.target:
        return ""
    try:
        parts = parts_of(context, active_object(context), settings.armature, settings.target, weighted=False)
    except SkinningError:
        return ""
    target = f"the animation of {parts.mesh.name} itself" if parts.own else parts.target.name
    return f"Fits {parts.mesh.name}, deformed by {parts.armature.name}, to {target}"


def _draw_solve(
    layout: bpy.types.UILayout,
    context: bpy.types.Context,
    name: str,
    mesh: bpy.types.Object | None,
    job: background.RunningJob | None,
) -> bpy.types.UILayout:
    """Draw the settings and the button of a solve, by the name of its settings; returns the layout, None if closed."""
    declared, operator, text, icon, needs = _SOLVES[name]
    header, body = layout.panel(f"skinning_partial_{name}", default_closed=name != "weights")
    header.label(text=text.removeprefix("Add "))
    if body is None:
        return None
    column, settings = body.column(), getattr(context.scene.skinning_partial, name)
    column.enabled = job is None
    for each, place in declared.places.items():
        if each == "action_names" and settings.actions != "SELECTED":
            continue
        # Keyed helper bones do not use them.
        if each == "random_poses" and not getattr(settings, "driven", True):
            continue
        if each == "locked_vertices" and mesh is not None:
            column.prop_search(settings, each, mesh, "vertex_groups", text="Locked Vertices")
        elif place == declared.stored:
            column.prop(settings, each)
    reason = "" if job is not None else reason_not_to_solve(context, **needs)
    body = body.column()
    body.enabled = job is None
    draw_button(body, context, f"skinning.{operator}", text, icon, reason)
    return body


def _draw_removal(layout: bpy.types.UILayout, context: bpy.types.Context, job: background.RunningJob | None) -> None:
    """Draw the button that removes helper bones, if the armature has any."""
    name = context.scene.skinning_partial.armature
    try:
        armature = armature_meant(context, active_object(context), name)
    except SkinningError:
        return
    count = len(find_helpers(armature, (SOLVED,)))
    if not count:
        return
    reason = "" if job is not None else reason_not_to_work(context, partial(rig_with_helpers, name=name))
    layout.label(text=f"{armature.name}: {translated(counted(count, 'helper bone'))}", icon="BONE_DATA")
    text = "Remove Helper Bones"
    draw_button(layout, context, "skinning.remove_helper_bones", text, "X", reason).armature = armature.name
    if any(DRIVEN in bone for bone in armature.data.bones):
        draw_button(layout, context, "skinning.save_helper_table", "Save Helper Table", "EXPORT", "")


def _draw_figures(layout: bpy.types.UILayout, context: bpy.types.Context, figures: PartialFigures) -> None:
    for text in (figures.warning, *figures.omissions):
        if text:
            draw_text(layout, context, sentence(text), "ERROR")
    header, body = layout.panel("skinning_partial_figures")
    header.label(text=translated(f"Last Solve: {figures.title}"))
    if body is None:
        return
    draw_rows(body, rows_of_panel(figures.figures()))


registry = [SKINNING_PT_partial_solves]
