# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit Weights to Pose: weights that bring vertices to target positions in a pose."""

from ...ui.feature import Feature
from . import operators, panel, reachable_view, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(settings, reachable_view),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
)
