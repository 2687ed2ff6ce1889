# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of a conversion over time and over its sweeps, drawn in a panel as images that are not saved."""

from collections.abc import Callable, Iterable, Sequence

import bpy
import bpy.utils.previews
import numpy as np

from ...core.curve_picture import FRAMES_SIZE, frames_picture, sweeps_picture
from .result import frame_errors

# In interface units, the height of a button.
_UNITS = 11.0

_previews = None
# What each picture shows, by its name.
_shown: dict[str, tuple] = {}


def draw_error_plot(layout: bpy.types.UILayout, figures: dict) -> None:
    """Draw the errors of a conversion's frames; the picture is rendered again only if they have changed."""
    _draw(layout, "error over time", frames_picture, frame_errors(figures))


def draw_sweeps_plot(layout: bpy.types.UILayout, history: Sequence[float]) -> None:
    """Draw the error after each sweep of a conversion."""
    _draw(layout, "error over sweeps", sweeps_picture, (history,))


def _draw(layout: bpy.types.UILayout, name: str, render: Callable[..., np.ndarray], values: Iterable[Iterable]) -> None:
    layout.template_icon(icon_value=_picture(name, render, values).icon_id, scale=_UNITS)


def _picture(name: str, render: Callable[..., np.ndarray], values: Iterable[Iterable]) -> bpy.types.ImagePreview:
    global _previews
    if _previews is None:
        _previews = bpy.utils.previews.new()
    preview = _previews.get(name) or _previews.new(name)
    wanted = tuple(map(tuple, values))
    if wanted != _shown.get(name):
        _shown[name] = wanted
        pixels = np.ones((FRAMES_SIZE[1], FRAMES_SIZE[0], 4), np.float32)
        # Blender's pixel rows run from bottom to top.
        pixels[..., :3] = render(*wanted)[::-1] / 255.0
        preview.image_size = FRAMES_SIZE
        preview.image_pixels_float.foreach_set(pixels.ravel())
    return preview


def unregister() -> None:
    global _previews
    _shown.clear()
    if _previews is not None:
        bpy.utils.previews.remove(_previews)
        _previews = None
