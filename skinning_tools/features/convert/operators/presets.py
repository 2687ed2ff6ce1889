# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of a conversion's settings: take one over, save one of the user's own, or remove it."""

import os
from pathlib import Path

import bpy
from bl_operators.presets import AddPresetBase
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import StringProperty

from ....ui.boundary import reported
from ..presets import DEFINES, PRESET_NAMES, SHIPPED, SUBDIR, apply_preset, preset_name


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


class SKINNING_OT_apply_conversion_preset(bpy.types.Operator):
    """Take the settings of this preset over into the panel"""

    bl_idname = "skinning.apply_conversion_preset"
    bl_label = "Apply Conversion Preset"
    # Blender's own operator for presets is no undo step.
    bl_options = {"REGISTER", "UNDO"}

    filepath: StringProperty(name="File", description="The preset's file", subtype="FILE_PATH", options={"SKIP_SAVE"})

    def execute(self, context):
        with reported(self):
            path = Path(self.filepath)
            for note in apply_preset(context.scene.skinning_conversion, path):
                self.report({"INFO"}, note)
            self.report({"INFO"}, rpt_("Settings of the preset {name}").format(name=preset_name(path)))
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_add_conversion_preset, SKINNING_OT_apply_conversion_preset]
