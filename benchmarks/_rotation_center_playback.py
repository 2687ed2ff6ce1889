# SPDX-License-Identifier: GPL-3.0-or-later
"""What a frame costs in Blender: its armature modifier, the native modifier, and the preview's drawing."""

import statistics
import time

import bpy
import numpy as np

import skinning_tools
from skinning_tools.core.deform import METHODS
from skinning_tools.scene import crs_modifier
from skinning_tools.scene.skin_reader import bone_matrices, read_skin
from tests.blender import skinned_meshes

BONES, RINGS, SEGMENTS, INFLUENCES = 100, 400, 25, 4
FRAMES = 8
PIXELS = 1920, 1080


def modifiers(repeats: int):
    """(name, vertices, median milliseconds) of each way to play the animated mesh; what that is measured on; and what
    is missing, in one line, or ""."""
    skinning_tools.register()
    ob, _ = skinned_meshes.rigged_tube(BONES, RINGS, SEGMENTS, INFLUENCES)
    found = []
    armature = ob.modifiers["Armature"]
    for name, shown, preserve in (
        ("bones only", False, False),
        ("Armature", True, False),
        ("Armature, Preserve Volume", True, True),
    ):
        armature.show_viewport, armature.use_deform_preserve_volume = shown, preserve
        found.append((name, len(ob.data.vertices), _frame_milliseconds(ob, repeats)))
    armature.use_deform_preserve_volume = False
    reason = crs_modifier.reason_not_available()
    if not reason:
        bpy.ops.skinning.bake_rotation_centers()
        bpy.ops.skinning.add_center_of_rotation_modifier()
        found.append((crs_modifier.LABEL, len(ob.data.vertices), _frame_milliseconds(ob, repeats)))
    return found, f"Blender {bpy.app.version_string}, {BONES} bones, {INFLUENCES} influences", reason


def overlay(repeats: int):
    """(method, vertices, median milliseconds) of the preview's drawing into PIXELS, with all that a frame sends to the
    GPU; what that is measured on; and what bones and vertices take there. None where there is no GPU to be used."""
    try:
        import gpu

        gpu.init()
        renderer = gpu.platform.renderer_get()
    except (AttributeError, SystemError, RuntimeError, ImportError):
        return None
    from skinning_tools.preview import drawing
    from skinning_tools.preview.buffers import bone_texels

    skinning_tools.register()
    ob, _ = skinned_meshes.rigged_tube(BONES, RINGS, SEGMENTS, INFLUENCES)
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.scene.frame_set(4)
    bpy.ops.skinning.preview(mode="CRS")
    data = bpy.context.window_manager.skinning_preview.shown.data
    matrices = bone_matrices(read_skin(bpy.context, ob), bpy.context.evaluated_depsgraph_get())
    expected = skinned_meshes.expected(ob)
    # The whole tube, rolled up as it is, from above.
    middle = 0.5 * (expected.min(axis=0) + expected.max(axis=0))
    camera = np.eye(4)
    camera[:3, 3] = -middle
    half = 0.6 * np.ptp(expected, axis=0).max()
    view = drawing.View(camera, np.diag([1 / half, PIXELS[0] / PIXELS[1] / half, -1 / half, 1.0]), False)
    target = gpu.types.GPUOffScreen(*PIXELS, format="RGBA8")
    found = []
    with target.bind():
        buffer = gpu.state.active_framebuffer_get()
        for method in METHODS:
            look = drawing.Look((method,))
            seconds = []
            for _ in range(repeats):
                start = time.perf_counter()
                buffer.clear(color=(0.0, 0.0, 0.0, 1.0), depth=1.0)
                drawing.draw(data, matrices, np.eye(4), view, look)
                # What is read must have been drawn.
                buffer.read_color(0, 0, 1, 1, 4, 0, "FLOAT")
                seconds.append(time.perf_counter() - start)
            found.append((method, len(data.rest), 1000 * statistics.median(seconds)))
    target.free()
    bpy.ops.skinning.preview(mode="OFF")
    what = f"{renderer}, {PIXELS[0]} × {PIXELS[1]} pixels"
    floats = bone_texels(matrices[:1], data.origin)[0, :4].size
    memory = (
        f"All methods share the same buffers: {floats} floats a bone (three rows of the matrix and the quaternion), "
        f"{data.bytes_per_vertex} bytes a vertex with position, normal, center and {data.bones.shape[1]} influences."
    )
    return found, what, memory


def _frame_milliseconds(ob, repeats: int) -> float:
    """The median over the frames of the animation, again and again."""
    scene = bpy.context.scene
    seconds = []
    for index in range(repeats + FRAMES):
        # Between the keys too, so that no two frames are alike.
        number, part = 1 + index % FRAMES, (index // FRAMES % 10) / 10
        start = time.perf_counter()
        scene.frame_set(number, subframe=part)
        ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.attributes["position"]
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds[FRAMES:])
