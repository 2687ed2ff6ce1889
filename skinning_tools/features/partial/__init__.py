# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial solves: weights, motion or helper bones for a rig that is there."""

from ...ui.feature import Feature
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Partial solves",
    guide="partial_solves.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
)
