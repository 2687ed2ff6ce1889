# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the extension enabled and disabled many times during its work, with nothing left; a file
saved and loaded again. Started by run.py."""

import sys
import threading

import bpy
from driver import (
    after,
    begin_with,
    enable,
    event,
    idle,
    in_window,
    look_from_front,
    looks_like,
    looks_unlike,
    new_file,
    open_tab,
    passes,
    picture,
    region,
    settled,
    switch_off,
    switch_on,
    views,
)

import skinning_tools
from skinning_tools.blender import background
from skinning_tools.features.convert.panel import SKINNING_PT_convert_animation
from tests.blender import moving_meshes, preview_samples, scenes

TIMES = 20
CATEGORY = "Skinning"


def handlers() -> dict[str, list[str]]:
    lists = {name: getattr(bpy.app.handlers, name) for name in dir(bpy.app.handlers)}
    return {name: [repr(entry) for entry in entries] for name, entries in lists.items() if isinstance(entries, list)}


def properties() -> dict[str, set[str]]:
    """Of every type that Blender knows: Object, Scene, WindowManager and the rest."""
    types = {name: getattr(bpy.types, name, None) for name in dir(bpy.types)}
    return {name: set(found.bl_rna.properties.keys()) for name, found in types.items() if hasattr(found, "bl_rna")}


def operators() -> set[str]:
    return {f"{module}.{name}" for module in dir(bpy.ops) for name in dir(getattr(bpy.ops, module))}


def classes() -> set[str]:
    """Registered subclasses of what an extension registers."""
    kinds = (bpy.types.Panel, bpy.types.Menu, bpy.types.UIList, bpy.types.Operator, bpy.types.PropertyGroup)
    found = {cls for kind in kinds for cls in kind.__subclasses__() if "bl_rna" in vars(cls)}
    return {f"{cls.__module__}.{cls.__name__}" for cls in found}


def menu_entries() -> dict[str, int]:
    """The number of draw functions of each menu, header and panel with more than its own."""
    types = {name: getattr(bpy.types, name, None) for name in dir(bpy.types)}
    draws = {name: getattr(found, "draw", None) for name, found in types.items()}
    counts = {name: len(draw._draw_funcs) for name, draw in draws.items() if hasattr(draw, "_draw_funcs")}
    # Blender keeps such a list once it has been made.
    return {name: count for name, count in counts.items() if count > 1}


def keys() -> dict[str, list[str]]:
    configurations = bpy.context.window_manager.keyconfigs
    return {
        f"{kind} {keymap.name}": sorted(item.idname for item in keymap.keymap_items)
        for kind in ("addon", "user")
        for keymap in getattr(configurations, kind).keymaps
        if keymap.keymap_items
    }


def timers() -> set[str]:
    """Blender does not list timers, but says whether a function is one."""
    name = skinning_tools.__name__
    modules = [module for key, module in list(sys.modules.items()) if key == name or key.startswith(f"{name}.")]
    functions = {value for module in modules for value in vars(module).values() if callable(value)}
    return {function.__qualname__ for function in functions if bpy.app.timers.is_registered(function)}


def traces() -> dict:
    """Everything that an extension can leave in Blender and that Blender can list."""
    return {
        "handlers": handlers(),
        "properties": properties(),
        "operators": operators(),
        "classes": classes(),
        "menu entries": menu_entries(),
        "keys": keys(),
        "timers": timers(),
        "driver functions": sorted(bpy.app.driver_namespace),
        "threads": sorted(thread.name for thread in threading.enumerate() if thread is not threading.main_thread()),
    }


def differences(before: dict, now: dict) -> str:
    """The changes of ``traces`` as text; "" if nothing has changed."""
    changed = []
    for what, value in now.items():
        old = before[what]
        if isinstance(value, dict):
            changed += [f"{what} of {name}" for name in value.keys() | old.keys() if value.get(name) != old.get(name)]
        elif value != old:
            changed.append(f"{what}: {set(value) ^ set(old)}")
    return "; ".join(sorted(changed))


def no_thread() -> bool:
    return not any("skinning_tools" in thread.name for thread in threading.enumerate())


# What is under way when the extension is switched off


def nothing():
    yield after(0.1)


def preview():
    with in_window():
        bpy.ops.skinning.preview(mode="CRS")
    yield after(0.4)


def weight_view():
    with in_window():
        bpy.ops.skinning.show_weights(mode="BONES")
    yield after(0.4)


def job():
    with in_window():
        bpy.ops.skinning.convert_animation("INVOKE_DEFAULT", bone_count=8, iterations=100000)
    yield lambda: (running := background.running_job()) is not None and running.stage.startswith("Solving")


def baked_tube():
    """A rigged and baked tube, which moves."""
    tube = preview_samples.posed_tube()
    bpy.context.scene.frame_set(2)
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.scene.frame_set(1)
    return tube


def tests():
    bpy.context.preferences.view.show_splash = False
    yield after(0.5)
    before = traces()
    assert not any(name.startswith(skinning_tools.__name__) for name in before["classes"])
    enable(SKINNING_PT_convert_animation)
    # Blender takes the keys of add-ons over into the user's when it has time.
    yield after(0.5)
    # The comparison itself must work.
    on = traces()
    for what in ("handlers", "properties", "operators", "classes", "menu entries", "keys"):
        assert differences({what: before[what]}, {what: on[what]}), what
    yield from begin_with(baked_tube)
    yield from open_tab(CATEGORY)
    sidebar = yield from settled(views()[0], "UI")
    picture("lifecycle_1_on")

    under_way = (nothing, preview, weight_view, job)
    for number in range(TIMES):
        do = under_way[number % len(under_way)]
        yield from do()
        switch_off()
        # Timers run once more, and a worker stops at its next report.
        yield no_thread
        yield after(0.3)
        left = differences(before, traces())
        assert not left, f"time {number + 1}, {do.__name__}: {left}"
        assert idle()
        if number == 0:
            yield looks_unlike(sidebar, views()[0], "UI")
            picture("lifecycle_2_off")
        switch_on()
        yield after(0.2)
        again = differences(on, traces())
        assert not again, f"time {number + 1}, {do.__name__}: {again}"
    passes(f"{TIMES} times off and on: the same handlers, timers, properties, classes, operators, keys and menus")
    with in_window():
        # The colors are the mesh's, and stay as they would in the file.
        bpy.ops.skinning.show_weights(mode="OFF")
    yield from open_tab(CATEGORY)
    yield after(1.0)
    picture("lifecycle_3_on_again")
    yield looks_like(sidebar, views()[0], "UI")
    passes("the sidebar looks as it did at first")

    yield from reloaded()


def reloaded():
    """Generator: a conversion's file is saved, changed, and read again."""
    yield from new_file()
    with in_window():
        moving_meshes.waving_grid()
        bpy.ops.skinning.convert_animation(bone_count=5, iterations=5)
        bpy.context.scene.skinning_conversion.bone_count = 17
        bpy.context.view_layer.objects.active = bpy.data.objects["Flag_skinned"]
        # The keyframes' values, not those that the scene was made with.
        bpy.context.scene.frame_set(2)
    look_from_front()
    path = bpy.app.tempdir + "reloaded.blend"
    yield from open_tab(CATEGORY)
    with in_window():
        bpy.ops.wm.save_as_mainfile(filepath=path)
    main = region("WINDOW")
    event("MOUSEMOVE", "NOTHING", main.x + 20, main.y + 20)
    view = yield from settled(views()[0])
    picture("lifecycle_4_saved")
    saved, at_rest = scenes.data_blocks(), traces()
    positions = scenes.played(bpy.data.objects["Flag_skinned"], range(1, 6))
    bpy.data.objects.remove(bpy.data.objects["Flag_skinned"])
    yield after(0.5)
    yield looks_unlike(view, views()[0])
    with in_window():
        bpy.ops.wm.open_mainfile(filepath=path)
    yield after(1.5)
    event("MOUSEMOVE", "NOTHING", main.x + 20, main.y + 20)
    yield after(0.5)
    assert scenes.data_blocks() == saved
    assert (scenes.played(bpy.data.objects["Flag_skinned"], range(1, 6)) == positions).all()
    assert bpy.context.scene.skinning_conversion.bone_count == 17
    assert not differences(at_rest, traces()), differences(at_rest, traces())
    picture("lifecycle_5_reloaded")
    yield looks_like(view, views()[0])
    passes("a file read again has result, settings and view as they were saved")
