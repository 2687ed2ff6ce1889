# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators of the pose test: run it and show its colors, and remove them."""

import bpy

from ...blender.character import target_mesh
from ...blender.error_display import POSE_TEST_COLORS, remove_error_colors, show_colors
from ...blender.look_ups import shares
from ...blender.preconditions import check_mode
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from . import pose_test
from .settings import PoseTestSettings


class SKINNING_OT_pose_test(Checked, SkinningJob, bpy.types.Operator):
    """Turn each bone about each of its axes, and color the mesh where its edges tear and its faces run into each \
other. Pose and keyframes stay"""

    bl_idname = "skinning.pose_test"
    bl_label = "Pose Test"

    settings = PoseTestSettings
    work = staticmethod(pose_test.show_pose_test)

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        pose_test.check_testable(context, active)

    def finish(self, context: bpy.types.Context, result: pose_test.PoseTest) -> str:
        show_colors(context, True)
        return super().finish(context, result)


class SKINNING_OT_hide_pose_test(AtOnce, bpy.types.Operator):
    """Remove the colors of the pose test, and show the mesh's materials again"""

    bl_idname = "skinning.hide_pose_test"
    bl_label = "Hide Pose Test"

    @classmethod
    @shares
    def poll(cls, context: bpy.types.Context) -> bool:
        return shows_pose_test(target_mesh(context))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        mesh_object = target_mesh(context)
        if not shows_pose_test(mesh_object):
            raise BadScene("The mesh has no colors of a pose test. Select the mesh that has them")
        check_mode(mesh_object)
        remove_error_colors(mesh_object)
        show_colors(context, False)


def shows_pose_test(mesh_object: bpy.types.Object | None) -> bool:
    """Whether the mesh object has the colors of a pose test."""
    return (
        mesh_object is not None and mesh_object.type == "MESH" and POSE_TEST_COLORS in mesh_object.data.color_attributes
    )


registry = [SKINNING_OT_pose_test, SKINNING_OT_hide_pose_test]
