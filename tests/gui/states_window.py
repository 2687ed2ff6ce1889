# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: a conversion's states, compared as pictures: before, under way, after Esc, done, undone,
redone. Started by run.py."""

import bpy
from convert_animation_window import census, job_is_past, new_flag
from driver import (
    click,
    enable,
    event,
    find_button,
    idle,
    look,
    looks_like,
    looks_unlike,
    open_tab,
    passes,
    picture,
    press,
    region,
    settled,
    views,
    window,
)

from skinning_tools.features.convert.panel import SKINNING_PT_conversion_result, SKINNING_PT_convert_animation
from tests.blender import scenes


def rest_pointer() -> None:
    """Put the pointer where it highlights nothing."""
    main = region("WINDOW")
    event("MOUSEMOVE", "NOTHING", main.x + main.width // 3, main.y + 20)


def status_bar():
    """The bar at the window's foot, which no area of the screen has."""
    areas = window().screen.areas
    lowest = min(area.y for area in areas)
    return type("Bar", (), {"x": 0, "y": 0, "width": window().width, "height": lowest})


def tests():
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result)
    flag = yield from new_flag()
    view = views()[0]
    # Adjust Last Operation is shown after an operation, but not after its redo.
    view.spaces.active.show_region_hud = False
    press("N")
    yield lambda: region("UI").width > 10
    yield from open_tab("Skinning")
    button = yield from find_button("skinning.convert_animation")
    rest_pointer()
    before = yield from settled(view)
    sidebar = look(view, "UI")
    bar = yield from settled(status_bar())
    picture("states_1_before")
    data, positions = census(), scenes.played(flag, (1, 60, 120))

    bpy.context.scene.skinning_conversion.iterations = 1000
    click(button)
    rest_pointer()
    yield job_is_past(0.05)
    yield looks_unlike(sidebar, view, "UI")
    yield looks_unlike(bar, status_bar())
    # The bar grows until it shows.
    yield looks_unlike(look(view, "UI"), view, "UI")
    picture("states_2_under_way")
    assert not idle(), "the job ended before Esc"
    passes("sidebar and status bar show the progress")

    press("ESC")
    yield idle
    bpy.context.scene.skinning_conversion.iterations = 15
    rest_pointer()
    yield looks_like(before, view)
    yield looks_like(bar, status_bar())
    picture("states_3_after_escape")
    assert census() == data
    assert (scenes.played(flag, (1, 60, 120)) == positions).all()
    passes("after Esc the window looks as before, and the mesh moves as before")

    click(button)
    rest_pointer()
    yield lambda: idle() and "Flag_skinned" in bpy.data.objects
    done = yield from settled(view)
    picture("states_4_done")
    yield looks_unlike(before, view)
    press("Z", ctrl=True)
    rest_pointer()
    yield lambda: "Flag_skinned" not in bpy.data.objects
    yield looks_like(before, view)
    picture("states_5_undone")
    press("Z", ctrl=True, shift=True)
    rest_pointer()
    yield lambda: "Flag_skinned" in bpy.data.objects
    yield looks_like(done, view)
    picture("states_6_redone")
    passes("undo brings the first picture back, redo the last")
