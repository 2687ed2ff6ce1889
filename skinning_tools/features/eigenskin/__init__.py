# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin: examples, corrective shape keys and their drivers."""

from ...ui.feature import Feature
from . import command, eigenskin_settings, operators, panel

FEATURE = Feature(
    group="EigenSkin",
    guide="eigenskin.md",
    settings=(eigenskin_settings,),
    operators=operators.MODULES,
    panels=(panel,),
    commands=(command,),
)
