# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin: examples, corrective shape keys and their drivers."""

from ...ui.feature import Feature
from ...ui.menus import DEFORMATION, POSE
from . import (
    component_operator,
    component_panel,
    component_view,
    example_operators,
    operators,
    panel,
    settings,
    skin_weights,
)
from .command import COMMANDS

FEATURE = Feature(
    group="EigenSkin",
    guide="eigenskin.md",
    settings=(settings, component_view),
    operators=(example_operators, operators, skin_weights, component_operator),
    panels=(panel, component_panel),
    commands=COMMANDS,
    menus={
        DEFORMATION: (
            "skinning.eigenskin_add_frames",
            "skinning.build_eigenskin",
            "skinning.mute_eigenskin",
            "skinning.show_eigenskin_error",
            "skinning.show_eigenskin_components",
            "skinning.bake_eigenskin",
            "skinning.unbake_eigenskin",
            "skinning.save_eigenskin_table",
            "skinning.remove_eigenskin",
        ),
        POSE: (
            "skinning.eigenskin_pose_joints",
            "skinning.eigenskin_add_example",
            "skinning.eigenskin_mirror",
            "skinning.eigenskin_estimate",
            "skinning.eigenskin_pose_next",
            "skinning.build_eigenskin",
            "skinning.eigenskin_fit_weights",
        ),
    },
)
