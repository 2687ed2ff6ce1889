# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: find, look at and remove rogue weights; smooth, compress and partition; undo. Started by
run.py."""

import bmesh
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
    region,
    undo,
)

from skinning_tools.features.weights.compression import compression_figures
from skinning_tools.features.weights.panel import (
    SKINNING_PT_compress_weights,
    SKINNING_PT_partition_rigid,
    SKINNING_PT_rogue_weights,
    SKINNING_PT_smooth_weights,
    SKINNING_PT_weights,
)
from skinning_tools.features.weights.rigid_parts import partition_figures
from skinning_tools.features.weights.rogue_weights import indices
from tests.blender import binding_scenes, skinned_meshes

ROGUE = {70: 4, 130: 4, 131: 4, 490: 0}


def arm():
    return bpy.data.objects["Arm"]


def weights():
    return binding_scenes.weights_of(arm(), bpy.data.objects["Rig"])


def islands():
    return arm().skinning_rogue_weights.islands


def rogue_tube() -> None:
    """The tube at a frame where its bones are turned, some vertices on bones far away, in Weight Paint."""
    ob, rig = skinned_meshes.rigged_tube(influences=1)
    for vertex, bone in ROGUE.items():
        for group in ob.vertex_groups:
            group.remove([vertex])
        ob.vertex_groups[bone].add([vertex], 1, "REPLACE")
    bpy.context.scene.frame_set(6)
    rig.select_set(False)
    ob.vertex_groups.active_index = 4
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")


def scroll_down():
    """Generator: the sidebar to its end."""
    ui = region("UI")
    for _ in range(20):
        press("WHEELDOWNMOUSE", ui.x + ui.width // 2, ui.y + ui.height // 2)
        yield after(0.05)


def tests():
    enable(
        SKINNING_PT_weights,
        SKINNING_PT_rogue_weights,
        SKINNING_PT_smooth_weights,
        SKINNING_PT_compress_weights,
        SKINNING_PT_partition_rigid,
    )
    yield from begin_with(rogue_tube)
    yield from open_tab("Skinning")
    yield after(0.5)
    picture("weights_1_rogue")
    yield from press_button("skinning.find_rogue_weights")
    yield lambda: idle() and len(islands()) == 3
    yield after(0.5)
    assert arm().mode == "WEIGHT_PAINT"
    picture("weights_2_found")
    passes("rogue weights are listed")

    yield from press_button("skinning.select_rogue_weights(index=0)", across=0.25)
    yield lambda: arm().mode == "EDIT"
    yield after(0.5)
    mesh = bmesh.from_edit_mesh(arm().data)
    assert [vertex.index for vertex in mesh.verts if vertex.select] == indices(islands()[0]).tolist()
    picture("weights_3_selected")
    passes("a row's vertices are selected in Edit Mode")

    yield from press_button("skinning.remove_rogue_weights")
    yield lambda: idle() and not islands()
    yield after(0.5)
    assert arm().mode == "EDIT"
    with in_window():
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.ed.undo_push(message="Looked")
    clean = weights()
    assert not [vertex for vertex, bone in ROGUE.items() if clean[vertex, bone]]
    picture("weights_4_removed")
    passes("checked rogue weights are removed in Edit Mode")

    yield from press_button("skinning.smooth_weights")
    yield lambda: idle() and not np.array_equal(weights(), clean)
    yield after(0.5)
    picture("weights_5_smoothed")
    yield from undo()
    assert np.array_equal(weights(), clean)
    passes("weights are smoothed, and one undo takes it back")

    with in_window():
        bpy.ops.skinning.smooth_weights(iterations=2)
        bpy.ops.ed.undo_push(message="Smooth")
    yield from scroll_down()
    yield from press_button("skinning.compress_weights")
    yield lambda: idle() and compression_figures(arm()) is not None
    yield after(0.5)
    assert compression_figures(arm()).frames == 8
    assert compression_figures(arm()).largest > 0
    assert bpy.context.scene.frame_current == 6
    yield from press_button("skinning.partition_rigid")
    yield lambda: idle() and partition_figures(arm()) is not None
    yield after(0.5)
    picture("weights_6_figures")
    passes("compression and partition show their figures")

    names = set(bpy.data.objects.keys())
    with in_window():
        bpy.context.scene.skinning_weight_tools.partition.output = "OBJECTS"
        bpy.ops.ed.undo_push(message="Output")
    yield from press_button("skinning.partition_rigid")
    yield lambda: idle() and "Arm_skin" in bpy.data.objects
    yield after(0.5)
    assert len(bpy.data.objects) == len(names) + 6
    assert arm().hide_get()
    picture("weights_7_objects")
    yield from undo()
    assert set(bpy.data.objects.keys()) == names
    assert not arm().hide_get()
    passes("rigid parts become objects, and one undo takes them back")
