# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools on the weights of a skinned mesh: unweighted vertices, rogue weights, smoothing, compression, rigid parts, and
showing the weights."""

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty

from ...blender import dependencies, error_display
from ...blender.character import character_of, target_mesh
from ...blender.job_checks import active_object
from ...blender.preconditions import check_mode
from ...blender.weight_tools import weighted_mesh, weighted_or_edited_mesh
from ...core.errors import BadScene, BadSettings
from ...ui.boundary import Checked, reported
from ...ui.jobs import SkinningJob
from . import compression, rigid_parts, rogue_weights, smoothing, unweighted, weight_view
from .settings import CompressSettings, PartitionSettings, RemoveRogueSettings, SmoothSettings


class SKINNING_OT_find_rogue_weights(Checked, SkinningJob, bpy.types.Operator):
    """List the vertices that follow a bone far from its other ones. Nothing is changed"""

    bl_idname = "skinning.find_rogue_weights"
    bl_label = "Find Rogue Weights"

    require = staticmethod(weighted_or_edited_mesh)

    work = staticmethod(rogue_weights.find)


class SKINNING_OT_find_unweighted(Checked, bpy.types.Operator):
    """Select the vertices that no bone moves, in Edit Mode: of all selected meshes, or all that the armature deforms"""

    bl_idname = "skinning.find_unweighted"
    bl_label = "Find Unweighted Vertices"
    bl_options = {"REGISTER", "UNDO"}

    require = staticmethod(unweighted.meshes_to_search)

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            self.report({"INFO"}, unweighted.find_unweighted(context, active_object(context)).summary())
            return {"FINISHED"}
        return {"CANCELLED"}


class _OnList(Checked):
    """Mix-in of what works on the list of rogue weights."""

    @staticmethod
    def require(context, object):
        object = weighted_or_edited_mesh(context, object)
        if not object.skinning_rogue_weights.islands:
            raise BadScene(f'The list of rogue weights of "{object.name}" is empty. Find them first')


class SKINNING_OT_select_rogue_weights(_OnList, bpy.types.Operator):
    """Select the vertices of a row of the list, or of all checked ones, in Edit Mode"""

    bl_idname = "skinning.select_rogue_weights"
    bl_label = "Select Rogue Vertices"
    bl_options = {"REGISTER", "UNDO"}

    index: IntProperty(
        name="Row", description="Place in the list, -1 for all checked rows", default=-1, options={"SKIP_SAVE"}
    )

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            self.report({"INFO"}, rogue_weights.select(context, active_object(context), self.index))
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_check_rogue_weights(_OnList, bpy.types.Operator):
    """Check all rows of the list, or none"""

    bl_idname = "skinning.check_rogue_weights"
    bl_label = "Check Rogue Weights"
    bl_options = {"REGISTER", "UNDO"}

    checked: BoolProperty(name="Checked", description="All if set, none if not", default=True, options={"SKIP_SAVE"})

    def execute(self, context):
        with reported(self):
            object = weighted_or_edited_mesh(context, active_object(context))
            for item in object.skinning_rogue_weights.islands:
                item.checked = self.checked
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_remove_rogue_weights(Checked, SkinningJob, bpy.types.Operator):
    """Give rogue weights to the bones of the nearest valid vertices. Doubtful ones and locked vertex groups stay"""

    bl_idname = "skinning.remove_rogue_weights"
    bl_label = "Remove Rogue Weights"

    settings = RemoveRogueSettings
    require = staticmethod(weighted_or_edited_mesh)
    work = staticmethod(rogue_weights.remove)


class SKINNING_OT_smooth_weights(Checked, SkinningJob, bpy.types.Operator):
    """Smooth the weights of all bones over the surface. Sums, borders, creases and locked vertex groups stay"""

    bl_idname = "skinning.smooth_weights"
    bl_label = "Smooth Weights"

    settings = SmoothSettings
    require = staticmethod(weighted_or_edited_mesh)
    work = staticmethod(smoothing.smooth)


class SKINNING_OT_compress_weights(Checked, SkinningJob, bpy.types.Operator):
    """Round weights to what 8 or 16 bits hold, with sums of exactly 1, and measure how far that moves vertices"""

    bl_idname = "skinning.compress_weights"
    bl_label = "Compress Weights"

    settings = CompressSettings
    require = staticmethod(weighted_mesh)
    work = staticmethod(compression.compress)

    def finish(self, context, result):
        return result.summary(context.scene)


class SKINNING_OT_partition_rigid(Checked, SkinningJob, bpy.types.Operator):
    """Find the faces that one bone alone moves, and mark or separate them from the skin that several bones move"""

    bl_idname = "skinning.partition_rigid"
    bl_label = "Partition into Rigid Parts"

    settings = PartitionSettings
    require = staticmethod(rigid_parts.check_partitionable)
    work = staticmethod(rigid_parts.partition)


class SKINNING_OT_show_weights(Checked, bpy.types.Operator):
    """Color the mesh by the weights of all its bones, or by how many bones move each vertex"""

    bl_idname = "skinning.show_weights"
    bl_label = "Show Weights"
    bl_options = {"REGISTER", "UNDO"}

    mode: EnumProperty(name="Mode", items=weight_view.MODE_ITEMS, default="BONES", options={"SKIP_SAVE"})
    most: IntProperty(
        name="Influences",
        description="Where more bones move a vertex, it is red",
        default=4,
        soft_min=1,
        soft_max=12,
        options={"SKIP_SAVE"},
    )

    @staticmethod
    def require(context, object):
        if weight_view.shows_weights(object):
            # What is on can be taken away, whatever became of the armature.
            check_mode(object)
            return
        weight_view.check_showable(context, character_of(context, object))

    def execute(self, context):
        with reported(self):
            object = target_mesh(context)
            if self.mode == "OFF":
                weight_view.hide_weights(object)
                error_display.show_colors(context, False)
                return {"FINISHED"}
            dependencies.require_dependencies()
            if self.most < 1:
                raise BadSettings(f"The number of influences must be at least 1, not {self.most}")
            weight_view.check_showable(context, object)
            weight_view.show_weights(object, self.mode, self.most)
            error_display.show_colors(context, True)
            group = object.data.skinning_weight_view
            largest = max(item.influences for item in group.counts)
            self.report({"INFO"}, f"{object.name}: {len(group.bones)} bones, at most {largest} at a vertex")
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [
    SKINNING_OT_find_unweighted,
    SKINNING_OT_find_rogue_weights,
    SKINNING_OT_select_rogue_weights,
    SKINNING_OT_check_rogue_weights,
    SKINNING_OT_remove_rogue_weights,
    SKINNING_OT_smooth_weights,
    SKINNING_OT_compress_weights,
    SKINNING_OT_partition_rigid,
    SKINNING_OT_show_weights,
]
