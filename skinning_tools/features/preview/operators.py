# SPDX-License-Identifier: GPL-3.0-or-later
"""Preview Skinning: the operator in front of the preview package, which it reaches through the window manager."""

import bpy
from bpy.props import BoolProperty, EnumProperty

from ...blender import dependencies
from ...blender.character import mesh_meant
from ...blender.job_checks import active_object
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from ...ui.boundary import reported
from .methods import METHOD_ITEMS

MODES = (*METHOD_ITEMS, ("OFF", "Off", "End the preview"))


class SKINNING_OT_preview(bpy.types.Operator):
    """Draw the active mesh over the 3D views as another skinning method deforms it. Changes nothing in the scene"""

    bl_idname = "skinning.preview"
    bl_label = "Preview Skinning"
    bl_options = {"REGISTER"}

    mode: EnumProperty(name="Mode", items=MODES, default="LBS", options={"SKIP_SAVE"})
    side_by_side: BoolProperty(
        name="Side by Side",
        description="Show all methods next to each other, around the mesh. As it is where not given",
        default=False,
        options={"SKIP_SAVE"},
    )

    def execute(self, context):
        preview = context.window_manager.skinning_preview
        with reported(self):
            if self.mode == "OFF":
                preview.stop()
                return {"FINISHED"}
            dependencies.require_dependencies()
            object = previewed_object(context, preview.shown)
            preview.show(context, object, self.mode)
            if self.properties.is_property_set("side_by_side"):
                preview.side_by_side = self.side_by_side
            self.report({"INFO"}, preview.shown.summary())
            return {"FINISHED"}
        return {"CANCELLED"}


def previewed_object(context, shown):
    """The mesh that is meant; where that cannot be told, the one that is shown. Raises BadScene."""
    active = active_object(context)
    try:
        return mesh_meant(context, active)
    except BadScene:
        object = shown.target() if shown is not None else None
        if object is None or armature_of(object) != active:
            raise
        return object


registry = [SKINNING_OT_preview]
