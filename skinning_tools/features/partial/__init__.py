# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve for an existing rig: its weights, its motion or helper bones."""

from ...ui.feature import Feature
from ...ui.menus import ANIMATION, POSE
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Solve for an existing rig",
    guide="partial_solves.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        ANIMATION: (
            "skinning.solve_weights",
            "skinning.solve_transforms",
            "skinning.solve_again",
            "skinning.make_root",
            "skinning.add_helper_bones",
            "skinning.remove_helper_bones",
            "skinning.save_helper_table",
        ),
        POSE: (
            "skinning.solve_again",
            "skinning.make_root",
            "skinning.add_helper_bones",
            "skinning.remove_helper_bones",
        ),
    },
)
