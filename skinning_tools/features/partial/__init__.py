# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial solves: weights, motion or helper bones for a rig that is there."""

from ...ui.feature import Feature
from . import commands, operators, panel, partial_settings

FEATURE = Feature(
    group="Partial solves",
    guide="partial_solves.md",
    settings=(partial_settings,),
    operators=operators.MODULES,
    panels=(panel,),
    commands=commands.MODULES,
)
