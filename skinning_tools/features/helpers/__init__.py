# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and bulge bones: helpers that keep twisted and bent joints in shape."""

from ...ui.feature import Feature
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
)
