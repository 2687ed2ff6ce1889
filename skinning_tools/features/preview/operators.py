# SPDX-License-Identifier: GPL-3.0-or-later
"""Preview Skinning: start the preview, change its method, end it."""

import bpy

from ...blender import dependencies
from ...blender.character import mesh_meant
from ...blender.job_checks import active_object
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from ...ui.jobs import AtOnce
from . import session
from .settings import ShowSettings


class SKINNING_OT_preview(AtOnce, bpy.types.Operator):
    """Draw the active mesh over the 3D views with another skinning method. Changes nothing in the scene"""

    bl_idname = "skinning.preview"
    bl_label = "Preview Skinning"
    bl_options = {"REGISTER"}

    settings = ShowSettings

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str | None:
        if self.mode == "OFF":
            session.display.stop()
            return None
        dependencies.require_dependencies()
        session.start(context, previewed_object(context), self.mode)
        if self.properties.is_property_set("side_by_side"):
            context.window_manager.skinning_preview.side_by_side = self.side_by_side
        running = session.display.subject
        assert running is not None
        return running.summary()


def previewed_object(context: bpy.types.Context) -> bpy.types.Object | None:
    """The mesh for the active object, else the previewed mesh. Raises BadScene."""
    active, shown = active_object(context), session.display.subject
    try:
        return mesh_meant(context, active)
    except BadScene:
        mesh_object = shown.target() if shown is not None else None
        if mesh_object is None or armature_of(mesh_object) != active:
            raise
        return mesh_object


registry = [SKINNING_OT_preview]
