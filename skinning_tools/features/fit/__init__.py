# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit Weights to Pose: weights that bring vertices to where the artist wants them."""

from ...ui.feature import Feature
from . import command, operators, panel, reachable_view, weight_fit_settings

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(weight_fit_settings, reachable_view),
    operators=(operators,),
    panels=(panel,),
    commands=(command,),
)
