# SPDX-License-Identifier: GPL-3.0-or-later
import bpy

settings = bpy.context.scene.skinning_conversion

settings.quality = "STANDARD"
settings.bone_count = 40
settings.bone_kind = "AFFINE"
settings.max_influences = 4
settings.iterations = 30
settings.target_error = 0.0
settings.optimize_rest_pose = True
settings.residual_shapes = 0
settings.emphasis = 0.0
settings.surface = 0.0
settings.method = "STANDARD"
settings.smoothness = 0.25
settings.root_bone = True
settings.joint_hierarchy = False
settings.rotation_only = False
settings.joint_slip = 0.0
settings.rotation_limits = False
settings.limit_margin = 0.0872664600610733
settings.key_tolerance = 0.0
