# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin: examples, corrective shape keys and their drivers."""

from ...ui.feature import Feature
from . import component_operator, component_panel, component_view, operators, panel, settings, skin_weights
from .command import COMMANDS

FEATURE = Feature(
    group="EigenSkin",
    guide="eigenskin.md",
    settings=(settings, component_view),
    operators=(operators, skin_weights, component_operator),
    panels=(panel, component_panel),
    commands=COMMANDS,
)
