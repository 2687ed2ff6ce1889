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

NO_MODIFIER, LINEAR, PRESERVE, CENTERS = "bones only", "Armature", "Armature, Preserve Volume", crs_modifier.LABEL


def modifiers(repeats: int):
    """(name, vertices, seconds (n,)) of each way to play the animated mesh; what that is measured on; and what is
    missing, in one line, or ""."""
    skinning_tools.register()
    ob, _ = skinned_meshes.rigged_tube(BONES, RINGS, SEGMENTS, INFLUENCES)
    found = [(name, len(ob.data.vertices), taken) for name, taken in timed_modifiers(ob, repeats).items()]
    what = f"Blender {bpy.app.version_string}, {BONES} bones, {INFLUENCES} influences"
    return found, what, crs_modifier.reason_not_available()


def timed_modifiers(ob, repeats: int, clock=time.perf_counter) -> dict[str, list[float]]:
    """Seconds, by a clock, of the frames by each way to play; the native modifier only in versions of Blender that have
    it."""
    ways = [NO_MODIFIER, LINEAR, PRESERVE]
    if not crs_modifier.reason_not_available():
        add_native(ob)
        ways.append(CENTERS)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    # Alternating, so that other work on the machine affects all alike.
    for turn in range(max(repeats // FRAMES, 1)):
        for name in ways:
            show(ob, name)
            seconds[name] += frame_seconds(ob, turn, clock)
    return seconds


def add_native(ob) -> None:
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.skinning.add_center_of_rotation_modifier()


def show(ob, way: str) -> None:
    """Enable the modifiers of one way to play."""
    armature, native = ob.modifiers["Armature"], native_modifier(ob)
    armature.show_viewport, armature.use_deform_preserve_volume = way in (LINEAR, PRESERVE), way == PRESERVE
    if native is not None:
        native.show_viewport = way == CENTERS


def overlay(repeats: int):
    """(method, vertices, seconds (n,)) of the preview's drawing into PIXELS, with all that a frame sends to the GPU;
    what that is measured on; and what bones and vertices take there. None where there is no GPU to be used."""
    renderer = device()
    if renderer is None:
        return None
    skinning_tools.register()
    ob, _ = skinned_meshes.rigged_tube(BONES, RINGS, SEGMENTS, INFLUENCES)
    bpy.ops.skinning.bake_rotation_centers()
    seconds, data, matrices = timed_drawing(ob, PIXELS, repeats)
    found = [(method, len(data.rest), taken) for method, taken in seconds.items()]
    return found, f"{renderer}, {PIXELS[0]} × {PIXELS[1]} pixels", buffer_sizes(data, matrices)


def device() -> str | None:
    """The name of the renderer; None where there is no GPU to be used."""
    try:
        import gpu

        gpu.init()
        return gpu.platform.renderer_get()
    except (AttributeError, SystemError, RuntimeError, ImportError):
        return None


def timed_drawing(ob, pixels: tuple[int, int], repeats: int, clock=time.perf_counter, alone=False):
    """Seconds of each drawing of a baked mesh by each method; the preview's data; and the bones' matrices.

    alone: each method by a shader that has no other, as an engine's. With several, a renderer in software evaluates
    all of them for every vertex.
    """
    import gpu

    from skinning_tools.features.preview import drawing, session

    bpy.context.view_layer.objects.active = ob
    bpy.context.scene.frame_set(4)
    bpy.ops.skinning.preview(mode="CRS")
    data = session.display.subject.data
    matrices = bone_matrices(read_skin(bpy.context, ob), bpy.context.evaluated_depsgraph_get())
    expected = skinned_meshes.expected(ob)
    # The whole mesh, from above.
    middle = 0.5 * (expected.min(axis=0) + expected.max(axis=0))
    camera = np.eye(4)
    camera[:3, 3] = -middle
    half = 0.6 * np.ptp(expected, axis=0).max()
    view = drawing.View(camera, np.diag([1 / half, pixels[0] / pixels[1] / half, -1 / half, 1.0]), False)
    target = gpu.types.GPUOffScreen(*pixels, format="RGBA8")
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    preview_shader = drawing.surface_shader
    shaders = _shaders_of_one_method(data.groups) if alone else {}
    with target.bind():
        buffer = gpu.state.active_framebuffer_get()
        for turn in range(repeats + 1):
            for method in METHODS:
                drawing.surface_shader = shaders.get(method, preview_shader)
                start = clock()
                buffer.clear(color=(0.0, 0.0, 0.0, 1.0), depth=1.0)
                drawing.draw(data, matrices, np.eye(4), view, drawing.Look((method,)))
                # Reading waits for the drawing.
                buffer.read_color(0, 0, 1, 1, 4, 0, "FLOAT")
                # The first turn compiles the shaders.
                if turn:
                    seconds[method].append(clock() - start)
    drawing.surface_shader = preview_shader
    target.free()
    bpy.ops.skinning.preview(mode="OFF")
    return seconds, data, matrices


def _shaders_of_one_method(groups: int) -> dict:
    """For each method, a function that returns the preview's shader with the method as a constant."""
    from skinning_tools.features.preview import shaders

    read, made = shaders.source, {}
    for number, method in enumerate(METHODS):

        def fixed(name: str, number=number) -> str:
            text = read(name)
            for chosen in ("int(surface.methods.x)", "int(surface.methods.y)"):
                text = text.replace(chosen, str(number))
            return text

        shaders.source = fixed
        shader = shaders.surface_shader.__wrapped__(groups)
        made[method] = lambda groups, shader=shader: shader
    shaders.source = read
    return made


def buffer_sizes(data, matrices) -> str:
    """What the preview's buffers hold, as a sentence."""
    from skinning_tools.features.preview.buffers import bone_texels

    floats = bone_texels(matrices[:1], data.origin)[0, :4].size
    size = sum(values[0].nbytes for values in data.attributes(slice(0, 1)).values())
    return (
        f"The preview's methods share the same buffers: {floats} floats a bone (three rows of the matrix and the "
        f"quaternion), {size} bytes a vertex with position, normal, center and {data.bones.shape[1]} influences."
    )


def frame_seconds(ob, turn: int, clock=time.perf_counter) -> list[float]:
    """Seconds of each frame of the animation, without the first evaluation, which includes the changed modifier."""
    scene = bpy.context.scene
    seconds = []
    for index in range(FRAMES + 1):
        # Also between the keys, so that no two frames are equal.
        number, part = 1 + index % FRAMES, (turn % 10 + 0.5 * (index == FRAMES)) / 10
        start = clock()
        scene.frame_set(number, subframe=part)
        ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.attributes["position"]
        seconds.append(clock() - start)
    return seconds[1:]
