# SPDX-License-Identifier: GPL-3.0-or-later
"""Export of skinned characters for engines: the exporters' settings, and a comparison of the file with the scene."""

from ...ui.feature import Feature
from ...ui.menus import ANIMATION
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Export",
    guide="engines.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        "TOPBAR_MT_file_export": ("skinning.export_character",),
        ANIMATION: ("skinning.select_for_export", "skinning.export_character"),
    },
)
