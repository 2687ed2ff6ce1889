# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = (bpy.context.object.find_armature() or bpy.context.object).skinning_eigenskin

settings.components = 0
settings.support_threshold = 0.04
settings.max_per_vertex = 8
settings.radius = 0.0
settings.budget = 24
settings.basis_functions = 12
settings.joint_pairs = 0
settings.half_rotation = True
settings.normals = False
settings.show_normals = False
