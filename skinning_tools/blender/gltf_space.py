# SPDX-License-Identifier: GPL-3.0-or-later
"""The space in which Blender's glTF exporter writes skinned meshes: the world, with glTF's axes."""

import numpy as np

from ..core.geometry import transform_points


def in_gltf_space(points: np.ndarray, to_world: np.ndarray, y_up: bool) -> np.ndarray:
    """``points`` (N, 3) of a skinned mesh in the space of exported positions; to_world (4, 4) of the mesh object."""
    return gltf_axes(transform_points(points, to_world), y_up)


def gltf_axes(vectors: np.ndarray, y_up: bool) -> np.ndarray:
    """World ``vectors`` (…, 3) in the file's axes: with y_up, (x, y, z) becomes (x, z, −y)."""
    return vectors[..., [0, 2, 1]] * [1.0, 1.0, -1.0] if y_up else vectors
