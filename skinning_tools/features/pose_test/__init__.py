# SPDX-License-Identifier: GPL-3.0-or-later
"""Pose Test: where a skinned mesh tears, or runs into itself, when its bones turn."""

from ...ui.feature import Feature
from ...ui.menus import POSE, WEIGHTS
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="weights.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        POSE: ("skinning.pose_test",),
        WEIGHTS: ("skinning.pose_test", "skinning.hide_pose_test"),
    },
)
