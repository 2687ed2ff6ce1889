# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = bpy.context.scene.skinning_weight_tools.smooth

settings.strength = 0.5
settings.iterations = 5
settings.max_influences = 4
settings.keep_creases = True
