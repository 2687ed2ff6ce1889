# SPDX-License-Identifier: GPL-3.0-or-later
"""The error attribute as colors that the viewport shows in its solid mode."""

import numpy as np

ERROR_ATTRIBUTE = "skinning_error"
COLOR_ATTRIBUTE = "skinning_error_color"

# The colors that weight painting has accustomed artists to: blue is none, red is most.
RAMP = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def has_error(object) -> bool:
    return object is not None and object.type == "MESH" and ERROR_ATTRIBUTE in object.data.attributes


def shows_error(object) -> bool:
    return has_error(object) and COLOR_ATTRIBUTE in object.data.color_attributes


def error_colors(errors: np.ndarray) -> np.ndarray:
    """(N, 4) float32 colors of ``errors`` (N,), the largest of which is red."""
    largest = float(errors.max(initial=0.0))
    positions = (errors / largest if largest > 0 else np.zeros(len(errors))) * (len(RAMP) - 1)
    colors = np.ones((len(errors), 4), np.float32)
    for channel in range(3):
        colors[:, channel] = np.interp(positions, np.arange(len(RAMP)), RAMP[:, channel])
    return colors


def add_error_colors(object) -> float:
    """Add the color attribute, make it the active one, and return the largest error (scene units)."""
    mesh = object.data
    errors = np.empty(len(mesh.vertices), np.float32)
    mesh.attributes[ERROR_ATTRIBUTE].data.foreach_get("value", errors)
    attribute = mesh.color_attributes.new(COLOR_ATTRIBUTE, "FLOAT_COLOR", "POINT")
    attribute.data.foreach_set("color", error_colors(errors).ravel())
    mesh.attributes.active_color = attribute
    return float(errors.max(initial=0.0))


def remove_error_colors(object) -> None:
    colors = object.data.color_attributes
    if COLOR_ATTRIBUTE in colors:
        colors.remove(colors[COLOR_ATTRIBUTE])
