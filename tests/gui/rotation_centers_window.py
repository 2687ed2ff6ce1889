# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: bake centers of rotation, watch, cancel, undo, add and remove the modifier.

Started by run.py.
"""

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
    press,
    press_button,
    undo,
    views,
)

from skinning_tools.blender import vertex_groups
from skinning_tools.blender.center_records import native_modifier
from skinning_tools.features.centers import bake_state as bake_state_of_panel
from skinning_tools.features.centers.bake_state import is_being_checked, shown_bake_state
from skinning_tools.features.centers.baking import FRESH, MISSING, STALE, bake_record, bake_state
from skinning_tools.features.centers.panel import SKINNING_PT_rotation_centers
from tests.blender import scenes, skinned_meshes


def tube():
    return bpy.data.objects["Arm"]


def _edited_as_a_large_mesh():
    """Generator: read in many small parts, with pauses in which any machine can redraw, the panel notices an edit and
    its undo."""
    of_state = {"_LONGEST_WAIT": -1.0, "_TICK_SECONDS": 0.0, "_PAUSE_SECONDS": 0.05}
    kept = {name: getattr(bake_state_of_panel, name) for name in of_state}, vertex_groups._PART
    vars(bake_state_of_panel).update(of_state)
    vertex_groups._PART = 20
    drawn = []
    handle = bpy.types.SpaceView3D.draw_handler_add(
        lambda: drawn.append(is_being_checked(tube())), (), "WINDOW", "POST_PIXEL"
    )
    with in_window():
        tube().data.vertices[0].co.x += 0.01
        tube().data.update()
        bpy.ops.ed.undo_push(message="Edit")
    yield _redrawn_until(lambda: True in drawn)
    yield _redrawn_until(lambda: shown_bake_state(tube()) == STALE)
    picture("centers_2_stale")
    yield from undo()
    yield _redrawn_until(lambda: shown_bake_state(tube()) == FRESH)
    bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")
    vars(bake_state_of_panel).update(kept[0])
    vertex_groups._PART = kept[1]


def _redrawn_until(condition):
    """The condition, with a redraw asked for each time that it does not hold."""

    def holds() -> bool:
        views()[0].tag_redraw()
        return condition()

    return holds


def tests():
    enable(SKINNING_PT_rotation_centers)
    yield from begin_with(skinned_meshes.rigged_tube)
    yield from open_tab("Skinning")
    yield after(0.3)
    picture("centers_1_missing")
    settings = bpy.context.scene.skinning_rotation_centers
    settings.sigma = 0.25
    yield from press_button("skinning.bake_rotation_centers")
    yield lambda: idle() and bake_state(tube()) == FRESH
    assert abs(bake_record(tube()).sigma - 0.25) < 1e-6
    yield after(0.3)
    picture("centers_2_fresh")
    passes("the panel's button bakes with the panel's settings")

    yield from undo()
    assert bake_state(tube()) == MISSING
    with in_window():
        bpy.ops.ed.redo()
    yield after(0.3)
    assert bake_state(tube()) == FRESH
    passes("a bake is one undo step")

    yield from _edited_as_a_large_mesh()
    passes("a large mesh is read in parts after an edit, with redraws in between")

    yield from press_button("add_center_of_rotation_modifier")
    yield lambda: native_modifier(tube()) is not None
    bpy.context.scene.frame_set(4)
    yield after(0.3)
    picture("centers_3_modifier")
    bpy.context.view_layer.update()
    difference = np.abs(scenes.evaluated_positions(tube()) - skinned_meshes.expected(tube())).max()
    assert difference < 1e-5 * skinned_meshes.diagonal(tube()), difference
    passes(f"the button adds the modifier, {difference:.1e} from core")
    yield from press_button("remove_center_of_rotation_modifier")
    yield lambda: native_modifier(tube()) is None
    assert tube().modifiers["Armature"].show_viewport

    tube().vertex_groups["Bone 1"].add(range(300, 400), 0.1, "REPLACE")
    tube().data.update()
    bpy.context.view_layer.update()
    yield after(0.5)
    assert shown_bake_state(tube()) == STALE
    picture("centers_4_stale")
    passes("the panel says that the bake is older than the weights")

    before = set(bpy.data.objects.keys())
    with in_window():
        bpy.ops.skinning.bake_rotation_centers()
        bpy.context.scene.frame_end = 8
        bpy.ops.skinning.crs_to_shape_keys("INVOKE_DEFAULT")
    yield after(0.2)
    yield lambda: idle() and len(bpy.data.scenes) == 1
    assert set(bpy.data.objects.keys()) - before == {"Arm_crs"}
    passes("shape keys are made while Blender goes on")

    yield from begin_with(skinned_meshes.rigged_tube, bone_count=60, rings=1200, segments=40, influences=3)
    views()[0].tag_redraw()
    yield after(1.0)
    with in_window():
        bpy.ops.skinning.bake_rotation_centers("INVOKE_DEFAULT", subdivision_epsilon=0.002)
    yield lambda: not idle()
    yield after(0.5)
    picture("centers_5_progress")
    assert not idle()
    press("ESC")
    yield idle
    assert bake_state(tube()) == MISSING
    assert "rotation_center" not in tube().data.attributes
    passes("Esc cancels, and nothing is left")
