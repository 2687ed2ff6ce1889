# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the submenus and the pie menu. Started by run.py."""

import bpy
from driver import after, begin_with, enable, in_window, passes, picture, press, region

from skinning_tools.features.weights.panel import SKINNING_PT_weights
from skinning_tools.ui.menus import BINDING, POSE
from tests.blender import skinned_meshes


def tests():
    enable(SKINNING_PT_weights)
    yield from begin_with(skinned_meshes.rigged_tube)
    view = region("WINDOW")
    middle = view.x + view.width // 2, view.y + view.height // 2

    press("B", *middle, shift=True, alt=True)
    yield after(0.8)
    picture("menus_1_pie")
    press("ESC", *middle)
    yield after(0.3)
    passes("the keys open the pie menu")

    for number, menu in enumerate(("VIEW3D_MT_object", BINDING, POSE), 2):
        with in_window():
            bpy.ops.wm.call_menu(name=menu)
        yield after(0.8)
        picture(f"menus_{number}_{menu}")
        press("ESC", *middle)
        yield after(0.3)
    passes("the submenus open")
