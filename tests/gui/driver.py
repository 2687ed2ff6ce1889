# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools for tests inside Blender's window: the window's parts, events, pictures, and waiting for Blender.

A test is a module whose ``tests`` is a generator: each `yield` gives Blender back until its condition holds, as a user
waits for the screen. Started by run.py, which gives the path of the outcome file and the folder for pictures after
`--`.
"""

import importlib
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

import skinning_tools
from skinning_tools.blender import background
from skinning_tools.blender.dependencies import REMEDY, MissingDependency, require_dependencies
from skinning_tools.features import FEATURES
from skinning_tools.ui import groups
from tests.blender import scenes
from tests.installed_package import INSTALLED

OUTCOME, PICTURES = map(Path, sys.argv[sys.argv.index("--") + 1 :])
STEP_SECONDS = 0.02
PATIENCE_SECONDS = 120.0
SCREENFULS = 3
# Of 255, and a share of the pixels: text and lines may be smoothed a little differently, a button is larger.
VISIBLE, SAME = 16, 0.002
# Bytes, from which on a picture gets a palette: it may be one of the documentation.
LARGE = 300_000

passed: list[str] = []


def passes(what: str) -> None:
    passed.append(what)


# The window


def window():
    return bpy.context.window_manager.windows[0]


def views() -> list:
    return [area for area in window().screen.areas if area.type == "VIEW_3D"]


def region(kind: str, area=None):
    return next(region for region in (area or views()[0]).regions if region.type == kind)


def in_window(area=None, kind="WINDOW"):
    """The only window: Blender's timers run without one in the context."""
    area = area or views()[0]
    return bpy.context.temp_override(window=window(), area=area, region=region(kind, area))


def can_take_pictures() -> bool:
    return bool(shutil.which("import") and os.environ.get("DISPLAY"))


def picture(name: str, area=None) -> None:
    """Take a picture of the screen, or of an ``area``; none if Blender's process cannot take one."""
    if not can_take_pictures():
        return
    path = PICTURES / f"{name}.png"
    take = ["import", "-window", "root", *_cut(area)]
    subprocess.run([*take, str(path)], check=True)
    if path.stat().st_size > LARGE:
        subprocess.run([*take, "-dither", "None", "-colors", "256", f"png8:{path}"], check=True)


def look(area=None, kind=None):
    """What the screen shows now, (H, W, 3) 0 to 255, at a quarter of its size; None if no picture can be taken.

    area, kind: of an area, or of a region of it, alone.
    """
    if not can_take_pictures():
        return None
    place = region(kind, area) if kind else area
    take = ["import", "-window", "root", *_cut(place), "-resize", "25%", "-depth", "8", "ppm:-"]
    # P6, width and height, 255, and the pixels.
    data = subprocess.run(take, check=True, capture_output=True).stdout
    width, height = data.split(maxsplit=4)[1:3]
    count = int(width) * int(height) * 3
    return np.frombuffer(data[-count:], np.uint8).reshape(int(height), int(width), 3).astype(float)


def settled(area=None, kind=None):
    """Generator: ``look`` once the place has come to rest."""
    before = look(area, kind)
    while True:
        yield after(0.7)
        now = look(area, kind)
        if now is None or changed(before, now) == 0:
            return now
        before = now


def changed(before, after) -> float:
    """The fraction of pixels in which two looks differ by more than a step of shading."""
    return float((np.abs(before - after).max(axis=-1) > VISIBLE).mean())


def looks_like(before, area=None, kind=None):
    """Condition to wait for: the same place looks the same; always true if no picture can be taken."""
    return lambda: before is None or changed(before, look(area, kind)) < SAME


def looks_unlike(before, area=None, kind=None):
    """Condition to wait for: the same place looks different; always true if no picture can be taken."""
    return lambda: before is None or changed(before, look(area, kind)) > 2 * SAME


def _cut(place) -> list[str]:
    """ImageMagick's arguments for an area's or region's part of the screen."""
    if place is None:
        return []
    # Blender counts from below.
    size = f"{place.width}x{place.height}+{window().x + place.x}+{window().y + place.y}"
    return ["-gravity", "SouthWest", "-crop", size, "+repage"]


# What a user does


def event(kind: str, value: str, x: int, y: int, **keys) -> None:
    window().event_simulate(type=kind, value=value, x=int(x), y=int(y), **keys)


def press(key: str, x=None, y=None, **keys) -> None:
    """Press and release a key, with the pointer in the middle of the view where no place is given."""
    main = region("WINDOW")
    x, y = (main.x + main.width // 2, main.y + main.height // 2) if x is None else (x, y)
    event("MOUSEMOVE", "NOTHING", x, y)
    event(key, "PRESS", x, y, **keys)
    event(key, "RELEASE", x, y, **keys)


def click(place) -> None:
    press("LEFTMOUSE", *place)


def open_tab(category: str):
    """Generator: click on the sidebar's tabs from the top until the wanted one is open."""
    ui = region("UI")
    for y in range(ui.y + ui.height - 20, ui.y, -25):
        click((ui.x + ui.width - 8, y))
        yield after(4 * STEP_SECONDS)
        if region("UI").active_panel_category == category:
            return
    raise AssertionError(f"the sidebar has no tab {category}")


def find_button(code: str, across=0.45):
    """Generator: the place of the sidebar's button that runs ``code``, found by moving the pointer over it.

    across: how far to the right in the sidebar to look, as a share of its width. The sidebar is scrolled down where
    the button is not in it.
    """
    main, ui = region("WINDOW"), region("UI")
    for _ in range(SCREENFULS):
        # The button that was pressed last counts as the one under the pointer until that has been elsewhere.
        event("MOUSEMOVE", "NOTHING", main.x + main.width // 3, main.y + main.height // 3)
        yield after(0.3)
        for y in range(ui.y + ui.height - 30, ui.y, -8):
            x = ui.x + ui.width * across
            event("MOUSEMOVE", "NOTHING", x, y)
            yield after(2 * STEP_SECONDS)
            with in_window(kind="UI"):
                bpy.context.window_manager.clipboard = ""
                if not bpy.ops.ui.copy_python_command_button.poll():
                    continue
                bpy.ops.ui.copy_python_command_button()
            if code in bpy.context.window_manager.clipboard:
                return int(x), y
        for _ in range(10):
            press("WHEELDOWNMOUSE", ui.x + 5, ui.y + ui.height // 2)
            yield after(STEP_SECONDS)
    raise AssertionError(f"no button runs {code}")


def press_button(code: str, across=0.45):
    """Generator: click on the button that ``find_button`` finds; returns its place."""
    place = yield from find_button(code, across)
    click(place)
    return place


def undo():
    """Generator: one step back."""
    with in_window():
        bpy.ops.ed.undo()
    yield after(0.5)


# Beginnings


def switch_on() -> None:
    """Enable the extension like its switch in the preferences if it is installed, else the source tree's."""
    if skinning_tools.__name__ == INSTALLED:
        bpy.ops.preferences.addon_enable(module=INSTALLED)
    else:
        skinning_tools.register()


def switch_off() -> None:
    if skinning_tools.__name__ == INSTALLED:
        bpy.ops.preferences.addon_disable(module=INSTALLED)
    else:
        skinning_tools.unregister()


def enable(*opened) -> None:
    """Enable the extension with only these panels and their parents open, so that their buttons are in the window."""
    registered = [cls for feature in FEATURES for module in feature.panels for cls in module.registry]
    panels = {cls.__name__: cls for cls in (*groups.registry, *registered) if issubclass(cls, bpy.types.Panel)}
    shown = list(opened)
    for cls in shown:
        shown += [panels[cls.bl_parent_id]] if hasattr(cls, "bl_parent_id") else []
    for cls in panels.values():
        cls.bl_options = set() if cls in shown else {"DEFAULT_CLOSED"}
    switch_on()
    bpy.context.preferences.view.show_splash = False


def new_file():
    """Generator: an empty file, for the scenes of the tests without a window."""
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    yield after(0.5)
    # The window that operators run in must stay.
    scenes.empty_scene = lambda: None


def begin_with(make, *given, **settings):
    """Generator: a new file, seen from the front, with what ``make(*given, **settings)`` makes; undo goes back to that.

    Returns what ``make`` returns.
    """
    yield from new_file()
    with in_window():
        made = make(*given, **settings)
        bpy.ops.ed.undo_push(message="Scene")
    look_from_front()
    yield after(0.5)
    return made


def look_from_front() -> None:
    """All of the scene in every view, and the sidebar open."""
    for area in views():
        with in_window(area):
            bpy.context.space_data.show_region_ui = True
            bpy.ops.view3d.view_axis(type="FRONT")
            bpy.ops.view3d.view_all()


# Conditions to wait for


def after(seconds: float):
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


def idle() -> bool:
    return background.running_job() is None


# The run


def run(name: str) -> None:
    """Run the test module ``name``, then end Blender with the outcome written."""
    try:
        require_dependencies()
        if os.environ.get("CI") and not can_take_pictures():
            end("Blender's process cannot take pictures: what the window shows would be compared with nothing")
        drive(importlib.import_module(name).tests(), name)
    except MissingDependency as error:
        end(str(error).replace(REMEDY, "Name a folder that has it for this Python in PYTHONPATH"))
    except Exception:  # noqa: BLE001 - the window must close, and the runner must notice
        end(traceback.format_exc())


def drive(tests, name: str) -> None:
    """Go through the generator ``tests`` of a module by a timer."""
    waiting, since = None, 0.0

    def step():
        nonlocal waiting, since
        try:
            if waiting is not None and not waiting():
                if time.perf_counter() - since > PATIENCE_SECONDS:
                    # Into the test, so that the report has the line that waits.
                    tests.throw(TimeoutError("what the test waits for did not come"))
                return STEP_SECONDS
            waiting, since = next(tests), time.perf_counter()
        except StopIteration:
            end()
        except Exception:  # noqa: BLE001 - as above
            picture(f"failure_{name}")
            end(traceback.format_exc())
        return STEP_SECONDS

    bpy.app.timers.register(step, first_interval=1.0, persistent=True)


def end(failure="") -> None:
    OUTCOME.write_text(json.dumps({"passed": passed, "failure": failure}))
    sys.stdout.flush()
    os._exit(1 if failure else 0)
