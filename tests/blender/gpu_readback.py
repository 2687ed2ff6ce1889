# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the preview's skinning on the GPU and read back where every vertex went."""

import gpu
import numpy as np

from skinning_tools.features.preview.buffers import VertexData, bone_texture, vertex_buffer
from skinning_tools.features.preview.shaders import skinning_info, source, surface_inputs

WIDTH = 256

VERTEX = """
void main()
{
  Influences influences = gathered();
  Skinned result = skinned(METHOD, influences, rest, center);
  value = NORMALS == 1 ? skinned_normal(result.linear, normal) : result.position;
  gl_Position = vec4(pixel, 0.0, 1.0);
  gl_PointSize = 1.0;
}
"""
FRAGMENT = "void main() { color = vec4(value, 1.0); }"


def skinned_by_gpu(data: VertexData, matrices: np.ndarray, method: str, normals=False) -> np.ndarray:
    """(N, 3) float64 positions in the mesh's space, or unit normals: each vertex a pixel, its color the result."""
    height = -(-len(data.rest) // WIDTH)
    interface = gpu.types.GPUStageInterfaceInfo("readback")
    interface.smooth("VEC3", "value")
    inputs = [*surface_inputs(data.groups), ("VEC2", "pixel")]
    info = skinning_info(data.groups, inputs)
    info.define("METHOD", method)
    info.define("NORMALS", str(int(normals)))
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "color")
    info.vertex_source(source("skinning.glsl") + VERTEX)
    info.fragment_source(FRAGMENT)
    shader = gpu.shader.create_from_info(info)

    numbers = np.arange(len(data.rest))
    places = (np.stack([numbers % WIDTH, numbers // WIDTH], axis=1) + 0.5) / (WIDTH, height) * 2 - 1
    vertices = vertex_buffer(inputs, data.attributes() | {"pixel": places.astype(np.float32)})
    target = gpu.types.GPUOffScreen(WIDTH, height, format="RGBA32F")
    with target.bind():
        frame_buffer = gpu.state.active_framebuffer_get()
        frame_buffer.clear(color=(0.0, 0.0, 0.0, 0.0))
        gpu.state.program_point_size_set(True)
        # Held until it is drawn: a shader does not keep its textures alive.
        texture = bone_texture(matrices, data.origin)
        shader.uniform_sampler("bone_texture", texture)
        gpu.types.GPUBatch(type="POINTS", buf=vertices).draw(shader)
        pixels = frame_buffer.read_color(0, 0, WIDTH, height, 4, 0, "FLOAT")
        gpu.state.program_point_size_set(False)
    target.free()
    read = np.array(pixels.to_list(), dtype=np.float64).reshape(-1, 4)[: len(data.rest)]
    assert (read[:, 3] == 1).all(), "not every vertex was drawn"
    if normals:
        return read[:, :3] / np.linalg.norm(read[:, :3], axis=1, keepdims=True)
    return read[:, :3] + data.origin
