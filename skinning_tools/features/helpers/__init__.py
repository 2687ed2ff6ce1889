# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and bulge bones: helpers that keep twisted and bent joints in shape."""

from ...ui.feature import Feature
from . import commands, joint_helper_settings, operators, panel

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(joint_helper_settings,),
    operators=operators.MODULES,
    panels=(panel,),
    commands=commands.MODULES,
)
