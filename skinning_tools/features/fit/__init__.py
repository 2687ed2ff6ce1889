# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit Weights to Pose: weights that bring vertices to target positions in a pose."""

from ...ui.feature import Feature
from ...ui.menus import POSE
from . import drag_operator, drag_tool, operators, panel, reachable_view, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="weights.md",
    settings=(settings, reachable_view, drag_tool),
    operators=(operators, drag_operator),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        POSE: (
            "skinning.start_weight_fit",
            "skinning.fit_weights_to_pose",
            "skinning.cancel_weight_fit",
            "skinning.drag_vertex",
            "skinning.show_reachable",
            "skinning.show_fit_error",
        ),
    },
)
