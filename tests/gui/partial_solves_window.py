# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: a rig without weights gets them from a target, then motion, then helper bones, which a
button removes again; each is one undo step. Started by run.py."""

import bpy
import numpy as np
from driver import (
    after,
    begin_with,
    click,
    enable,
    find_button,
    idle,
    in_window,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    undo,
)

from skinning_tools.blender.records import read_record
from skinning_tools.features.partial.outcome import FIGURES_PROPERTY, PartialFigures
from skinning_tools.features.partial.panel import SKINNING_PT_partial_solves
from tests.blender import scenes
from tests.blender.partial_scenes import BONES, FRAMES, error, moving_copy, select, tube

# From the button that solves weights down to the header of what adds helper bones, at a scale of one.
HELPERS_BELOW = 90


def arm():
    return bpy.data.objects["Arm"]


def rig():
    return bpy.data.objects["Rig"]


def figures():
    return read_record(arm(), FIGURES_PROPERTY, PartialFigures)


def jiggling_tube() -> np.ndarray:
    """The tube without weights, and a target that also jiggles; returns the target's positions."""
    ob, _ = tube()
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    wanted = scenes.played(ob, FRAMES)
    for row, shape in enumerate(wanted):
        near = np.exp(-((rest[:, 0] - 1.6) ** 2) / 0.2)
        shape[:, 2] += (0.25 * np.sin(0.9 * row) * near).astype(np.float32)
    target = moving_copy(ob, wanted)
    ob.vertex_groups.clear()
    select(target, ob)
    bpy.context.scene.skinning_partial.weights.smoothness = 0.1
    return wanted


def tests():
    enable(SKINNING_PT_partial_solves)
    wanted = yield from begin_with(jiggling_tube)
    yield from open_tab("Skinning")
    yield after(0.5)
    picture("partial_1_start")
    yield from press_button("skinning.solve_weights")
    yield lambda: idle() and figures() is not None
    yield after(0.5)
    picture("partial_2_weights")
    assert set(arm().vertex_groups.keys()) == set(BONES)
    assert figures().title == "Weights"
    solved = error(arm(), wanted)
    yield from undo()
    assert not arm().vertex_groups
    passes("weights are solved for, and one undo takes them back")

    with in_window():
        bpy.ops.skinning.solve_weights()
        bpy.ops.ed.undo_push(message="Weights")
    yield after(0.3)
    action = rig().animation_data.action.name
    with in_window():
        assert bpy.ops.skinning.solve_transforms("INVOKE_DEFAULT", rotation_only=True) == {"RUNNING_MODAL"}
    yield lambda: idle() and figures().title == "Motion"
    yield after(0.5)
    picture("partial_3_motion")
    assert rig().animation_data.action.name == f"{action}_solved"
    yield from undo()
    assert rig().animation_data.action.name == action
    passes("motion is solved for as a job, and one undo takes it back")

    with in_window():
        assert bpy.ops.skinning.add_helper_bones("INVOKE_DEFAULT", bone_count=2) == {"RUNNING_MODAL"}
    press("ESC")
    yield idle
    yield after(0.5)
    assert len(rig().data.bones) == 5
    assert rig().animation_data.action.name == action
    passes("Esc leaves nothing of helper bones")

    with in_window():
        assert bpy.ops.skinning.add_helper_bones("INVOKE_DEFAULT", bone_count=2) == {"RUNNING_MODAL"}
    yield lambda: idle() and figures().title == "Helper Bones"
    yield after(0.5)
    picture("partial_4_helpers")
    assert len(rig().data.bones) == 7
    assert error(arm(), wanted) < 0.6 * solved
    passes("helper bones are added")

    x, y = yield from find_button("skinning.solve_weights")
    click((x, y - HELPERS_BELOW * bpy.context.preferences.system.ui_scale))
    yield after(0.5)
    picture("partial_5_opened")
    yield from press_button("skinning.remove_helper_bones")
    yield lambda: len(rig().data.bones) == 5
    yield after(0.5)
    picture("partial_6_removed")
    assert set(arm().vertex_groups.keys()) == set(BONES)
    assert abs(error(arm(), wanted) - solved) < 1e-3 * solved
    yield from undo()
    assert len(rig().data.bones) == 7
    assert error(arm(), wanted) < 0.6 * solved
    passes("a button takes helper bones away, and one undo brings them back")
    yield from undo()
    assert len(rig().data.bones) == 5
    assert set(arm().vertex_groups.keys()) == set(BONES)
    passes("one more undo takes helper bones back")
