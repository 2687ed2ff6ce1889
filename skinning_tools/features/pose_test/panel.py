# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of the pose test: settings, button, what the colors mean, and the worst bones."""

import bpy

from ...blender import background
from ...blender.character import target_mesh
from ...blender.figures import rows_of_panel
from ...blender.job_checks import reason_not_to_work
from ...blender.records import read_record
from ...blender.weight_tools import POSE_TEST_PROPERTY
from ...ui.drawing import (
    SidebarPanel,
    draw_button,
    draw_failure,
    draw_job,
    draw_mesh,
    draw_rows,
    draw_text,
    idle_column,
    split_layout,
)
from ...ui.groups import WEIGHTS
from .operators import shows_pose_test
from .pose_test import PoseTestFigures, check_testable
from .settings import PoseTestSettings

_MEANINGS = (
    ("COLLECTION_COLOR_03", "Yellow: stretched up to the limit"),
    ("COLLECTION_COLOR_01", "Red: torn"),
    ("COLLECTION_COLOR_05", "Blue: runs into the mesh"),
    ("COLLECTION_COLOR_06", "Purple: both"),
)


class SKINNING_PT_pose_test(SidebarPanel, bpy.types.Panel):
    bl_label = "Pose Test"
    bl_idname = "SKINNING_PT_pose_test"
    bl_parent_id = WEIGHTS
    bl_options = {"DEFAULT_CLOSED"}
    titles = ("Pose Test",)

    def draw(self, context: bpy.types.Context) -> None:
        layout = split_layout(self)
        job = background.running_job()
        column = idle_column(layout)
        draw_mesh(column, context)
        for each in PoseTestSettings.declared:
            column.prop(context.scene.skinning_pose_test, each)
        if job is not None:
            draw_job(layout, job, SKINNING_PT_pose_test)
            return
        reason = reason_not_to_work(context, check_testable)
        draw_button(layout, context, "skinning.pose_test", "Pose Test", "ARMATURE_DATA", reason)
        draw_failure(layout, context, SKINNING_PT_pose_test)
        mesh_object = target_mesh(context)
        record = read_record(mesh_object, POSE_TEST_PROPERTY, PoseTestFigures) if mesh_object is not None else None
        if record is not None:
            draw_rows(layout, rows_of_panel(record.figures()[:-1]))
            for text in record.worst:
                draw_text(layout, context, text, "BONE_DATA")
        # Colors outlast the figures, which go when the weights change.
        if shows_pose_test(mesh_object):
            meanings = layout.column(align=True)
            for icon, text in _MEANINGS:
                meanings.label(text=text, icon=icon)
            layout.operator("skinning.hide_pose_test", icon="X")


registry = [SKINNING_PT_pose_test]
