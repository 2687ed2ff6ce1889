# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin: examples, corrective shape keys and their drivers."""

from ...ui.feature import Feature
from . import operators, panel, settings, skin_weights
from .command import COMMANDS

FEATURE = Feature(
    group="EigenSkin",
    guide="eigenskin.md",
    settings=(settings,),
    operators=(operators, skin_weights),
    panels=(panel,),
    commands=COMMANDS,
)
