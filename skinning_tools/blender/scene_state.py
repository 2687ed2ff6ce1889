# SPDX-License-Identifier: GPL-3.0-or-later
"""Save and restore frame, selection, active object and mode."""

import bpy


class SceneState:
    """Remembers frame, selection, active object and mode of the context's scene, and puts them back."""

    def __init__(self, context: bpy.types.Context):
        self.scene = context.scene
        self.view_layer = context.view_layer
        self.frame = (self.scene.frame_current, self.scene.frame_subframe)
        active = self.view_layer.objects.active
        self.mode = active.mode if active else "OBJECT"
        self.active_name = active.name_full if active else ""
        self.selected = {ob.name_full for ob in self.view_layer.objects if ob.select_get(view_layer=self.view_layer)}

    def restore(self) -> None:
        """Change only what differs: an unneeded frame change would evaluate the whole scene again."""
        if (self.scene.frame_current, self.scene.frame_subframe) != self.frame:
            self.scene.frame_set(self.frame[0], subframe=self.frame[1])
        # Without an update the view layer lists deleted objects as None.
        self.view_layer.update()
        objects = self.view_layer.objects
        for ob in objects:
            wanted = ob.name_full in self.selected
            if ob.select_get(view_layer=self.view_layer) != wanted:
                ob.select_set(wanted, view_layer=self.view_layer)
        # By name, as the active object may have been deleted; the full one, as linked objects may share the short one.
        active = next((ob for ob in objects if ob.name_full == self.active_name), None)
        if objects.active != active:
            objects.active = active
        if active is not None and active.mode != self.mode:
            bpy.ops.object.mode_set(mode=self.mode)
