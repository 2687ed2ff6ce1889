# SPDX-License-Identifier: GPL-3.0-or-later
"""Lengths as they are shown. One rule: a length is a distance in the world, told in the scene's units.

What is measured in a mesh's own space is therefore taken to the world first, by ``bodies.stretch_of``: neither a scale
of the object nor one of its parents is left in it.
"""

import bpy
import numpy as np

# What the scene's Unit of Length is in meters, and how it is written. "Adaptive" is Blender's own choice.
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


def length_text(scene: bpy.types.Scene, length: float, precision: int = 4) -> str:
    """A distance in the world as the scene's units have it: their system, scale and unit of length.

    precision: decimals, or digits where the unit of length is a fixed one.
    """
    settings = scene.unit_settings
    if settings.system == "NONE":
        return bpy.utils.units.to_string("NONE", "LENGTH", length, precision=precision)
    meters = length * settings.scale_length
    size, ending = _UNITS.get(settings.length_unit, (0.0, ""))
    if not size:
        return bpy.utils.units.to_string(settings.system, "LENGTH", meters, precision=precision)
    return np.format_float_positional(meters / size, precision=precision, fractional=False, trim="-") + ending
