# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding meshes to skeletons: by weights, by volumes, or by parenting whole objects."""

from ...ui.feature import Feature, menu_entry
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={"VIEW3D_MT_object_parent": menu_entry("skinning.bind")},
)
