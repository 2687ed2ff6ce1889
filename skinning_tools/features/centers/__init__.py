# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation: baked, played by a modifier or as shapes, exported."""

from ...ui.feature import Feature
from . import bake_state, command, operators, panels, rotation_center_settings

FEATURE = Feature(
    group="Centers of Rotation",
    guide="centers_of_rotation.md",
    settings=(rotation_center_settings, bake_state),
    operators=operators.MODULES,
    panels=panels.MODULES,
    commands=(command,),
)
