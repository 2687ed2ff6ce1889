# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = bpy.context.scene.skinning_weight_tools.smooth

settings.strength = 0.8
settings.iterations = 20
settings.max_influences = 0
settings.keep_creases = True
