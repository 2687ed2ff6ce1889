# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and bulge bones: helpers that keep twisted and bent joints in shape."""

from ...ui.feature import Feature
from ...ui.menus import DEFORMATION, POSE
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="joint_helpers.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        DEFORMATION: (
            "skinning.add_bone_links",
            "skinning.remove_bone_links",
            "skinning.add_bulge_bone",
            "skinning.remove_bulge_bone",
        ),
        POSE: (
            "skinning.add_bone_links",
            "skinning.remove_bone_links",
            "skinning.add_bulge_bone",
            "skinning.remove_bulge_bone",
        ),
    },
)
