# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries in Blender's own menus, where riggers look: one at the end of each."""

import bpy


class SKINNING_MT_weights(bpy.types.Menu):
    """Clean up the weights of all deforming bones together"""

    bl_label = "Skinning Weights"
    bl_idname = "SKINNING_MT_weights"

    def draw(self, context):
        layout = self.layout
        # With the settings of the panel, and with progress.
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator("skinning.find_unweighted")
        layout.operator("skinning.find_rogue_weights")
        layout.operator("skinning.remove_rogue_weights")
        layout.operator("skinning.smooth_weights")
        layout.operator("skinning.compress_weights")


def _draw_convert(menu, context) -> None:
    _draw_operator(menu.layout, "skinning.convert_animation")


def _draw_bind(menu, context) -> None:
    _draw_operator(menu.layout, "skinning.bind")


def _draw_operator(layout, identifier: str) -> None:
    layout.separator()
    layout.operator_context = "INVOKE_DEFAULT"
    layout.operator(identifier)


def _draw_weights(menu, context) -> None:
    menu.layout.separator()
    menu.layout.menu(SKINNING_MT_weights.bl_idname)


# Object > Animation, Object > Parent, Weights in Weight Paint Mode, and the arrow beside a mesh's vertex groups.
MENUS = {
    "VIEW3D_MT_object_animation": _draw_convert,
    "VIEW3D_MT_object_parent": _draw_bind,
    "VIEW3D_MT_paint_weight": _draw_weights,
    "MESH_MT_vertex_group_context_menu": _draw_weights,
}

registry = [SKINNING_MT_weights]


def register() -> None:
    for name, draw in MENUS.items():
        getattr(bpy.types, name).append(draw)


def unregister() -> None:
    for name, draw in MENUS.items():
        getattr(bpy.types, name).remove(draw)
