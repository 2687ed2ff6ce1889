# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of a conversion over time, drawn in a panel as a picture that no file keeps."""

import bpy.utils.previews
import numpy as np

from ...core.curve_picture import FRAMES_SIZE, frames_picture
from .result import frame_errors

_NAME = "error over time"
# Of the interface's unit, the height of a button.
_UNITS = 11.0

_previews = None
# What the picture shows at present.
_shown: tuple | None = None


def draw_error_plot(layout, figures: dict) -> None:
    """The picture for the figures of a conversion, made anew only where they are others than before."""
    layout.template_icon(icon_value=_picture(figures).icon_id, scale=_UNITS)


def _picture(figures: dict):
    global _previews, _shown
    if _previews is None:
        _previews = bpy.utils.previews.new()
    preview = _previews.get(_NAME) or _previews.new(_NAME)
    numbers, e_rms, largest = frame_errors(figures)
    wanted = tuple(numbers), tuple(e_rms), tuple(largest)
    if wanted != _shown:
        _shown = wanted
        pixels = np.ones((FRAMES_SIZE[1], FRAMES_SIZE[0], 4), np.float32)
        # Blender's rows go up.
        pixels[..., :3] = frames_picture(numbers, e_rms, largest)[::-1] / 255.0
        preview.image_size = FRAMES_SIZE
        preview.image_pixels_float.foreach_set(pixels.ravel())
    return preview


def unregister() -> None:
    global _previews, _shown
    if _previews is not None:
        bpy.utils.previews.remove(_previews)
        _previews = _shown = None
