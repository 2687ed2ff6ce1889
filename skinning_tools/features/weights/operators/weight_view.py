# SPDX-License-Identifier: GPL-3.0-or-later
"""Show Weights: the bones' colors or the number of influences on the mesh itself."""

import bpy
from bpy.props import EnumProperty, IntProperty

from ....blender import dependencies, error_display
from ....blender.character import character_of, target_mesh
from ....blender.object_checks import check_mode
from ....core.errors import BadSettings
from ....ui.boundary import Checked, reported
from .. import weight_view


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


registry = [SKINNING_OT_show_weights]
