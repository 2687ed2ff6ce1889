# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test inside Blender's window needs: the window's parts, events, pictures, and Blender's time in between.

A test is a generator: each `yield` gives Blender back until its condition holds, as a user waits for the screen.
Started by run.py, which gives the path of the outcome file and the folder for pictures after `--`.
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

OUTCOME, PICTURES = map(Path, sys.argv[sys.argv.index("--") + 1 :])
STEP_SECONDS = 0.02
PATIENCE_SECONDS = 60.0

passed: list[str] = []


def passes(what: str) -> None:
    passed.append(what)


def window():
    return bpy.context.window_manager.windows[0]


def views() -> list:
    return [area for area in window().screen.areas if area.type == "VIEW_3D"]


def region(kind: str, area=None):
    return next(region for region in (area or views()[0]).regions if region.type == kind)


def in_window(area=None, kind="WINDOW"):
    """Blender's timers have no window of their own."""
    area = area or views()[0]
    return bpy.context.temp_override(window=window(), area=area, region=region(kind, area))


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

    across: how far to the right in the sidebar to look, as a share of its width.
    """
    ui = region("UI")
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
    raise AssertionError(f"no button runs {code}")


def picture(name: str) -> None:
    if shutil.which("import") and os.environ.get("DISPLAY"):
        subprocess.run(["import", "-window", "root", str(PICTURES / f"{name}.png")], check=True)


def after(seconds: float):
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


def drive(tests) -> None:
    """Run the generator ``tests``, then end Blender with the outcome written."""
    waiting, since = None, 0.0

    def finish(failure: str) -> None:
        if failure:
            picture("failure")
        OUTCOME.write_text(json.dumps({"passed": passed, "failure": failure}))
        sys.stdout.flush()
        os._exit(1 if failure else 0)

    def step():
        nonlocal waiting, since
        try:
            if waiting is not None and not waiting():
                if time.perf_counter() - since > PATIENCE_SECONDS:
                    raise TimeoutError("what the test waits for did not come")
                return STEP_SECONDS
            waiting, since = next(tests), time.perf_counter()
        except StopIteration:
            finish("")
        except Exception:  # noqa: BLE001 - whatever it is, the window must close and the runner be told
            where = tests.gi_frame.f_lineno if tests.gi_frame else "?"
            finish(f"line {where}: {traceback.format_exc()}")
        return STEP_SECONDS

    bpy.app.timers.register(step, first_interval=1.0, persistent=True)
