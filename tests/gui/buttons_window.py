# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the buttons that the other tests do not press, of centers of rotation and of EigenSkin.
Started by run.py."""

import bpy
from driver import (
    after,
    begin_with,
    enable,
    idle,
    in_window,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    switch_off,
)

from skinning_tools.features.centers.baking import FRESH
from skinning_tools.features.centers.export import export_state
from skinning_tools.features.centers.panel import SKINNING_PT_export_centers, SKINNING_PT_rotation_centers
from skinning_tools.features.eigenskin.panel import SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_result
from skinning_tools.features.eigenskin.record import eigenskin_record
from tests.blender import eigenskin_scenes, skinned_meshes


def baked_tube() -> None:
    """A tube with centers of rotation."""
    skinned_meshes.rigged_tube()
    bpy.context.scene.frame_end = 8
    bpy.ops.skinning.bake_rotation_centers()


def keys(owner) -> int:
    """Of the shape keys' own action, frames; 0 without one."""
    animation = owner.data.shape_keys.animation_data
    return 0 if animation is None or animation.action is None else len(animation.action.frame_range)


def tests():
    enable(SKINNING_PT_rotation_centers, SKINNING_PT_export_centers)
    yield from begin_with(baked_tube)
    tube = bpy.data.objects["Arm"]
    yield from open_tab("Skinning")
    yield from press_button("skinning.prepare_centers_for_export")
    yield lambda: idle() and export_state(tube) == FRESH
    picture("buttons_1_export")
    passes("the button prepares centers for export")

    switch_off()
    enable(SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_result)
    limb, rig = yield from begin_with(eigenskin_scenes.limb_in_pose_mode)
    yield from open_tab("Skinning")
    place = yield from press_button("skinning.eigenskin_pose_joints", across=0.25)
    yield after(0.5)
    picture("buttons_2_dialog")
    press("RET", *place)
    yield lambda: rig.animation_data is not None and rig.animation_data.action is not None
    passes("the button asks how to pose the joints, and Enter does it")
    with in_window():
        bpy.ops.skinning.eigenskin_add_frames()
        bpy.ops.skinning.build_eigenskin()
    yield after(0.5)
    assert eigenskin_record(limb) is not None
    yield from press_button("skinning.bake_eigenskin")
    yield lambda: idle() and keys(limb) > 0
    picture("buttons_3_baked")
    yield from press_button("skinning.unbake_eigenskin")
    yield lambda: idle() and keys(limb) == 0
    passes("buttons bake the corrections to keyframes and take them away")
    yield from press_button("skinning.remove_eigenskin", across=0.75)
    yield lambda: eigenskin_record(limb) is None
    passes("the button removes the corrections")
