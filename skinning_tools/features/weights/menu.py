# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools on weights as a submenu of Blender's menus, where riggers look for them."""

import bpy


class SKINNING_MT_weights(bpy.types.Menu):
    """Clean up the weights of all deforming bones together"""

    bl_label = "Skinning Weights"
    bl_idname = "SKINNING_MT_weights"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        # With the panel's settings and a progress display.
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator("skinning.find_unweighted")
        layout.operator("skinning.find_rogue_weights")
        layout.operator("skinning.remove_rogue_weights")
        layout.operator("skinning.smooth_weights")
        layout.operator("skinning.compress_weights")


def draw_entry(menu: bpy.types.Menu, context: bpy.types.Context) -> None:
    """Draw the entry at the end of another menu."""
    menu.layout.separator()
    menu.layout.menu(SKINNING_MT_weights.bl_idname)


registry = [SKINNING_MT_weights]
