# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: Convert where a result is active and its source hidden, the vertex that Go to Worst Frame
marks, and a preset that Ctrl+Z takes back. Started by run.py."""

import bpy
from convert_animation_window import new_flag
from driver import (
    after,
    changed,
    enable,
    idle,
    in_window,
    look,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    region,
    settled,
    views,
)

from skinning_tools.features.convert import worst_mark
from skinning_tools.features.convert.panel import SKINNING_PT_conversion_result, SKINNING_PT_convert_animation
from skinning_tools.features.convert.settings import PRESETS


def tests():
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result)
    flag = yield from new_flag(15, 11, 20)
    view = views()[0]
    view.spaces.active.show_region_toolbar = view.spaces.active.show_region_hud = False
    press("N")
    yield lambda: region("UI").width > 10
    yield from open_tab("Skinning")
    press("NUMPAD_PERIOD")
    yield after(1)
    with in_window():
        bpy.ops.skinning.convert_animation(bone_count=4, iterations=3)
        bpy.ops.skinning.compare_result(show="RESULT")
    yield after(0.5)
    yield from converted_on_its_result(flag)
    yield from worst_vertex(view)
    yield from preset_taken_back()


def converted_on_its_result(flag):
    """Generator: the panel's Convert; the source is what it reads."""
    before = bpy.context.view_layer.objects.active
    assert before.name == "Flag_skinned"
    bpy.context.scene.skinning_conversion.on_result = "REPLACE"
    picture("results_1_on_a_result", views()[0])
    yield from press_button("skinning.convert_animation")
    uid = before.session_uid
    yield lambda: idle() and uid not in [ob.session_uid for ob in bpy.data.objects]
    made = bpy.context.view_layer.objects.active
    assert made["skinning_report"]["source"] == "Flag"
    assert flag.visible_get()
    passes("on a result the panel's button converts its source anew")


def worst_vertex(view):
    """Generator: the ring around it, which the button draws and takes away; and a view that looks elsewhere."""
    yield from press_button("skinning.show_worst_frame")
    yield lambda: worst_mark.marked(bpy.context) is not None
    worst = bpy.context.scene.frame_current
    marked = yield from settled(view)
    picture("results_2_worst_vertex", view)
    with in_window():
        bpy.ops.skinning.show_worst_frame()
    # A ring and a line of text are few pixels.
    yield lambda: marked is None or changed(marked, look(view)) > 0
    assert bpy.context.scene.frame_current == worst
    passes("the button goes to the worst frame, and marks the vertex")
    seen = view.spaces.active.region_3d
    seen.view_location = (50.0, 50.0, 0.0)
    # Its matrices follow with the next redraw.
    yield after(0.5)
    with in_window():
        bpy.ops.skinning.show_worst_frame()
    assert seen.view_location.length < 10
    passes("a view that does not have the vertex in it turns to it")


def preset_taken_back():
    """Generator: one step back."""
    chosen = bpy.context.scene.skinning_conversion
    chosen.bone_count = 77
    with in_window():
        bpy.ops.ed.undo_push(message="Before")
        # True: push an undo step at the end, as the menu does and scripts do not.
        bpy.ops.skinning.apply_conversion_preset("EXEC_DEFAULT", True, filepath=str(PRESETS.find("Face")))
    assert bpy.context.scene.skinning_conversion.bone_count == 40
    yield after(0.5)
    press("Z", ctrl=True)
    yield lambda: bpy.context.scene.skinning_conversion.bone_count == 77
    passes("one undo takes a preset back")
