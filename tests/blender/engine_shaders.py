# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation's shaders for engines, run by Blender's GPU module: each vertex is drawn as a pixel, whose color is
what the shader makes of the vertex."""

import os
from pathlib import Path

import bpy
import numpy as np
import pytest

from skinning_tools.core import quaternions
from skinning_tools.core.rotations import polar_decomposition

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "shaders"

# What an engine adds: its joints, here a row of texels for each, the four columns of the matrix and the quaternion.
JOINTS = """
mat4 joint_matrix(uint joint)
{
  ivec2 texel = ivec2(0, int(joint));
  return mat4(texelFetch(joints_texture, texel, 0), texelFetch(joints_texture, texel + ivec2(1, 0), 0),
              texelFetch(joints_texture, texel + ivec2(2, 0), 0), texelFetch(joints_texture, texel + ivec2(3, 0), 0));
}

vec4 joint_rotation(uint joint) { return texelFetch(joints_texture, ivec2(4, int(joint)), 0); }
"""
_WIDTH = 64


def gpu_module():
    """Blender's gpu module with a context behind it; skips where it cannot have one, except in CI."""
    if bpy.app.version < (5, 1, 0):
        pytest.skip("Blender before 5.1 cannot use the GPU without a window")
    import gpu

    try:
        gpu.init()
        gpu.platform.renderer_get()
    except (SystemError, RuntimeError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Blender finds no GPU here; on Debian: apt-get install libegl1 libgl1-mesa-dri ({error})")
    return gpu


def joint_texels(matrices: np.ndarray) -> np.ndarray:
    """(P, 5, 4) for ``JOINTS``, from matrices (P, 4, 4)."""
    texels = np.empty((len(matrices), 5, 4), np.float32)
    texels[:, :4] = matrices.swapaxes(1, 2)
    texels[:, 4] = np.roll(quaternions.from_matrices(polar_decomposition(matrices[:, :3, :3])[0]), -1, axis=-1)
    return texels


def evaluated(file: str, value: str, inputs: dict, textures: dict, before: str = JOINTS) -> np.ndarray:
    """(N, 3) float64: what the GLSL expression ``value`` is for each vertex, with the shader ``file`` of the
    documentation.

    inputs: arrays (N, k) by the names that ``value`` has for them; textures: texels (height, width, 4) by their names.
    before: what the engine adds.
    """
    gpu = gpu_module()
    count = len(next(iter(inputs.values())))
    numbers = np.arange(count)
    height = -(-count // _WIDTH)
    places = (np.stack([numbers % _WIDTH, numbers // _WIDTH], axis=1) + 0.5) / (_WIDTH, height) * 2 - 1
    interface = gpu.types.GPUStageInterfaceInfo("engine")
    interface.smooth("VEC3", "value")
    info = gpu.types.GPUShaderCreateInfo()
    layout = gpu.types.GPUVertFormat()
    arrays = {}
    for slot, (name, array) in enumerate((inputs | {"pixel": places}).items()):
        whole = np.issubdtype(np.asarray(array).dtype, np.integer)
        arrays[name] = np.ascontiguousarray(array, np.uint32 if whole else np.float32)
        width = arrays[name].shape[1]
        info.vertex_in(slot, f"{'U' * whole}VEC{width}", name)
        layout.attr_add(id=name, comp_type="U32" if whole else "F32", len=width, fetch_mode="INT" if whole else "FLOAT")
    for slot, name in enumerate(textures):
        info.sampler(slot, "FLOAT_2D", name)
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "color")
    after = f"void main() {{ value = {value}; gl_Position = vec4(pixel, 0.0, 1.0); gl_PointSize = 1.0; }}"
    info.vertex_source(before + (FOLDER / file).read_text(encoding="utf-8") + after)
    info.fragment_source("void main() { color = vec4(value, 1.0); }")
    shader = gpu.shader.create_from_info(info)

    buffer = gpu.types.GPUVertBuf(layout, count)
    for name, array in arrays.items():
        buffer.attr_fill(name, array)
    # Held until it is drawn: a shader does not keep its textures alive.
    held = {name: _texture(gpu, np.asarray(texels, np.float32)) for name, texels in textures.items()}
    target = gpu.types.GPUOffScreen(_WIDTH, height, format="RGBA32F")
    with target.bind():
        frame_buffer = gpu.state.active_framebuffer_get()
        frame_buffer.clear(color=(0.0, 0.0, 0.0, 0.0))
        gpu.state.program_point_size_set(True)
        for name, texture in held.items():
            shader.uniform_sampler(name, texture)
        gpu.types.GPUBatch(type="POINTS", buf=buffer).draw(shader)
        pixels = frame_buffer.read_color(0, 0, _WIDTH, height, 4, 0, "FLOAT")
        gpu.state.program_point_size_set(False)
    target.free()
    read = np.array(pixels.to_list(), dtype=np.float64).reshape(-1, 4)[:count]
    assert (read[:, 3] == 1).all(), "not every vertex was drawn"
    return read[:, :3]


def _texture(gpu, texels):
    height, width = texels.shape[:2]
    data = gpu.types.Buffer("FLOAT", texels.size, texels.ravel())
    return gpu.types.GPUTexture((width, height), format="RGBA32F", data=data)
