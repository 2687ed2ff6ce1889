# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of a frame in Blender: armature modifier, native modifier, and the preview's drawing."""

import time

import bpy
import numpy as np

import skinning_tools
from skinning_tools.blender.center_records import native_modifier
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core.deform import METHODS
from skinning_tools.features.centers import modifier as crs_modifier
from tests.blender import skinned_meshes

BONES, RINGS, SEGMENTS, INFLUENCES = 100, 400, 25, 4
FRAMES = 8
PIXELS = 1920, 1080


def modifiers(repeats: int):
    """(name, vertices, seconds (n,)) of each way to play the animated mesh; what that is measured on; and what is
    missing, in one line, or ""."""
    skinning_tools.register()
    ob, _ = skinned_meshes.rigged_tube(BONES, RINGS, SEGMENTS, INFLUENCES)
    armature, native = ob.modifiers["Armature"], None
    reason = crs_modifier.reason_not_available()
    if not reason:
        bpy.ops.skinning.bake_rotation_centers()
        bpy.ops.skinning.add_center_of_rotation_modifier()
        native = native_modifier(ob)

    def show(linear: bool, preserve: bool, centers: bool) -> None:
        armature.show_viewport, armature.use_deform_preserve_volume = linear, preserve
        if native is not None:
            native.show_viewport = centers

    ways = {
        "bones only": lambda: show(False, False, False),
        "Armature": lambda: show(True, False, False),
        "Armature, Preserve Volume": lambda: show(True, True, False),
    }
    if native is not None:
        ways[crs_modifier.LABEL] = lambda: show(False, False, True)
    seconds = {name: [] for name in ways}
    # Alternating, so that other work on the machine affects all alike.
    for turn in range(max(repeats // FRAMES, 1)):
        for name, prepare in ways.items():
            prepare()
            seconds[name] += _frame_seconds(ob, turn)
    found = [(name, len(ob.data.vertices), taken) for name, taken in seconds.items()]
    return found, f"Blender {bpy.app.version_string}, {BONES} bones, {INFLUENCES} influences", reason


def overlay(repeats: int):
    """(method, vertices, seconds (n,)) of the preview's drawing into PIXELS, with all that a frame sends to the GPU;
    what that is measured on; and what bones and vertices take there. None where there is no GPU to be used."""
    try:
        import gpu

        gpu.init()
        renderer = gpu.platform.renderer_get()
    except (AttributeError, SystemError, RuntimeError, ImportError):
        return None
    from skinning_tools.features.preview import drawing, session
    from skinning_tools.features.preview.buffers import bone_texels

    skinning_tools.register()
    ob, _ = skinned_meshes.rigged_tube(BONES, RINGS, SEGMENTS, INFLUENCES)
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.scene.frame_set(4)
    bpy.ops.skinning.preview(mode="CRS")
    data = session.running().data
    matrices = bone_matrices(read_skin(bpy.context, ob), bpy.context.evaluated_depsgraph_get())
    expected = skinned_meshes.expected(ob)
    # The whole tube, rolled up as it is, from above.
    middle = 0.5 * (expected.min(axis=0) + expected.max(axis=0))
    camera = np.eye(4)
    camera[:3, 3] = -middle
    half = 0.6 * np.ptp(expected, axis=0).max()
    view = drawing.View(camera, np.diag([1 / half, PIXELS[0] / PIXELS[1] / half, -1 / half, 1.0]), False)
    target = gpu.types.GPUOffScreen(*PIXELS, format="RGBA8")
    seconds = {method: [] for method in METHODS}
    with target.bind():
        buffer = gpu.state.active_framebuffer_get()
        for turn in range(repeats + 1):
            for method in METHODS:
                start = time.perf_counter()
                buffer.clear(color=(0.0, 0.0, 0.0, 1.0), depth=1.0)
                drawing.draw(data, matrices, np.eye(4), view, drawing.Look((method,)))
                # Reading waits for the drawing.
                buffer.read_color(0, 0, 1, 1, 4, 0, "FLOAT")
                # The first turn compiles the shaders.
                if turn:
                    seconds[method].append(time.perf_counter() - start)
    found = [(method, len(data.rest), taken) for method, taken in seconds.items()]
    target.free()
    bpy.ops.skinning.preview(mode="OFF")
    what = f"{renderer}, {PIXELS[0]} × {PIXELS[1]} pixels"
    floats = bone_texels(matrices[:1], data.origin)[0, :4].size
    memory = (
        f"All methods share the same buffers: {floats} floats a bone (three rows of the matrix and the quaternion), "
        f"{data.bytes_per_vertex} bytes a vertex with position, normal, center and {data.bones.shape[1]} influences."
    )
    return found, what, memory


def _frame_seconds(ob, turn: int) -> list[float]:
    """Seconds of each frame of the animation, without the first evaluation, which includes the changed modifier."""
    scene = bpy.context.scene
    seconds = []
    for index in range(FRAMES + 1):
        # Also between the keys, so that no two frames are equal.
        number, part = 1 + index % FRAMES, (turn % 10 + 0.5 * (index == FRAMES)) / 10
        start = time.perf_counter()
        scene.frame_set(number, subframe=part)
        ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.attributes["position"]
        seconds.append(time.perf_counter() - start)
    return seconds[1:]
