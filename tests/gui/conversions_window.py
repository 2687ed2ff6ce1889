# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the estimate before a conversion, the list of conversions and its buttons, errors over time,
the scale of the error colors. Started by run.py."""

import bpy
from convert_animation_window import census, job_is_past, new_flag
from driver import (
    after,
    click,
    enable,
    find_button,
    idle,
    in_window,
    look,
    looks_unlike,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    region,
    settled,
    views,
)

from skinning_tools.features.convert.panel import (
    SKINNING_PT_conversion_result,
    SKINNING_PT_conversions,
    SKINNING_PT_convert_animation,
)


def converted(count: int):
    """Condition: the job is over, and there is that number of armatures."""
    return lambda: idle() and sum(ob.type == "ARMATURE" for ob in bpy.data.objects) == count


def visible(name: str) -> bool:
    return bpy.data.objects[name].visible_get()


def tests():
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result, SKINNING_PT_conversions)
    flag = yield from new_flag(39, 29, 60)
    view = views()[0]
    view.spaces.active.show_region_toolbar = view.spaces.active.show_region_hud = False
    press("N")
    yield lambda: region("UI").width > 10
    yield from open_tab("Skinning")
    press("NUMPAD_PERIOD")
    yield after(1)
    picture("conversions_1_estimate", view)
    before = census()

    yield from cancelled_by_its_button()
    assert census() == before

    for number, bones in enumerate((12, 30)):
        bpy.context.view_layer.objects.active = flag
        bpy.context.scene.skinning_conversion.bone_count = bones
        with in_window():
            bpy.ops.skinning.convert_animation("INVOKE_DEFAULT")
        yield converted(number + 1)
    yield after(0.5)
    picture("conversions_2_list", view)

    with in_window():
        bpy.ops.skinning.show_worst_frame()
    worst = bpy.context.scene.frame_current
    with in_window():
        # The mark is removed, as its ring would be in the pictures.
        bpy.ops.skinning.show_worst_frame()
    bpy.context.scene.frame_set(7)
    plain = look(view, "WINDOW")
    yield from press_button("skinning.show_error")
    yield looks_unlike(plain, view, "WINDOW")
    yield from settled(view)
    picture("conversions_3_legend", view)
    yield from press_button("skinning.show_error")
    yield after(0.3)
    yield from press_button("skinning.show_worst_frame")
    yield lambda: bpy.context.scene.frame_current == worst
    passes("the button goes to the worst frame")

    bpy.context.view_layer.objects.active = bpy.data.objects["Flag_rig"]
    yield after(0.3)
    yield from press_button("compare_result(show='SOURCE')", across=0.3)
    yield lambda: visible("Flag") and not visible("Flag_skinned")
    yield from press_button("compare_result(show='RESULT')", across=0.6)
    yield lambda: visible("Flag_skinned") and not visible("Flag")
    yield from settled(view)
    picture("conversions_4_result_alone", view)
    yield from press_button("compare_result(show='BOTH')", across=0.87)
    yield lambda: visible("Flag_skinned") and visible("Flag")
    passes("source and result are shown in turn")

    click((yield from find_button("skinning.convert_again")))
    yield converted(3)
    again, first = (bpy.data.objects[name]["skinning_report"] for name in ("Flag_rig.002", "Flag_rig"))
    assert (again["bone_count"], again["e_rms"]) == (first["bone_count"], first["e_rms"])
    passes("the button converts again with the settings of the conversion")

    names = set(bpy.data.objects.keys())
    yield from press_button("skinning.delete_result")
    yield converted(2)
    assert "Flag" in bpy.data.objects
    yield from settled(view)
    picture("conversions_5_deleted", view)
    press("Z", ctrl=True)
    yield converted(3)
    assert set(bpy.data.objects.keys()) == names
    passes("one undo brings back what was deleted")


def cancelled_by_its_button():
    """Generator: the panel's Cancel, while the job runs."""
    bpy.context.scene.skinning_conversion.iterations = 100000
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT")
    yield job_is_past(0.02)
    yield after(0.3)
    picture("conversions_1_running", views()[0])
    yield from press_button("skinning.cancel_job", across=0.7)
    yield idle
    bpy.context.scene.skinning_conversion.iterations = 15
    passes("the panel's button cancels the job")
