# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the reference."""

from . import bake_rotation_centers, center_of_rotation_modifier, center_of_rotation_playback, export_centers

MODULES = (bake_rotation_centers, center_of_rotation_modifier, center_of_rotation_playback, export_centers)
