# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning of points, normals and tangents: linear blend, dual quaternion, centers of rotation. Arrays only."""

from ..rotations import polar_decomposition
from .blend import METHODS, skin_frame, skin_frames, vertex_transforms
from .influences import convex_influences, strongest_influences
from .surface import (
    blended_normals,
    blended_tangents,
    dominant_transforms,
    transformed_normals,
    transformed_tangents,
    vertex_normals,
)

__all__ = [
    "METHODS",
    "blended_normals",
    "blended_tangents",
    "convex_influences",
    "dominant_transforms",
    "polar_decomposition",
    "skin_frame",
    "skin_frames",
    "strongest_influences",
    "transformed_normals",
    "transformed_tangents",
    "vertex_normals",
    "vertex_transforms",
]
