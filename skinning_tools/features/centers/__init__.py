# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation: baking, playback by a modifier, shape keys or cache, and export."""

from ...ui.feature import Feature
from . import bake_state, operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Centers of Rotation",
    guide="centers_of_rotation.md",
    settings=(settings, bake_state),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
)
