# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the settings of a conversion as a preset of the user's, or remove one."""

import os
from pathlib import Path

import bpy
from bl_operators.presets import AddPresetBase

from ..scene.convert.presets import DEFINES, PRESET_NAMES, SHIPPED, SUBDIR


class SKINNING_OT_add_conversion_preset(AddPresetBase, bpy.types.Operator):
    """Save the settings of Convert Animation as a preset, or remove one"""

    bl_idname = "skinning.add_conversion_preset"
    bl_label = "Add Conversion Preset"
    preset_menu = "SKINNING_PT_conversion_presets"

    preset_defines = DEFINES
    preset_values = tuple(f"settings.{name}" for name in PRESET_NAMES)
    preset_subdir = SUBDIR

    def remove(self, context, filepath):
        # Blender spares only files that it may not write.
        if Path(filepath).parent == SHIPPED:
            raise PermissionError("it belongs to the extension")
        os.remove(filepath)


registry = [SKINNING_OT_add_conversion_preset]
