# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview's shaders, built from the .glsl files beside this module."""

from functools import lru_cache
from pathlib import Path

import gpu

from ..core.deform import METHODS

FOLDER = Path(__file__).parent

# Four texels each: rows of 1024 texels, so that some millions of bones fit into the smallest texture limits.
BONES_PER_ROW = 256

# std140: members of whole vec4s, so that they lie one after another as in ``surface_uniforms``.
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

VERTEX_INPUTS = (
    ("VEC3", "rest"),
    ("VEC3", "normal"),
    ("VEC3", "center"),
    ("UVEC4", "first_bones"),
    ("UVEC4", "last_bones"),
    ("VEC4", "first_weights"),
    ("VEC4", "last_weights"),
)


@lru_cache(maxsize=1)
def surface_shader() -> gpu.types.GPUShader:
    """Shaded triangles, colored by one method or by the distance between two."""
    interface = gpu.types.GPUStageInterfaceInfo("skinning_surface")
    interface.smooth("VEC3", "view_position")
    interface.smooth("VEC3", "view_normal")
    interface.smooth("FLOAT", "difference")
    info = skinning_info(VERTEX_INPUTS)
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "shaded")
    info.vertex_source(source("skinning.glsl") + source("surface_vert.glsl"))
    info.fragment_source(source("surface_frag.glsl"))
    return gpu.shader.create_from_info(info)


@lru_cache(maxsize=1)
def centers_shader() -> gpu.types.GPUShader:
    """Centres as points, and lines from them to their vertices."""
    interface = gpu.types.GPUStageInterfaceInfo("skinning_centers")
    interface.smooth("FLOAT", "nearness")
    info = skinning_info([*(entry for entry in VERTEX_INPUTS if entry[1] != "normal"), ("FLOAT", "at_center")])
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "shaded")
    info.vertex_source(source("skinning.glsl") + source("centers_vert.glsl"))
    info.fragment_source(source("centers_frag.glsl"))
    return gpu.shader.create_from_info(info)


def forget() -> None:
    """Free the shaders."""
    surface_shader.cache_clear()
    centers_shader.cache_clear()


def skinning_info(vertex_inputs) -> "gpu.types.GPUShaderCreateInfo":
    """What every shader that includes skinning.glsl declares."""
    info = gpu.types.GPUShaderCreateInfo()
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
