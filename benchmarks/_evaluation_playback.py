# SPDX-License-Identifier: GPL-3.0-or-later
"""Models of the evaluation's sizes in Blender: seconds of a frame, and memory of buffers, attributes and playing."""

import time

import bpy
import numpy as np
from _evaluation_models import Model  # beside this file
from _evaluation_tables import Content, Played
from _process import peak_memory, present_memory, restart_peak_memory
from _rotation_center_playback import (
    CENTERS,
    LINEAR,
    PIXELS,
    PRESERVE,
    add_native,
    buffer_sizes,
    device,
    frame_seconds,
    show,
    timed_drawing,
    timed_modifiers,
)

import skinning_tools
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.deform import METHODS
from skinning_tools.features.centers import modifier as crs_modifier
from tests.blender import scenes, skinned_meshes

WAYS = {"LBS": LINEAR, "DQS": PRESERVE, "CRS": CENTERS}
# Vertices are most of the work of so small a picture.
FEW_PIXELS = 16, 16
COPIES = 256
_SIZES = {"FLOAT_VECTOR": 12, "BOOLEAN": 1, "FLOAT4X4": 64}


def rigged(model: Model) -> bpy.types.Object:
    """The model with an armature whose bones turn, in an empty scene."""
    scenes.empty_scene()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 8
    rig = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    made = []
    for number, (head, tail, parent) in enumerate(zip(model.heads, model.tails, model.parents, strict=True)):
        bone = rig.data.edit_bones.new(f"Bone {number:02}")
        bone.head, bone.tail = head, tail
        bone.parent = made[parent] if parent >= 0 else None
        made.append(bone)
    names = [bone.name for bone in made]
    bpy.ops.object.mode_set(mode="OBJECT")
    ob = scenes.mesh_object(model.rest, model.triangles.tolist(), name=model.name)
    write_weights(ob, names, model.bones, model.weights)
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    skinned_meshes.animate(rig, degrees=15, stretch=0.0)
    scene.frame_set(1)
    bpy.context.view_layer.objects.active = ob
    return ob


def play(model: Model, repeats: int) -> Played:
    skinning_tools.register()
    renderer = device()
    ob = rigged(model)
    seconds = timed_modifiers(ob, repeats, time.process_time)
    ways = {"modifiers": [seconds[way] for way in WAYS.values() if way in seconds]}
    if renderer is not None:
        show(ob, LINEAR)
        if crs_modifier.reason_not_available():
            bpy.ops.skinning.bake_rotation_centers()
        for pixels in (PIXELS, FEW_PIXELS):
            drawn, _, _ = timed_drawing(ob, pixels, max(repeats // 10, 1), time.process_time, alone=True)
            ways[f"shader, {pixels[0]} × {pixels[1]}"] = [drawn[method] for method in METHODS]
    return Played(f"Blender {bpy.app.version_string}", renderer, ways)


def content(model: Model) -> Content:
    skinning_tools.register()
    renderer = device()
    ob = rigged(model)
    before = _attribute_bytes(ob.data)
    if crs_modifier.reason_not_available():
        bpy.ops.skinning.bake_rotation_centers()
    else:
        add_native(ob)
    added = _attribute_bytes(ob.data) - before
    preview = ""
    if renderer is not None:
        show(ob, LINEAR)
        _, data, matrices = timed_drawing(ob, FEW_PIXELS, 1)
        preview = buffer_sizes(data, matrices)
    return Content(renderer, added, preview)


def growth_of_buffers(model: Model, per_bone: int, per_vertex: int) -> float | None:
    """Kilobytes by which this process grows for each copy of buffers of so many floats for each bone and vertex, on the
    device; None without one. In a process of its own, which has no memory to use again."""
    if device() is None:
        return None
    import gpu

    texels = np.random.default_rng(0).random((len(model.heads) * per_bone // 4, 4), np.float32)
    points = np.random.default_rng(1).random((len(model.rest), 3), np.float32)
    data = gpu.types.Buffer("FLOAT", texels.size, texels.ravel())
    layout = gpu.types.GPUVertFormat()
    layout.attr_add(id="pos", comp_type="F32", len=3, fetch_mode="FLOAT")
    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    target = gpu.types.GPUOffScreen(*FEW_PIXELS, format="RGBA8")
    kept: list = []
    with target.bind():
        picture = gpu.state.active_framebuffer_get()
        sizes = []
        # The first ones make the driver's own tables.
        for count in (COPIES // 4, COPIES):
            for _ in range(count):
                kept.append(gpu.types.GPUTexture((len(texels), 1), format="RGBA32F", data=data))
                if per_vertex:
                    buffer = gpu.types.GPUVertBuf(layout, len(points))
                    buffer.attr_fill("pos", points)
                    kept.append(gpu.types.GPUBatch(type="POINTS", buf=buffer))
                    # Drawing sends the buffer to the device.
                    kept[-1].draw(shader)
                # Reading waits for the drawing, which then keeps no memory of its own.
                picture.read_color(0, 0, 1, 1, 4, 0, "FLOAT")
            sizes.append(present_memory())
    target.free()
    return 1000 * (sizes[1] - sizes[0]) / COPIES


def growth_of_playing(model: Model, method: str) -> float | None:
    """Megabytes by which this process grew at most over some frames; None if this Blender has not the modifier."""
    skinning_tools.register()
    ob = rigged(model)
    if method == "CRS":
        if crs_modifier.reason_not_available():
            return None
        add_native(ob)
    show(ob, "")
    frame_seconds(ob, 0)
    before = restart_peak_memory()
    show(ob, WAYS[method])
    for turn in range(3):
        frame_seconds(ob, turn)
    return peak_memory() - before


def _attribute_bytes(mesh) -> int:
    return sum(len(found.data) * _SIZES[found.data_type] for found in mesh.attributes if found.data_type in _SIZES)
