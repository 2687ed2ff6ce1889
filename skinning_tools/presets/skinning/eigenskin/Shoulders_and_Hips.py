# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = (bpy.context.object.find_armature() or bpy.context.object).skinning_eigenskin

settings.components = 10
settings.support_threshold = 0.04
settings.max_per_vertex = 30
settings.radius = 0.0
settings.budget = 0
settings.basis_functions = 0
settings.joint_pairs = 4
settings.half_rotation = False
settings.normals = False
settings.show_normals = False
