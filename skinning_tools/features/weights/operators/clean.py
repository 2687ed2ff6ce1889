# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools on the weights of a skinned mesh: rogue weights, smoothing, compression."""

import bpy
from bpy.props import BoolProperty, IntProperty

from ....blender import dependencies
from ....blender.job_checks import active_object
from ....blender.weight_tools import weighted_mesh, weighted_or_edited_mesh
from ....core.errors import BadScene
from ....ui.boundary import Checked, SkinningJob, reported
from ....ui.common_settings import RANGE_NAMES, frame_annotations
from .. import rogue_weights, unweighted, weight_compression, weight_smoothing, weight_tool_settings


class SKINNING_OT_find_rogue_weights(Checked, SkinningJob, bpy.types.Operator):
    """List the vertices that follow a bone far from its other ones. Nothing is changed"""

    bl_idname = "skinning.find_rogue_weights"
    bl_label = "Find Rogue Weights"

    require = staticmethod(weighted_or_edited_mesh)

    def steps(self, context):
        dependencies.require_dependencies()
        return (yield from rogue_weights.find(context, active_object(context)))

    def finish(self, context, result):
        return result.summary()


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

    only_checked: BoolProperty(
        name="Only Checked",
        description="Correct the entries checked in the list, including doubtful ones. When off, search again and "
        "correct only the certain ones",
        default=False,
        options={"SKIP_SAVE"},
    )
    include_doubtful: BoolProperty(
        name="Include Doubtful",
        description="Also correct weights that may be intentional: those that barely tear the surface, and those of "
        "whole loose parts",
        default=False,
        options={"SKIP_SAVE"},
    )

    require = staticmethod(weighted_or_edited_mesh)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in ("only_checked", "include_doubtful")}
        return (yield from rogue_weights.remove(context, active_object(context), **given))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_smooth_weights(Checked, SkinningJob, bpy.types.Operator):
    """Smooth the weights of all bones over the surface. Sums, borders, creases and locked vertex groups stay"""

    bl_idname = "skinning.smooth_weights"
    bl_label = "Smooth Weights"

    __annotations__ = weight_tool_settings.smooth_annotations("soft_min")

    require = staticmethod(weighted_or_edited_mesh)

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        self.fill(weight_tool_settings.SMOOTH_NAMES, context.scene.skinning_weight_tools.smooth)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in weight_tool_settings.SMOOTH_NAMES}
        return (yield from weight_smoothing.smooth(context, active_object(context), **given))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_compress_weights(Checked, SkinningJob, bpy.types.Operator):
    """Round weights to what 8 or 16 bits hold, with sums of exactly 1, and measure how far that moves vertices"""

    bl_idname = "skinning.compress_weights"
    bl_label = "Compress Weights"

    __annotations__ = weight_tool_settings.compress_annotations("soft_min") | frame_annotations("measure", "soft_min")

    require = staticmethod(weighted_mesh)

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        chosen = context.scene.skinning_weight_tools.compress
        self.fill((*weight_tool_settings.COMPRESS_NAMES, "frame_step"), chosen)
        # From here on the range is fixed, so that "Adjust Last Operation" shows and keeps it.
        self.fill(RANGE_NAMES, context.scene if chosen.use_scene_range else chosen)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in weight_tool_settings.COMPRESS_NAMES}
        given["bits"] = int(given["bits"])
        given |= self.given(RANGE_NAMES)
        return (
            yield from weight_compression.compress(context, active_object(context), frame_step=self.frame_step, **given)
        )

    def finish(self, context, result):
        return result.summary(context.scene)


registry = [
    SKINNING_OT_find_unweighted,
    SKINNING_OT_find_rogue_weights,
    SKINNING_OT_select_rogue_weights,
    SKINNING_OT_check_rogue_weights,
    SKINNING_OT_remove_rogue_weights,
    SKINNING_OT_smooth_weights,
    SKINNING_OT_compress_weights,
]
