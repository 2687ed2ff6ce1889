# SPDX-License-Identifier: GPL-3.0-or-later
"""One redraw: the skinned surfaces side by side, and their centers."""

from dataclasses import dataclass

import gpu
import numpy as np

from ...core.geometry import transform_points, unit
from ...ui.view_drawing import View
from .buffers import VertexData, bone_texture, surface_uniforms, translation
from .shaders import centers_shader, surface_shader

# Linear colors of the surface, by method.
COLORS = {"LBS": (0.75, 0.33, 0.10), "DQS": (0.10, 0.42, 0.75), "CRS": (0.20, 0.55, 0.14)}
CENTER_COLOR = (1.0, 0.85, 0.05, 1.0)
MOST_POINT_PIXELS, LEAST_POINT_PIXELS = 5.0, 2.0

# From this number of centers on, points get smaller.
_MANY_CENTERS = 2000

# The range of the color scale is in percent of the diagonal of the mesh at rest.
PER_CENT = 0.01


@dataclass(frozen=True)
class Look:
    """methods: one column each. compared: the method to show the distance to, or None for a color per method;
    color_range: the distance, in percent of the diagonal, at the scale's end. spacing: of the columns, in widths."""

    methods: tuple[str, ...]
    compared: str | None = None
    color_range: float = 5.0
    spacing: float = 1.2
    offset: float = 0.0
    opacity: float = 1.0
    in_front: bool = True
    flat: bool = False
    show_centers: bool = False


def draw(data: VertexData, matrices: np.ndarray, to_world: np.ndarray, view: View, look: Look) -> None:
    """Draw into the bound frame buffer. matrices (P, 3, 4) in the mesh's space, to_world (4, 4) of the mesh."""
    texture = bone_texture(matrices, data.origin)
    length = scale_end(data, to_world, look)
    columns = column_matrices(data, to_world, view, look)
    gpu.state.depth_test_set("LESS_EQUAL")
    gpu.state.depth_mask_set(True)
    try:
        for method, to_column in zip(look.methods, columns, strict=True):
            _draw_surface(data, texture, to_column, view, look, method, length)
        if look.show_centers and len(data.centered):
            # Only one method uses the centers.
            column = look.methods.index("CRS") if "CRS" in look.methods else 0
            _draw_centers(data, texture, columns[column], view, look.methods[column])
    finally:
        # The rest of the viewport drawing expects these.
        gpu.state.color_mask_set(True, True, True, True)
        gpu.state.program_point_size_set(False)
        gpu.state.blend_set("NONE")
        gpu.state.depth_mask_set(False)
        gpu.state.depth_test_set("NONE")


def column_matrices(data: VertexData, to_world: np.ndarray, view: View, look: Look) -> list[np.ndarray]:
    """Mesh to world (4, 4) of each column, from left to right in the view, with the mesh itself in their middle."""
    right = unit(view.view[0, :3])
    box = rest_box(data, to_world)
    # A tall and thin mesh may bend sideways.
    width = max(np.ptp(box @ right), 0.5 * np.ptp(box, axis=0).max())
    steps = look.offset + look.spacing * (np.arange(len(look.methods)) - 0.5 * (len(look.methods) - 1))
    return [translation(step * width * right) @ to_world for step in steps]


def rest_box(data: VertexData, to_world: np.ndarray) -> np.ndarray:
    """(8, 3) the corners of the mesh's rest bounding box in the world, which does not change with the pose."""
    low, high = data.rest.min(axis=0) + data.origin, data.rest.max(axis=0) + data.origin
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    return transform_points(corners, to_world)


def scale_end(data: VertexData, to_world: np.ndarray, look: Look) -> float:
    """The world distance at the end of the color scale."""
    size = np.linalg.norm(to_world[:3, :3] @ np.ptp(data.rest, axis=0))
    return max(PER_CENT * look.color_range * float(size), 1e-12)


def point_pixels(count: int) -> float:
    """The size of each of ``count`` points: together they cover no more area than those of a coarse mesh."""
    return max(LEAST_POINT_PIXELS, MOST_POINT_PIXELS * min(1.0, (_MANY_CENTERS / max(count, 1)) ** 0.5))


def _draw_surface(
    data: VertexData,
    texture: gpu.types.GPUTexture,
    to_world: np.ndarray,
    view: View,
    look: Look,
    method: str,
    length: float,
) -> None:
    shader = surface_shader(data.groups)
    uniforms = surface_uniforms(
        to_world,
        view.view,
        view.projection,
        data.origin,
        method,
        look.compared,
        (*COLORS[method], look.opacity),
        (look.in_front, look.flat, length, view.perspective),
    )
    shader.uniform_block("surface", uniforms)
    shader.uniform_sampler("bone_texture", texture)
    batch = data.surface_batch
    if look.opacity < 1:
        # Depth first: only the nearest layer of the surface may shine through.
        gpu.state.color_mask_set(False, False, False, False)
        batch.draw(shader)
        gpu.state.color_mask_set(True, True, True, True)
        gpu.state.blend_set("ALPHA")
    else:
        gpu.state.blend_set("NONE")
    batch.draw(shader)


def _draw_centers(
    data: VertexData, texture: gpu.types.GPUTexture, to_world: np.ndarray, view: View, method: str
) -> None:
    shader = centers_shader(data.groups)
    uniforms = surface_uniforms(
        to_world,
        view.view,
        view.projection,
        data.origin,
        method,
        color=CENTER_COLOR,
        options=(0.0, 0.0, point_pixels(len(data.centered)), 0.0),
    )
    shader.uniform_block("surface", uniforms)
    shader.uniform_sampler("bone_texture", texture)
    points, lines = data.center_batches
    gpu.state.blend_set("ALPHA")
    lines.draw(shader)
    gpu.state.program_point_size_set(True)
    points.draw(shader)
    gpu.state.program_point_size_set(False)
