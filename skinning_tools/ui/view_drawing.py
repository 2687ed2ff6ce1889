# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws texts, scales, lines and rings over a 3D view, and reads its matrices."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import blf
import bpy
import gpu
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from gpu_extras.batch import batch_for_shader
from mathutils import Matrix, Vector

# Same as heat() in surface_frag.glsl.
STOPS = ((0, 0, 1, 1), (0, 1, 1, 1), (0, 1, 0, 1), (1, 1, 0, 1), (1, 0, 0, 1))
BAR_WIDTH, BAR_HEIGHT = 220, 12
TEXT_SIZE = 12
LINE_HEIGHT = 18
# How bright a surface is where it is seen edge-on.
LEAST_LIGHT = 0.35
# Into the nearest tenth of the depths, so that the mesh itself does not cover what is drawn at its place.
IN_FRONT = Matrix(((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0.1, -0.9), (0, 0, 0, 1)))
# (54, 2): the corners of triangles that make a disc of radius 1.
_RIM = np.exp(2j * np.pi * np.arange(20) / 20).view(np.float64).reshape(-1, 2)
_DISC = np.concatenate([_RIM[[0, k, k + 1]] for k in range(1, 19)])
OUTLINE_COLOR = (0.0, 0.0, 0.0, 0.7)
RING_RADIUS, RING_CORNERS = 14.0, 33
# Width and color: the ring on a darker one, visible on any background.
RING_LINES = ((4.5, (0.0, 0.0, 0.0, 0.8)), (2.0, (1.0, 1.0, 1.0, 1.0)))


# On the screen, from the lower left of a region.
Pixel: TypeAlias = np.ndarray | tuple[float, float]


@dataclass(frozen=True)
class View:
    """Matrices (4, 4) float64 of a 3D view, and whether it is in perspective."""

    view: np.ndarray
    projection: np.ndarray
    perspective: bool

    @classmethod
    def of(cls, region_data: bpy.types.RegionView3D) -> "View":
        return cls(
            np.array(region_data.view_matrix, dtype=np.float64),
            np.array(region_data.window_matrix, dtype=np.float64),
            region_data.is_perspective,
        )

    def on_screen(self, points: np.ndarray, size: tuple[float, float]) -> np.ndarray:
        """(N, 2) pixels of points (N, 3) in the world, NaN behind the eye. size: width and height of the region."""
        clip = np.column_stack([points, np.ones(len(points))]) @ (self.projection @ self.view).T
        with np.errstate(divide="ignore", invalid="ignore"):
            pixels = (clip[:, :2] / clip[:, 3:] + 1) * (0.5 * np.array(size))
        pixels[clip[:, 3] <= 0] = np.nan
        return pixels

    def line_of_sight(self, pixel: Pixel, size: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        """Where the line of sight through a pixel begins (3,), and its unit vector (3,), in the world."""
        across = 2 * np.asarray(pixel, dtype=np.float64) / np.array(size) - 1
        ends = np.array([[*across, -1.0, 1.0], [*across, 1.0, 1.0]]) @ np.linalg.inv(self.projection @ self.view).T
        begin, end = ends[:, :3] / ends[:, 3:]
        return begin, (end - begin) / np.linalg.norm(end - begin)

    def moved(self, point: np.ndarray, pixels: Pixel, size: tuple[float, float]) -> np.ndarray:
        """A point (3,) of the world moved by ``pixels`` (2,) on the screen, at its distance from the eye."""
        to_clip = self.projection @ self.view
        clip = to_clip @ [*point, 1.0]
        clip[:2] += 2 * np.asarray(pixels, dtype=np.float64) / np.array(size) * clip[3]
        there = np.linalg.solve(to_clip, clip)
        return there[:3] / there[3]


@contextmanager
def legible(context: bpy.types.Context) -> Iterator[float]:
    """Draw text with a shadow, readable on any background; yields the interface's scale."""
    scale = context.preferences.system.ui_scale
    blf.size(0, TEXT_SIZE * scale)
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 0.8)
    try:
        yield scale
    finally:
        blf.disable(0, blf.SHADOW)


def draw_scale(context: bpy.types.Context, title: str, *ends: str) -> None:
    """Draw the scale from blue (none) to red in the lower left corner of the region. ends: lines on the meaning of
    red."""
    with legible(context) as scale:
        left, bottom = _free_corner(context, scale)
        width, height = BAR_WIDTH * scale, BAR_HEIGHT * scale
        xs = left + width * np.linspace(0, 1, len(STOPS))
        corners = [(float(x), y) for x in xs for y in (bottom, bottom + height)]
        shader = gpu.shader.from_builtin("SMOOTH_COLOR")
        colors = [stop for stop in STOPS for _ in range(2)]
        batch_for_shader(shader, "TRI_STRIP", {"pos": corners, "color": colors}).draw(shader)
        write(title, left, bottom + height + 6 * scale)
        write("0", left, bottom - LINE_HEIGHT * scale)
        for line, end in enumerate(ends, start=1):
            write(end, left + width, bottom - line * LINE_HEIGHT * scale, right=True)


def draw_note(context: bpy.types.Context, text: str) -> None:
    """Write a line in the lower left corner of the region."""
    with legible(context) as scale:
        write(text, *_free_corner(context, scale))


def draw_surface(
    positions: np.ndarray, normals: np.ndarray, triangles: np.ndarray, colors: np.ndarray, view: View
) -> None:
    """Draw a shaded surface in front of all else, lit from the eye, both sides alike.

    positions, normals (N, 3) in the world, triangles (T, 3), display colors (N, 3). For handlers at POST_VIEW.
    """
    light = LEAST_LIGHT + (1 - LEAST_LIGHT) * np.abs(normals @ view.view[2, :3])
    shaded = np.ones((len(positions), 4), np.float32)
    shaded[:, :3] = colors * light[:, None]
    # Single precision has more digits near the origin.
    middle = positions.mean(axis=0)
    shader = gpu.shader.from_builtin("SMOOTH_COLOR")
    places = {"pos": (positions - middle).astype(np.float32), "color": shaded}
    batch = batch_for_shader(shader, "TRIS", places, indices=np.ascontiguousarray(triangles, np.int32))
    gpu.state.depth_test_set("LESS_EQUAL")
    gpu.state.depth_mask_set(True)
    try:
        with gpu.matrix.push_pop(), gpu.matrix.push_pop_projection():
            gpu.matrix.load_projection_matrix(IN_FRONT @ gpu.matrix.get_projection_matrix())
            gpu.matrix.translate(middle.tolist())
            batch.draw(shader)
    finally:
        # The rest of the viewport drawing expects these.
        gpu.state.depth_mask_set(False)
        gpu.state.depth_test_set("NONE")


def draw_ring(context: bpy.types.Context, place: Vector, text: str) -> None:
    """Draw a ring around the world position ``place`` with ``text`` next to it; nothing if the view does not show
    it."""
    at = location_3d_to_region_2d(context.region, context.region_data, place)
    if at is None:
        return
    with legible(context) as scale:
        turns = np.linspace(0, 2 * np.pi, RING_CORNERS)
        around = np.column_stack([np.cos(turns), np.sin(turns)])
        shader = gpu.shader.from_builtin("POLYLINE_UNIFORM_COLOR")
        shader.bind()
        shader.uniform_float("viewportSize", gpu.state.viewport_get()[2:])
        for width, color in RING_LINES:
            corners = np.column_stack([around * (RING_RADIUS * scale) + at, np.zeros(RING_CORNERS)])
            shader.uniform_float("lineWidth", width * scale)
            shader.uniform_float("color", color)
            batch_for_shader(shader, "LINE_STRIP", {"pos": corners.tolist()}).draw(shader)
        # On the side that the sidebar does not cover.
        beside, covered = (RING_RADIUS + 6) * scale, _width_of(context, "UI")
        fits = at.x + beside + blf.dimensions(0, text)[0] < context.region.width - covered
        write(text, at.x + (beside if fits else -beside), at.y - 4 * scale, right=not fits)


def draw_lines(ends: np.ndarray, color: tuple[float, ...], width: float, size: tuple[float, float]) -> None:
    """Draw lines between ``ends`` (2 n, 2), in pixels."""
    if not len(ends) or not np.isfinite(ends).all():
        return
    shader = gpu.shader.from_builtin("POLYLINE_UNIFORM_COLOR")
    shader.uniform_float("viewportSize", size)
    shader.uniform_float("lineWidth", width)
    shader.uniform_float("color", color)
    places = np.zeros((len(ends), 3), np.float32)
    places[:, :2] = ends
    batch_for_shader(shader, "LINES", {"pos": places}).draw(shader)


def draw_discs(points: np.ndarray, radius: float, color: tuple[float, ...], scale: float) -> None:
    """Draw filled circles with dark rims around ``points`` (n, 2), in pixels; none at NaN."""
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return
    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    for size, filled in ((radius + 1.5 * scale, OUTLINE_COLOR), (radius, tuple(map(float, color)))):
        corners = (points[:, None] + size * _DISC).reshape(-1, 2).astype(np.float32)
        shader.uniform_float("color", filled)
        batch_for_shader(shader, "TRIS", {"pos": corners}).draw(shader)


def _free_corner(context: bpy.types.Context, scale: float) -> tuple[float, float]:
    """Lower left of the region, right of an overlapping toolbar."""
    return 20 * scale + _width_of(context, "TOOLS"), 50 * scale


def _width_of(context: bpy.types.Context, kind: str) -> int:
    """The width that regions of this kind cover."""
    if not context.preferences.system.use_region_overlap:
        return 0
    return sum(region.width for region in context.area.regions if region.type == kind)


def write(text: str, x: float, y: float, centered: bool = False, right: bool = False) -> None:
    width = blf.dimensions(0, text)[0] if centered or right else 0.0
    blf.color(0, 1.0, 1.0, 1.0, 1.0)
    blf.position(0, x - (0.5 * width if centered else width), y, 0)
    blf.draw(0, text)
