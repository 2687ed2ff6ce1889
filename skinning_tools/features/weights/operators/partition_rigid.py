# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition a skinned mesh into rigid parts and skin."""

import bpy

from ....blender import dependencies
from ....blender.job_checks import active_object
from ....ui.boundary import Checked, SkinningJob
from .. import rigid_parts, weight_tool_settings


class SKINNING_OT_partition_rigid(Checked, SkinningJob, bpy.types.Operator):
    """Find the faces that one bone alone moves, and mark or separate them from the skin that several bones move"""

    bl_idname = "skinning.partition_rigid"
    bl_label = "Partition into Rigid Parts"

    __annotations__ = weight_tool_settings.partition_annotations("soft_min")

    require = staticmethod(rigid_parts.check_partitionable)

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        self.fill(weight_tool_settings.PARTITION_NAMES, context.scene.skinning_weight_tools.partition)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in weight_tool_settings.PARTITION_NAMES}
        return (yield from rigid_parts.partition(context, active_object(context), **given))

    def finish(self, context, result):
        return result.summary()


registry = [SKINNING_OT_partition_rigid]
