# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels over the preview: the method under each column, and the scale of its colors."""

import bpy
import numpy as np

from ...blender.lengths import length_text
from ...ui.view_drawing import LINE_HEIGHT, View, draw_scale, legible, write
from .buffers import VertexData
from .drawing import Look, column_matrices, rest_box, scale_end
from .settings import LABELS


def draw(context: bpy.types.Context, data: VertexData, to_world: np.ndarray, view: View, look: Look) -> None:
    """Draw in pixel space of the region."""
    with legible(context) as scale:
        _draw_labels(context.region, data, to_world, view, look, scale)
    if look.compared is not None:
        end = length_text(context.scene, scale_end(data, to_world, look))
        draw_scale(context, f"Distance to {LABELS[look.compared]}", end)


def _draw_labels(
    region: bpy.types.Region, data: VertexData, to_world: np.ndarray, view: View, look: Look, scale: float
) -> None:
    to_clip = view.projection @ view.view
    for method, to_column in zip(look.methods, column_matrices(data, to_world, view, look), strict=True):
        corners = rest_box(data, to_column)
        clip = np.column_stack([corners, np.ones(len(corners))]) @ to_clip.T
        if (clip[:, 3] <= 0).any():
            # Partly behind the viewpoint: there is no place below it.
            continue
        places = (clip[:, :2] / clip[:, 3:] + 1) * (0.5 * region.width, 0.5 * region.height)
        middle, lowest = places[:, 0].mean(), places[:, 1].min()
        write(LABELS[method], middle, max(lowest - LINE_HEIGHT * scale, 8 * scale), centered=True)
