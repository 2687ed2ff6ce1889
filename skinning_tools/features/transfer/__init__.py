# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights transferred from one mesh to others: from a body to clothes, between resolutions, and from side to side."""

from ...ui.feature import Feature
from ...ui.menus import BINDING, WEIGHTS
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="transfer_weights.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        "VIEW3D_MT_make_links": ("skinning.transfer_weights",),
        BINDING: ("skinning.transfer_weights",),
        WEIGHTS: ("skinning.transfer_weights",),
    },
)
