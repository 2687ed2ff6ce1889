# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation: baking, playback by a modifier, shape keys or cache, and export."""

from ...ui.feature import Feature
from ...ui.menus import DEFORMATION
from . import bake_state, operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Centers of Rotation",
    guide="centers_of_rotation.md",
    settings=(settings, bake_state),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        DEFORMATION: (
            "skinning.bake_rotation_centers",
            "skinning.add_center_of_rotation_modifier",
            "skinning.remove_center_of_rotation_modifier",
            "skinning.crs_to_shape_keys",
            "skinning.crs_to_pc2",
            "skinning.prepare_centers_for_export",
        ),
    },
)
