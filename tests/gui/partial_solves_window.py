# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: a rig without weights gets them from a target, then motion, then helper bones; each one undo
step. Started by run.py."""

import bpy
import numpy as np
from driver import (
    after,
    enable,
    idle,
    in_window,
    look_from_front,
    new_file,
    open_tab,
    passes,
    picture,
    press,
    press_button,
)

from skinning_tools.panels.partial_solves import SKINNING_PT_partial_solves
from skinning_tools.scene.partial_steps import FIGURES_PROPERTY, PartialFigures
from skinning_tools.scene.records import read_record
from tests.blender import scenes
from tests.blender.partial_scenes import BONES, FRAMES, error, moving_copy, select, tube


def arm():
    return bpy.data.objects["Arm"]


def rig():
    return bpy.data.objects["Rig"]


def figures():
    return read_record(arm(), FIGURES_PROPERTY, PartialFigures)


def new_scene():
    """Generator: the tube without weights, and a target that jiggles besides; returns the target's positions."""
    yield from new_file()
    with in_window():
        ob, _ = tube()
        rest = np.array([vertex.co for vertex in ob.data.vertices])
        wanted = scenes.played(ob, FRAMES)
        for row, shape in enumerate(wanted):
            near = np.exp(-((rest[:, 0] - 1.6) ** 2) / 0.2)
            shape[:, 2] += (0.25 * np.sin(0.9 * row) * near).astype(np.float32)
        target = moving_copy(ob, wanted)
        ob.vertex_groups.clear()
        select(target, ob)
        settings = bpy.context.scene.skinning_partial
        settings.weights.smoothness = 0.1
        bpy.ops.ed.undo_push(message="Tube")
    look_from_front()
    yield after(0.5)
    return wanted


def undo():
    """Generator: one step back."""
    with in_window():
        bpy.ops.ed.undo()
    yield after(0.5)


def tests():
    enable(SKINNING_PT_partial_solves)
    wanted = yield from new_scene()
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
    yield from undo()
    assert len(rig().data.bones) == 5
    assert set(arm().vertex_groups.keys()) == set(BONES)
    passes("helper bones are added, and one undo takes them back")
