# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview's shaders, built from the .glsl files beside this module."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import gpu

from ...core.deform import METHODS

FOLDER = Path(__file__).parent

# Four texels per bone in rows of 1024 texels, so that millions of bones fit into the smallest texture limits.
BONES_PER_ROW = 256

# std140: members are whole vec4s, so that they are contiguous as in ``surface_uniforms``.
UNIFORMS_TYPE = """
struct SurfaceUniforms {
  mat4 to_clip;
  mat4 to_view;
  mat4 normal_to_view;
  mat4 to_world;
  vec4 color;
  vec4 options;
  vec4 methods;
};
"""

# Four influences take two vertex inputs; every GPU has at least 16.
MOST_GROUPS = 6


@lru_cache(maxsize=1)
def surface_shader(groups: int) -> gpu.types.GPUShader:
    """Shaded triangles, colored by one method or by the distance between two. groups: of four influences."""
    outputs = {"view_position": "VEC3", "view_normal": "VEC3", "difference": "FLOAT"}
    return _shader("surface", groups, surface_inputs(groups), outputs)


@lru_cache(maxsize=1)
def centers_shader(groups: int) -> gpu.types.GPUShader:
    """Centers as points, and lines from them to their vertices. groups: of four influences."""
    return _shader("centers", groups, centers_inputs(groups), {"nearness": "FLOAT"})


def _shader(name: str, groups: int, inputs: list[tuple[str, str]], outputs: dict[str, str]) -> gpu.types.GPUShader:
    """The shader of the files ``name``. inputs: of each vertex; outputs: values interpolated between vertices."""
    interface = gpu.types.GPUStageInterfaceInfo(f"skinning_{name}")
    for output, kind in outputs.items():
        interface.smooth(kind, output)
    info = skinning_info(groups, inputs)
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "shaded")
    info.vertex_source(source("skinning.glsl") + source(f"{name}_vert.glsl"))
    info.fragment_source(source(f"{name}_frag.glsl"))
    return gpu.shader.create_from_info(info)


def forget() -> None:
    """Free the shaders."""
    surface_shader.cache_clear()
    centers_shader.cache_clear()


def surface_inputs(groups: int) -> list[tuple[str, str]]:
    """Types and names of the vertex inputs."""
    return [("VEC3", "normal"), *_skinning_inputs(groups)]


def centers_inputs(groups: int) -> list[tuple[str, str]]:
    """Types and names of the vertex inputs."""
    return [("FLOAT", "at_center"), *_skinning_inputs(groups)]


def _skinning_inputs(groups: int) -> list[tuple[str, str]]:
    influences = [
        (kind, f"{name}_{group}") for group in range(groups) for kind, name in (("UVEC4", "bones"), ("VEC4", "weights"))
    ]
    return [("VEC3", "rest"), ("VEC3", "center"), *influences]


def skinning_info(groups: int, vertex_inputs: Iterable[tuple[str, str]]) -> "gpu.types.GPUShaderCreateInfo":
    """The declarations of every shader that includes skinning.glsl."""
    info = gpu.types.GPUShaderCreateInfo()
    info.define("GROUPS", str(groups))
    info.define("BONES_PER_ROW", str(BONES_PER_ROW))
    for number, method in enumerate(METHODS):
        info.define(method, str(number))
    info.typedef_source(UNIFORMS_TYPE)
    info.uniform_buf(0, "SurfaceUniforms", "surface")
    info.sampler(0, "FLOAT_2D", "bone_texture")
    for slot, (kind, name) in enumerate(vertex_inputs):
        info.vertex_in(slot, kind, name)
    return info


def source(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
