# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation: baked, played by a modifier or as shapes, exported."""

from ...ui.feature import Feature
from . import bake_state, command, rotation_center_settings
from .operators import bake_rotation_centers, center_of_rotation_modifier, center_of_rotation_playback, export_centers
from .panels import export_centers as export_panel
from .panels import rotation_centers

FEATURE = Feature(
    group="Centers of Rotation",
    guide="centers_of_rotation.md",
    settings=(rotation_center_settings, bake_state),
    operators=(bake_rotation_centers, center_of_rotation_modifier, center_of_rotation_playback, export_centers),
    panels=(rotation_centers, export_panel),
    commands=(command,),
)
