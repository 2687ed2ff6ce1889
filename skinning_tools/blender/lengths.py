# SPDX-License-Identifier: GPL-3.0-or-later
"""Lengths in the interface. One rule: a length is a distance in the world, in the scene's units.

Measurements in a mesh's own space are therefore converted to the world first, with ``bodies.stretch_of``, which removes
the scale of the object and of its parents.
"""

import bpy
import numpy as np

# The scene's Unit of Length in meters, and its suffix. "Adaptive" is left to Blender.
_UNITS = {
    "KILOMETERS": (1000.0, " km"),
    "METERS": (1.0, " m"),
    "CENTIMETERS": (0.01, " cm"),
    "MILLIMETERS": (0.001, " mm"),
    "MICROMETERS": (1e-6, " µm"),
    "MILES": (1609.344, " mi"),
    "FEET": (0.3048, "'"),
    "INCHES": (0.0254, '"'),
    "THOU": (0.0254e-3, " thou"),
}


def length_text(scene: bpy.types.Scene, length: float, precision: int = 4, adaptive: bool = False) -> str:
    """A distance in the world as text in the scene's units: their system, scale and unit of length.

    precision: decimals, or digits if the unit of length is fixed. adaptive: in the unit that fits its size, even if the
    scene has a fixed one.
    """
    settings = scene.unit_settings
    if settings.system == "NONE":
        return bpy.utils.units.to_string("NONE", "LENGTH", length, precision=precision)
    meters = length * settings.scale_length
    size, ending = (0.0, "") if adaptive else _UNITS.get(settings.length_unit, (0.0, ""))
    if not size:
        return bpy.utils.units.to_string(settings.system, "LENGTH", meters, precision=precision)
    return np.format_float_positional(meters / size, precision=precision, fractional=False, trim="-") + ending
