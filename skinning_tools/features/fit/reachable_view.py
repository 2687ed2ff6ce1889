# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the region that the selected vertex can reach over the 3D views. While it is off, no handler is registered.

No reference to Blender's data is kept between redraws: everything is read again, so undo, redo and deletions need no
special care.
"""

from collections.abc import Sequence

import blf
import bpy
import gpu
import numpy as np
from gpu_extras.batch import batch_for_shader
from mathutils import Color

from ...ui.drawn_view import DrawnView
from ...ui.view_drawing import OUTLINE_COLOR, View, draw_discs, draw_lines
from .reachable_region import Region, read_region
from .settings import FitSettings

# With more bones, only the region is drawn.
MOST_NAMES = 16
TEXT_SIZE, LINE_HEIGHT = 12, 16
POINT_RADIUS, PLACE_RADIUS, SWATCH_RADIUS, DOT_SIZE = 5.0, 4.0, 3.0, 3.0
LINE_WIDTH = 2.0
HULL_COLOR = (1.0, 0.8, 0.2, 1.0)
PLACE_COLOR = (1.0, 1.0, 1.0, 1.0)
MISSED_COLOR = (1.0, 0.25, 0.2, 1.0)
# The way from a vertex to its landing is drawn from this many pixels on.
_NOTICEABLE = 2.0


def _draw(context: bpy.types.Context) -> None:
    if not context.space_data.overlay.show_overlays:
        return
    region = read_region(context, FitSettings.of(context.scene.skinning_weight_fit))
    if region is not None:
        draw(context, region)


def draw(context: bpy.types.Context, region: Region, others: np.ndarray | None = None) -> None:
    """Draw in the pixels of the context's region, over everything. others (n, 3): further vertices, in the world."""
    scale = context.preferences.system.ui_scale
    view = View.of(context.region_data)
    size = (context.region.width, context.region.height)
    gpu.state.blend_set("ALPHA")
    try:
        _draw_hull(region, view, size, scale)
        points = view.on_screen(region.predictions, size)
        named = len(region.bones) <= MOST_NAMES
        if named:
            # Pixel drawing has no color management.
            colors = [(*Color(color.tolist()).from_scene_linear_to_srgb(), 1.0) for color in region.colors]
            for point, color in zip(points, colors, strict=True):
                draw_discs(point[None], POINT_RADIUS * scale, color, scale)
        if others is not None and len(others):
            _dots(view.on_screen(others, size), PLACE_COLOR, scale)
        _draw_place(region, view, size, scale)
        if named:
            _write_names(region.bones, colors, points, scale)
    finally:
        # The rest of the viewport drawing expects this.
        gpu.state.blend_set("NONE")


def _draw_hull(region: Region, view: View, size: tuple[float, float], scale: float) -> None:
    if not len(region.edges):
        return
    ends = view.on_screen(region.corners, size)[region.edges].reshape(-1, 2)
    ends = ends[np.repeat(np.isfinite(ends.reshape(-1, 4)).all(axis=1), 2)]
    draw_lines(ends, OUTLINE_COLOR, (LINE_WIDTH + 2) * scale, size)
    draw_lines(ends, HULL_COLOR, LINE_WIDTH * scale, size)


def _draw_place(region: Region, view: View, size: tuple[float, float], scale: float) -> None:
    """Draw the vertex, and the way to its landing if that differs."""
    if region.landing is None:
        draw_discs(view.on_screen(region.place[None], size), PLACE_RADIUS * scale, PLACE_COLOR, scale)
        return
    ends = view.on_screen(np.array([region.place, region.landing]), size)
    missed = np.linalg.norm(ends[1] - ends[0]) > _NOTICEABLE * scale
    if missed:
        draw_lines(ends, MISSED_COLOR, LINE_WIDTH * scale, size)
    draw_discs(ends[:1], PLACE_RADIUS * scale, MISSED_COLOR if missed else PLACE_COLOR, scale)
    if missed:
        draw_discs(ends[1:], PLACE_RADIUS * scale, PLACE_COLOR, scale)


def _dots(points: np.ndarray, color: tuple[float, ...], scale: float) -> None:
    """Draw small squares at points (n, 2), in pixels."""
    shown = points[np.isfinite(points).all(axis=1)]
    corners = 0.5 * np.array([(-1, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)])
    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    for size, filled in ((DOT_SIZE + 2, OUTLINE_COLOR), (DOT_SIZE, color)):
        places = (shown[:, None] + size * scale * corners).reshape(-1, 2)
        shader.uniform_float("color", filled)
        batch_for_shader(shader, "TRIS", {"pos": places.tolist()}).draw(shader)


def _write_names(names: Sequence[str], colors: Sequence[tuple[float, ...]], points: np.ndarray, scale: float) -> None:
    """Write each name after a dot of its point's color, farther from the point if points are close."""
    blf.size(0, TEXT_SIZE * scale)
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 0.9)
    try:
        for name, color, (x, y) in zip(names, colors, label_places(points, scale), strict=True):
            if np.isfinite((x, y)).all():
                draw_discs(np.array([[x + 4 * scale, y + 4 * scale]]), SWATCH_RADIUS * scale, color, scale)
                blf.color(0, 1.0, 1.0, 1.0, 1.0)
                blf.position(0, x + 12 * scale, y, 0)
                blf.draw(0, name)
    finally:
        blf.disable(0, blf.SHADOW)


def label_places(points: np.ndarray, scale: float) -> np.ndarray:
    """(N, 2) where to write beside ``points`` (N, 2), each one line below the labels near it."""
    places = points + np.array([10.0, -4.0]) * scale
    height, width = LINE_HEIGHT * scale, 10 * LINE_HEIGHT * scale
    for number, index in enumerate(order := np.argsort(-places[:, 1], kind="stable")):
        for other in order[:number]:
            if abs(places[index, 0] - places[other, 0]) < width and places[other, 1] - places[index, 1] < height:
                places[index, 1] = places[other, 1] - height
    return places


display: DrawnView[None] = DrawnView("The reachable region could not be drawn", POST_PIXEL=_draw)

handlers, unregister = display.handlers, display.stop
