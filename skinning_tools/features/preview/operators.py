# SPDX-License-Identifier: GPL-3.0-or-later
"""Preview Skinning: start the preview, change its method, end it."""

import bpy
from bpy.props import BoolProperty, EnumProperty

from ...blender import dependencies
from ...blender.character import mesh_meant
from ...blender.job_checks import active_object
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from ...ui.boundary import reported
from . import session
from .settings import METHOD_ITEMS

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
        with reported(self):
            if self.mode == "OFF":
                session.stop()
                return {"FINISHED"}
            dependencies.require_dependencies()
            session.start(context, previewed_object(context), self.mode)
            if self.properties.is_property_set("side_by_side"):
                context.window_manager.skinning_preview.side_by_side = self.side_by_side
            self.report({"INFO"}, session.running().summary())
            return {"FINISHED"}
        return {"CANCELLED"}


def previewed_object(context):
    """The mesh that is meant; where that cannot be told, the one that is shown. Raises BadScene."""
    active, shown = active_object(context), session.running()
    try:
        return mesh_meant(context, active)
    except BadScene:
        object = shown.target() if shown is not None else None
        if object is None or armature_of(object) != active:
            raise
        return object


registry = [SKINNING_OT_preview]
