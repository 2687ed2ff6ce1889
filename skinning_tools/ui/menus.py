# SPDX-License-Identifier: GPL-3.0-or-later
"""The submenus *Skinning* of Blender's menus, and a pie menu of the operators used most.

Features add their operators to the submenus, see ``Feature.menus``; the menu search (F3) finds them there.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import bpy

from ..blender.wording import TAB

ANIMATION = "SKINNING_MT_animation"
BINDING = "SKINNING_MT_binding"
DEFORMATION = "SKINNING_MT_deformation"
POSE = "SKINNING_MT_pose"
WEIGHTS = "SKINNING_MT_weights"
PIE = "SKINNING_MT_pie"
# Free in the 3D view of Blender's own key maps; B for bones.
PIE_KEY = {"type": "B", "value": "PRESS", "shift": True, "alt": True}

# By mode, in the order of a pie: left, right, below, above, then the corners.
_PIE_OF_OBJECTS = (
    "skinning.convert_animation",
    "skinning.bind",
    "skinning.transfer_weights",
    "skinning.convert_shape_keys",
    "skinning.smooth_weights",
    "skinning.remove_rogue_weights",
    "skinning.bake_rotation_centers",
    "skinning.preview",
)
_PIE_OF_POSES = (
    "skinning.eigenskin_add_example",
    "skinning.build_eigenskin",
    "skinning.drag_vertex",
    "skinning.start_weight_fit",
    "skinning.add_bone_links",
    "skinning.add_bulge_bone",
    "skinning.bind",
    "skinning.preview",
)


class _Filled:
    """An empty menu, which features fill. owners: Blender's menus that have it as their submenu."""

    bl_label = "Skinning"
    bl_idname: str
    owners: ClassVar[tuple[str, ...]] = ()
    layout: bpy.types.UILayout

    def draw(self, context: bpy.types.Context) -> None:
        pass


class SKINNING_MT_animation(_Filled, bpy.types.Menu):
    """Turn animations and shape keys into bones"""

    bl_label = "Animation to Bones"
    bl_idname = ANIMATION


class SKINNING_MT_binding(_Filled, bpy.types.Menu):
    """Attach meshes to skeletons, and clean up their weights"""

    bl_label = "Bind and Weights"
    bl_idname = BINDING


class SKINNING_MT_deformation(_Filled, bpy.types.Menu):
    """Correct how skinned meshes deform"""

    bl_label = "Deformation"
    bl_idname = DEFORMATION


class SKINNING_MT_object(_Filled, bpy.types.Menu):
    """Turn animations into bones, bind meshes, and correct how they deform"""

    bl_idname = "SKINNING_MT_object"
    owners = ("VIEW3D_MT_object",)

    def draw(self, context: bpy.types.Context) -> None:
        for menu in (ANIMATION, BINDING, DEFORMATION):
            self.layout.menu(menu)


class SKINNING_MT_pose(_Filled, bpy.types.Menu):
    """Correct how meshes deform in poses"""

    bl_idname = POSE
    owners = ("VIEW3D_MT_pose",)


class SKINNING_MT_weights(_Filled, bpy.types.Menu):
    """Clean up the weights of all deforming bones together"""

    bl_idname = WEIGHTS
    # Weights in Weight Paint Mode, and the arrow beside a mesh's vertex groups.
    owners = ("VIEW3D_MT_paint_weight", "MESH_MT_vertex_group_context_menu")


class SKINNING_MT_pie(bpy.types.Menu):
    """The operators used most in this mode"""

    bl_label = TAB
    bl_idname = PIE

    def draw(self, context: bpy.types.Context) -> None:
        pie = self.layout.menu_pie()
        # With the panel's settings and a progress display.
        pie.operator_context = "INVOKE_DEFAULT"
        for identifier in _PIE_OF_POSES if context.mode == "POSE" else _PIE_OF_OBJECTS:
            pie.operator(identifier)


_SUBMENUS = (SKINNING_MT_object, SKINNING_MT_pose, SKINNING_MT_weights)
registry = (SKINNING_MT_animation, SKINNING_MT_binding, SKINNING_MT_deformation, *_SUBMENUS, SKINNING_MT_pie)
# The key map and the item in it, to take it out again.
_keys: list[tuple[Any, Any]] = []


@cache
def _entry(menu: type[_Filled]) -> Callable:
    """The function that draws a submenu in another menu; always the same one, by which Blender finds it again. Blender
    notes the add-on on it, which a method would not take."""

    def draw(owner: bpy.types.Menu, context: bpy.types.Context) -> None:
        owner.layout.separator()
        owner.layout.menu(menu.bl_idname)

    return draw


def _entries() -> list[tuple[Any, Callable]]:
    return [(getattr(bpy.types, owner), _entry(menu)) for menu in _SUBMENUS for owner in menu.owners]


def register() -> None:
    for owner, entry in _entries():
        owner.append(entry)
    # Blender without a window has no key maps of add-ons.
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is not None:
        keymap = configuration.keymaps.new(name="3D View", space_type="VIEW_3D")
        item = keymap.keymap_items.new("wm.call_menu_pie", **PIE_KEY)
        item.properties.name = PIE
        _keys.append((keymap, item))


def unregister() -> None:
    for keymap, item in _keys:
        keymap.keymap_items.remove(item)
    _keys.clear()
    for owner, entry in _entries():
        owner.remove(entry)
