# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: press the panel's button, watch, cancel, undo. Started by run.py."""

import time

import bpy
from driver import (
    STEP_SECONDS,
    after,
    click,
    enable,
    event,
    find_button,
    idle,
    in_window,
    new_file,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    region,
    views,
    window,
)
from mathutils import Matrix

from skinning_tools.blender import background
from skinning_tools.features.convert.panel import SKINNING_PT_conversion_result, SKINNING_PT_convert_animation
from tests.blender import scenes

# Screens and similar data-blocks belong to the window, not to the job.
WINDOW_DATA = {"screens", "workspaces", "window_managers"}


def job_is_past(fraction: float):
    return lambda: (job := background.running_job()) is not None and job.fraction >= fraction


def census() -> dict[str, list[str]]:
    return {kind: names for kind, names in scenes.data_blocks().items() if kind not in WINDOW_DATA}


def new_flag(columns=59, rows=39, frame_end=120):
    """Generator: a grid that a Wave modifier moves, read frame by frame, so that the job takes a few seconds."""
    yield from new_file()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, frame_end
    flag = scenes.grid(columns, rows)
    flag.data.transform(Matrix.Scale(0.1, 4) @ Matrix.Translation((-columns / 2, -rows / 2, 0)))
    scenes.wave(flag, height=0.6, narrowness=1.2, speed=0.1)
    scene.frame_set(7)
    with in_window():
        bpy.ops.ed.undo_push(message="Flag")
    yield after(0.5)
    return flag


def tests():
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result)
    flag = yield from new_flag()
    press("N")
    yield lambda: region("UI").width > 10
    yield from open_tab("Skinning")
    views()[0].spaces.active.show_region_toolbar = False
    yield after(0.5)
    picture("1_panel")
    button = yield from find_button("skinning.convert_animation")
    passes("the button is in the sidebar")
    before = census()
    yield from cancelled(flag, button)
    assert census() == before
    yield from converted(button)
    yield from adjusted(before)
    yield from error_shown()
    yield from ended_from_elsewhere()
    yield from several()


def cancelled(flag, button):
    """Generator: a job under way, in which the view can be turned and nothing edited, and Esc."""
    # This one is to be cancelled, however slow the machine draws.
    bpy.context.scene.skinning_conversion.iterations = 1000
    before = census(), bpy.context.scene.frame_current
    click(button)
    yield job_is_past(0.05)
    picture("2_under_way")
    rotation = views()[0].spaces.active.region_3d.view_rotation.copy()
    main = region("WINDOW")
    x, y = main.x + main.width // 3, main.y + main.height // 3
    event("MOUSEMOVE", "NOTHING", x, y)
    event("MIDDLEMOUSE", "PRESS", x, y)
    for step in range(1, 9):
        event("MOUSEMOVE", "NOTHING", x + 8 * step, y + 3 * step)
        yield after(STEP_SECONDS)
    event("MIDDLEMOUSE", "RELEASE", x + 64, y + 24)
    yield after(0.1)
    assert not idle(), "the job ended before the view was turned"
    assert views()[0].spaces.active.region_3d.view_rotation.rotation_difference(rotation).angle > 0.01
    passes("the view turns while the job runs")
    press("X")
    press("TAB")
    yield after(0.2)
    assert "Flag" in bpy.data.objects
    assert flag.mode == "OBJECT"
    passes("editing keys are swallowed while the job runs")
    press("ESC")
    yield idle
    yield after(0.3)
    assert (census(), bpy.context.scene.frame_current) == before
    picture("3_cancelled")
    passes("Esc leaves nothing behind")


def converted(button):
    """Generator: a job to its end."""
    chosen = bpy.context.scene.skinning_conversion
    chosen.iterations, chosen.bone_count, chosen.use_scene_range = 40, 12, False
    chosen.frame_start, chosen.frame_end = 10, 110
    click(button)
    gaps = []
    last = time.perf_counter()
    pictured = False
    while idle():
        yield after(0)
    while not idle():
        yield after(0)
        gaps.append(time.perf_counter() - last)
        last = time.perf_counter()
        job = background.running_job()
        if job is not None and job.stage.startswith("Solving") and not pictured:
            pictured = True
            yield after(0.3)
            picture("4_solving")
            last = time.perf_counter()
    passes(f"the job ends; Blender was never busy for longer than {max(gaps):.2f} s (not a condition)")
    yield after(0.5)
    picture("5_finished")
    skinned = bpy.data.objects["Flag_skinned"]
    report = skinned["skinning_report"]
    assert (report["bone_count"], report["settings"]["iterations"]) == (12, 40)
    assert (report["frame_start"], report["frame_end"]) == (10, 110)
    assert bpy.context.scene.frame_current == 7
    assert [ob.name for ob in bpy.context.view_layer.objects if ob.select_get()] == ["Flag"]
    passes(f"the result is there, E_RMS {skinned['skinning_e_rms']:.3f}")


def adjusted(before):
    """Generator: the finished job with another setting, undone and redone; before: what there was at first."""
    # Adjust Last Operation undoes, changes a setting and runs the operator again, blocking.
    bpy.context.window_manager.operators[-1].bone_count = 6
    with in_window():
        # True: push an undo step at the end, as the interface does and scripts do not.
        bpy.ops.ed.undo_redo("EXEC_DEFAULT", True)
    yield after(0.5)
    report = bpy.data.objects["Flag_skinned"]["skinning_report"]
    assert (report["bone_count"], report["settings"]["iterations"]) == (6, 40)
    assert (report["frame_start"], report["frame_end"]) == (10, 110)
    assert "Flag_skinned.001" not in bpy.data.objects
    with in_window():
        bpy.ops.screen.redo_last("INVOKE_DEFAULT")
    yield after(0.3)
    picture("5_redo_panel")
    press("ESC")
    yield after(0.3)
    passes("the last operation can be adjusted")

    press("Z", ctrl=True)
    yield after(0.5)
    assert census() == before, "one undo must remove all"
    press("Z", ctrl=True, shift=True)
    yield after(0.5)
    assert "Flag_skinned" in bpy.data.objects
    passes("one undo removes the result, redo brings it back")


def error_shown():
    """Generator: the button that colors the result, on and off, and the panel on the armature."""
    place = yield from press_button("skinning.show_error")
    yield after(0.5)
    picture("6_error")
    assert "skinning_error_color" in bpy.data.objects["Flag_skinned"].data.color_attributes
    click(place)
    yield after(0.3)
    bpy.context.view_layer.objects.active = bpy.data.objects["Flag_rig"]
    yield after(0.3)
    picture("7_rig_active")


def ended_from_elsewhere():
    """Generator: jobs under way while Blender plays, undoes, deletes or opens something."""
    yield from new_flag()
    with in_window():
        bpy.ops.screen.animation_play()
    yield after(0.3)
    assert window().screen.is_animation_playing
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT", bone_count=10, iterations=1000)
    yield job_is_past(0.1)
    with in_window():
        assert not bpy.ops.skinning.convert_animation.poll()
    passes("a second job is refused while one runs")
    assert not window().screen.is_animation_playing
    passes("playback stops for the job")
    bpy.ops.wm.read_homefile(use_factory_startup=True)
    yield after(0.5)
    assert idle()
    assert not [ob for ob in bpy.data.objects if "Flag" in ob.name]
    passes("another file ends the job")

    yield from new_flag()
    count = census()
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT", bone_count=10, iterations=1000)
    yield job_is_past(0.1)
    with in_window():
        bpy.ops.ed.undo_push(message="From elsewhere")
        bpy.ops.ed.undo()
    yield after(0.5)
    assert idle()
    assert census() == count
    passes("an undo from elsewhere ends the job")

    flag = bpy.data.objects["Flag"]
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT", bone_count=10, iterations=1000)
    yield job_is_past(0.1)
    bpy.data.objects.remove(flag)
    yield idle
    assert not [ob for ob in bpy.data.objects if "Flag" in ob.name]
    passes("a deleted source ends the job")


def several():
    """Generator: three objects to one armature by the panel's check box, looked at, and undone in one step."""
    flag = yield from new_flag(39, 29, 40)
    for number, name in enumerate(("Sail", "Pennant")):
        other = scenes.grid(20, 10, name=name)
        other.data.transform(Matrix.Scale(0.1, 4))
        other.location = (-1, -1.4 + number, 1 + number)
        scenes.wave(other, height=0.3, narrowness=1.5, speed=0.1)
        scenes.key_property(other, "rotation_euler", {1: (0, 0, 0), 40: (0.5, 0, 1 + number)})
    bpy.context.view_layer.objects.active = flag
    bpy.context.scene.frame_set(30)
    chosen = bpy.context.scene.skinning_conversion
    chosen.selected_objects, chosen.bone_count, chosen.use_scene_range = True, 30, True
    with in_window():
        bpy.ops.ed.undo_push(message="Three")
    before = census()
    press("N")
    yield lambda: region("UI").width > 10
    yield from open_tab("Skinning")
    views()[0].spaces.active.show_region_toolbar = False
    press("NUMPAD_PERIOD")
    yield after(1)
    picture("8_several")
    yield from press_button("skinning.convert_animation")
    while idle():
        yield after(0)
    yield idle
    yield after(0.5)
    rig = bpy.data.objects["Flag_rig"]
    assert sorted(ob.name for ob in rig.children) == ["Flag_skinned", "Pennant_skinned", "Sail_skinned"]
    bpy.context.view_layer.objects.active = bpy.data.objects["Sail_skinned"]
    yield after(0.3)
    picture("9_several_converted")
    yield from press_button("skinning.show_error")
    yield after(0.5)
    picture("10_several_error")
    assert not any(bpy.data.objects[name].visible_get() for name in ("Flag", "Sail", "Pennant"))
    for _ in range(2):
        press("Z", ctrl=True)
        yield after(0.5)
    assert census() == before
    passes("all selected meshes become one armature; one undo for the colors, one for the rest")
