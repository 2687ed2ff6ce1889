# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial solves: weights, motion or helper bones for a rig that is there."""

from ...ui.feature import Feature
from . import panel, partial_settings
from .commands import add_helper_bones as add_helper_bones_command
from .commands import remove_helper_bones
from .commands import solve_transforms as solve_transforms_command
from .commands import solve_weights as solve_weights_command
from .operators import add_helper_bones, solve_transforms, solve_weights

FEATURE = Feature(
    group="Partial solves",
    guide="partial_solves.md",
    settings=(partial_settings,),
    operators=(solve_weights, solve_transforms, add_helper_bones),
    panels=(panel,),
    commands=(solve_weights_command, solve_transforms_command, add_helper_bones_command, remove_helper_bones),
)
