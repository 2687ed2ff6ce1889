# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = (bpy.context.object.find_armature() or bpy.context.object).skinning_eigenskin

settings.components = 5
settings.support_threshold = 0.02
settings.max_per_vertex = 30
settings.radius = 1.0472
settings.budget = 0
settings.basis_functions = 0
settings.joint_pairs = 0
settings.half_rotation = False
settings.normals = False
settings.show_normals = False
