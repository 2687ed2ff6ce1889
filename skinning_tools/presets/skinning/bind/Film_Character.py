# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = bpy.context.scene.skinning_bind

settings.method = "AUTOMATIC"
settings.max_influences = 8
settings.whole_parts = False
settings.as_objects = False
settings.falloff_inside = 0.0
settings.falloff_outside = 0.0
settings.smooth = True
settings.all_bones = False
