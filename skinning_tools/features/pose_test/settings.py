# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the pose test, kept with the scene."""

import math

import bpy

from ...ui.settings import Settings, angle, number, switch


class PoseTestSettings(Settings, stored="skinning_pose_test"):
    angle = angle(
        "Angle",
        math.radians(30.0),
        least=math.radians(1.0),
        most=math.radians(120.0),
        tip="How far each bone turns about each of its axes, both ways",
        flag="--angle",
    )
    tear_limit = number(
        "Tear Limit",
        2.0,
        least=1.05,
        soft_max=5.0,
        tip="An edge that becomes more than this many times as long as at rest counts as torn",
        flag="--tear-limit",
        metavar="X",
    )
    contact = switch(
        "Self-Contact",
        True,
        tip="Also look for faces that run into other faces of the mesh, which takes most of the time",
        flag="--no-contact",
        help="do not look for faces that run into other faces of the mesh",
    )


class SkinningPoseTestSettings(bpy.types.PropertyGroup):
    """Settings of the panel's button."""

    __annotations__ = PoseTestSettings.group_annotations()


registry = [SkinningPoseTestSettings]
pointers = {"Scene.skinning_pose_test": SkinningPoseTestSettings}
