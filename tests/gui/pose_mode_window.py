# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: an armature of four meshes in Pose Mode; its panels have a field for the mesh to work on.

Started by run.py.
"""

import bpy
from driver import after, begin_with, enable, idle, open_tab, passes, picture, press_button, switch_off

from skinning_tools.features.centers.baking import FRESH, bake_record, bake_state
from skinning_tools.features.centers.panel import SKINNING_PT_rotation_centers
from skinning_tools.features.eigenskin.panel import SKINNING_PT_eigenskin
from skinning_tools.features.preview.panel import SKINNING_PT_preview
from skinning_tools.features.weights.panel import SKINNING_PT_weights
from tests.blender import scenes, skinned_meshes

PARTS = 4


def four_meshes():
    """The armature in Pose Mode, posed, which deforms four tubes side by side."""
    ob, rig = skinned_meshes.rigged_tube()
    for index in range(1, PARTS):
        other = ob.copy()
        other.data, other.name = ob.data.copy(), f"Part {index}"
        other.location.z += index
        scenes.link(other)
    for each in bpy.context.view_layer.objects:
        each.select_set(each == rig)
    bpy.context.view_layer.objects.active = rig
    bpy.context.scene.frame_set(4)
    bpy.ops.object.mode_set(mode="POSE")


def meshes():
    return [ob for ob in bpy.data.objects if ob.type == "MESH"]


def tests():
    enable(SKINNING_PT_rotation_centers)
    yield from begin_with(four_meshes)
    yield from open_tab("Skinning")
    yield after(0.5)
    picture("pose_mode_1_which")
    bpy.context.scene.skinning_mesh = "Part 2"
    yield after(0.5)
    picture("pose_mode_2_chosen")
    yield from press_button("skinning.bake_rotation_centers")
    yield lambda: idle() and bake_state(bpy.data.objects["Part 2"]) == FRESH
    assert [ob.name for ob in meshes() if bake_record(ob) is not None] == ["Part 2"]
    assert bpy.context.mode == "POSE"
    yield after(0.5)
    picture("pose_mode_3_baked")
    passes("in Pose Mode the button bakes the centers of the mesh that the field has")

    yield from press_button("add_center_of_rotation_modifier")
    yield lambda: len(bpy.data.objects["Part 2"].modifiers) == 2
    assert bpy.context.mode == "POSE"
    yield after(0.5)
    picture("pose_mode_4_modifier")
    passes("and the next one plays them")

    yield from begin_anew(SKINNING_PT_weights)
    yield from press_button("skinning.find_unweighted")
    yield lambda: bpy.context.mode == "EDIT_MESH"
    # The last ring of each has no weights.
    assert [ob.data.total_vert_sel for ob in meshes()] == [16] * PARTS
    yield after(0.5)
    picture("pose_mode_5_unweighted")
    passes("vertices without weights are selected in all meshes of the armature")

    for panel, name in ((SKINNING_PT_eigenskin, "eigenskin"), (SKINNING_PT_preview, "preview")):
        yield from begin_anew(panel)
        bpy.context.scene.skinning_mesh = "Part 1"
        yield after(0.5)
        picture(f"pose_mode_6_{name}")
    passes("the other panels have the field, too")


def begin_anew(panel):
    """Generator: the four meshes again, with another panel open."""
    switch_off()
    enable(panel)
    yield from begin_with(four_meshes)
    yield from open_tab("Skinning")
    yield after(0.5)
