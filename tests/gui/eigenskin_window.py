# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: pose joints, read examples, build the corrections, look at them, undo. Started by run.py."""

import bpy
import numpy as np
from driver import (
    after,
    begin_with,
    enable,
    idle,
    in_window,
    open_tab,
    passes,
    picture,
    press_button,
    undo,
)

from skinning_tools.features.eigenskin.panel import SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_result
from skinning_tools.features.eigenskin.record import eigenskin_record, own_keys
from tests.blender import eigenskin_scenes, scenes


def limb():
    return bpy.data.objects["Limb"]


def rig():
    return bpy.data.objects["Limb rig"]


def tests():
    enable(SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_result)
    yield from begin_with(eigenskin_scenes.limb_in_pose_mode)
    yield from open_tab("Skinning")
    yield after(0.5)
    picture("eigenskin_1_empty")
    with in_window():
        bpy.ops.skinning.eigenskin_pose_joints(frames_per_pose=2)
        bpy.ops.ed.undo_push(message="Posed")
    yield after(0.3)
    yield from press_button("skinning.eigenskin_add_frames", across=0.75)
    yield lambda: idle() and len(rig().skinning_eigenskin.examples) > 0
    yield after(0.5)
    count = len(rig().skinning_eigenskin.examples)
    picture("eigenskin_2_examples")
    passes(f"posed joints become {count} examples")

    yield from press_button("skinning.build_eigenskin")
    yield lambda: idle() and eigenskin_record(limb()) is not None
    yield after(0.5)
    keys = len(own_keys(limb().data, eigenskin_record(limb())))
    assert not limb().modifiers["Armature"].use_deform_preserve_volume
    picture("eigenskin_3_built")
    passes(f"the button builds {keys} shape keys")

    eigenskin_scenes.pose(rig(), [("lower", "X", 80)])
    rig().animation_data.action = None
    eigenskin_scenes.pose(rig(), [("lower", "X", 80)])
    yield after(0.3)
    corrected = scenes.evaluated_positions(limb())
    with in_window():
        bpy.ops.skinning.mute_eigenskin(mute=True)
    yield after(0.3)
    plain = scenes.evaluated_positions(limb())
    assert np.abs(corrected - plain).max() > 0.05
    picture("eigenskin_4_muted")
    with in_window():
        bpy.ops.skinning.mute_eigenskin(mute=False)
    yield from press_button("shown='BEFORE'", across=0.3)
    yield after(0.3)
    picture("eigenskin_5_heat_before")
    yield from press_button("shown='AFTER'", across=0.75)
    yield after(0.3)
    picture("eigenskin_6_heat_after")
    passes("corrections are muted, and their error is shown in color")

    with in_window():
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.ed.undo_push(message="Looked")
        bpy.ops.skinning.remove_eigenskin("INVOKE_DEFAULT")
        bpy.ops.ed.undo_push(message="Removed")
    assert limb().data.shape_keys is None
    yield from undo()
    assert len(own_keys(limb().data, eigenskin_record(limb()))) == keys
    passes("removing is undone")
