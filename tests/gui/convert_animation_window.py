# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: press the panel's button, watch, cancel, undo. Started by run.py.

The test is a generator: each `yield` gives Blender back until its condition holds, as a user waits for the screen.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import skinning_tools
from skinning_tools.scene import background

OUTCOME, PICTURES = map(Path, sys.argv[sys.argv.index("--") + 1 :])
STEP_SECONDS = 0.02
PATIENCE_SECONDS = 60.0

passed: list[str] = []


def passes(what: str) -> None:
    passed.append(what)


# The window


def window():
    return bpy.context.window_manager.windows[0]


def view():
    return next(area for area in window().screen.areas if area.type == "VIEW_3D")


def in_window():
    """Blender's timers have no window of their own."""
    return bpy.context.temp_override(window=window(), area=view(), region=region("WINDOW"))


def region(kind: str):
    return next(region for region in view().regions if region.type == kind)


def event(kind: str, value: str, x: int, y: int, **keys) -> None:
    window().event_simulate(type=kind, value=value, x=int(x), y=int(y), **keys)


def press(key: str, x=None, y=None, **keys) -> None:
    """Press and release a key, with the pointer in the middle of the view where no place is given."""
    main = region("WINDOW")
    x, y = (main.x + main.width // 2, main.y + main.height // 2) if x is None else (x, y)
    event("MOUSEMOVE", "NOTHING", x, y)
    event(key, "PRESS", x, y, **keys)
    event(key, "RELEASE", x, y, **keys)


def picture(name: str) -> None:
    if shutil.which("import") and os.environ.get("DISPLAY"):
        subprocess.run(["import", "-window", "root", str(PICTURES / f"{name}.png")], check=True)


# Conditions


def after(seconds: float):
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


def job_is_past(fraction: float):
    return lambda: (job := background.running_job()) is not None and job.fraction >= fraction


def job_has_ended() -> bool:
    return background.running_job() is None


def census() -> dict[str, list[str]]:
    return {
        prop.identifier: sorted(block.name_full for block in getattr(bpy.data, prop.identifier))
        for prop in bpy.data.bl_rna.properties
        # Screens and the like are the window's, not the job's.
        if prop.type == "COLLECTION" and prop.identifier not in {"screens", "workspaces", "window_managers"}
    }


# The scene


def waving_flag(columns=60, rows=40, frame_end=120):
    """A grid that a Wave modifier moves: read frame by frame, so that the job takes a few seconds."""
    bpy.ops.wm.read_homefile(use_empty=False, use_factory_startup=True)
    for ob in list(bpy.data.objects):
        if ob.type != "LIGHT":
            bpy.data.objects.remove(ob)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, frame_end
    x, y = np.meshgrid(np.linspace(-3, 3, columns), np.linspace(-2, 2, rows))
    faces = [
        (
            row * columns + column,
            row * columns + column + 1,
            (row + 1) * columns + column + 1,
            (row + 1) * columns + column,
        )
        for row in range(rows - 1)
        for column in range(columns - 1)
    ]
    mesh = bpy.data.meshes.new("Flag")
    mesh.from_pydata(np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1).tolist(), [], faces)
    flag = bpy.data.objects.new("Flag", mesh)
    scene.collection.objects.link(flag)
    wave = flag.modifiers.new("Wave", "WAVE")
    wave.time_offset, wave.height, wave.width, wave.narrowness, wave.speed = -100, 0.6, 2.0, 1.2, 0.1
    bpy.context.view_layer.objects.active = flag
    flag.select_set(True)
    scene.frame_set(7)
    with in_window():
        bpy.ops.ed.undo_push(message="Flag")
    return flag


def open_tab(category: str):
    """Generator: click on the sidebar's tabs from the top until the wanted one is open."""
    ui = region("UI")
    for y in range(ui.y + ui.height - 20, ui.y, -25):
        click((ui.x + ui.width - 8, y))
        yield after(4 * STEP_SECONDS)
        if region("UI").active_panel_category == category:
            return
    raise AssertionError(f"the sidebar has no tab {category}")


def find_button(operator: str):
    """Generator: the place of the button in the sidebar that runs ``operator``, found by moving the pointer over it."""
    ui = region("UI")
    for y in range(ui.y + ui.height - 30, ui.y, -8):
        x = ui.x + ui.width * 0.45
        event("MOUSEMOVE", "NOTHING", x, y)
        yield after(2 * STEP_SECONDS)
        with bpy.context.temp_override(window=window(), area=view(), region=region("UI")):
            bpy.context.window_manager.clipboard = ""
            if not bpy.ops.ui.copy_python_command_button.poll():
                continue
            bpy.ops.ui.copy_python_command_button()
        if operator in bpy.context.window_manager.clipboard:
            return int(x), y
    raise AssertionError(f"no button runs {operator}")


def click(place) -> None:
    press("LEFTMOUSE", *place)


# The tests


def tests():
    skinning_tools.register()
    flag = waving_flag()
    yield after(0.5)
    press("N")
    yield lambda: region("UI").width > 10
    yield from open_tab("Skinning")
    view().spaces.active.show_region_toolbar = False
    yield after(0.5)
    picture("1_panel")
    button = yield from find_button("skinning.convert_animation")
    passes("the button is in the sidebar")

    # This one is to be cancelled, however slow the machine draws.
    bpy.context.scene.skinning_conversion.iterations = 1000
    before = census(), bpy.context.scene.frame_current
    click(button)
    yield job_is_past(0.05)
    picture("2_reading")
    rotation = view().spaces.active.region_3d.view_rotation.copy()
    main = region("WINDOW")
    x, y = main.x + main.width // 3, main.y + main.height // 3
    event("MOUSEMOVE", "NOTHING", x, y)
    event("MIDDLEMOUSE", "PRESS", x, y)
    for step in range(1, 9):
        event("MOUSEMOVE", "NOTHING", x + 8 * step, y + 3 * step)
        yield after(STEP_SECONDS)
    event("MIDDLEMOUSE", "RELEASE", x + 64, y + 24)
    yield after(0.1)
    assert background.running_job() is not None, "the job ended before the view was turned"
    assert view().spaces.active.region_3d.view_rotation.rotation_difference(rotation).angle > 0.01
    passes("the view turns while the job runs")
    press("X")
    press("TAB")
    yield after(0.2)
    assert "Flag" in bpy.data.objects
    assert flag.mode == "OBJECT"
    passes("editing keys are swallowed while the job runs")
    press("ESC")
    yield job_has_ended
    yield after(0.3)
    assert (census(), bpy.context.scene.frame_current) == before
    picture("3_cancelled")
    passes("Esc leaves nothing behind")

    chosen = bpy.context.scene.skinning_conversion
    chosen.iterations, chosen.bone_count, chosen.use_scene_range = 40, 12, False
    chosen.frame_start, chosen.frame_end = 10, 110
    click(button)
    gaps = []
    last = time.perf_counter()
    pictured = False
    while background.running_job() is None:
        yield after(0)
    while background.running_job() is not None:
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
    assert census() == before[0], "one undo must remove all"
    press("Z", ctrl=True, shift=True)
    yield after(0.5)
    assert "Flag_skinned" in bpy.data.objects
    passes("one undo removes the result, redo brings it back")

    place = yield from find_button("skinning.show_error")
    click(place)
    yield after(0.5)
    picture("6_error")
    assert "skinning_error_color" in bpy.data.objects["Flag_skinned"].data.color_attributes
    click(place)
    yield after(0.3)
    bpy.context.view_layer.objects.active = bpy.data.objects["Flag_rig"]
    yield after(0.3)
    picture("7_rig_active")

    waving_flag()
    yield after(0.3)
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
    assert background.running_job() is None
    assert not [ob for ob in bpy.data.objects if "Flag" in ob.name]
    passes("another file ends the job")

    waving_flag()
    yield after(0.3)
    count = census()
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT", bone_count=10, iterations=1000)
    yield job_is_past(0.1)
    with in_window():
        bpy.ops.ed.undo_push(message="From elsewhere")
        bpy.ops.ed.undo()
    yield after(0.5)
    assert background.running_job() is None
    assert census() == count
    passes("an undo from elsewhere ends the job")

    flag = bpy.data.objects["Flag"]
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT", bone_count=10, iterations=1000)
    yield job_is_past(0.1)
    bpy.data.objects.remove(flag)
    yield job_has_ended
    assert not [ob for ob in bpy.data.objects if "Flag" in ob.name]
    passes("a deleted source ends the job")


def finish(failure: str) -> None:
    picture("failure") if failure else None
    OUTCOME.write_text(json.dumps({"passed": passed, "failure": failure}))
    sys.stdout.flush()
    os._exit(1 if failure else 0)


def drive():
    """Called by Blender's timer: go on where the awaited condition holds."""
    global waiting, since
    try:
        if waiting is not None and not waiting():
            if time.perf_counter() - since > PATIENCE_SECONDS:
                raise TimeoutError("what the test waits for did not come")
            return STEP_SECONDS
        waiting, since = next(running), time.perf_counter()
    except StopIteration:
        finish("")
    except Exception:  # noqa: BLE001 - whatever it is, the window must close and the runner be told
        where = running.gi_frame.f_lineno if running.gi_frame else "?"
        finish(f"line {where}: {traceback.format_exc()}")
    return STEP_SECONDS


running = tests()
waiting, since = None, time.perf_counter()
bpy.app.timers.register(drive, first_interval=1.0, persistent=True)
