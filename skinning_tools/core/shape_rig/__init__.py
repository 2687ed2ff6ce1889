# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones and weights that do what shapes do, so that a mixture of shapes is the sum of the bones' motions."""

from .mirror import mirrored_axes, unpaired_sliders
from .motion import motions
from .naming import bone_names
from .sharing import share_bones
from .solver import solve_shapes
from .types import Settings, ShapeRig, Shapes

__all__ = [
    "Settings",
    "ShapeRig",
    "Shapes",
    "bone_names",
    "mirrored_axes",
    "motions",
    "share_bones",
    "solve_shapes",
    "unpaired_sliders",
]
