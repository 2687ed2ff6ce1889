# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake deforming modifiers to weights, and to helper bones that joints drive."""

from ...ui.feature import Feature
from ...ui.menus import BINDING
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="bake_deformers.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={BINDING: ("skinning.bake_deformers", "skinning.restore_weights", "skinning.save_training_set")},
)
