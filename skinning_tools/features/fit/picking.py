# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the vertex of a posed mesh under the mouse."""

import numpy as np
from mathutils.bvhtree import BVHTree

from ...core.geometry import diagonal
from ...ui.view_drawing import Pixel, View

# Pixels from the mesh's outline, at an interface scale of one, within which a vertex is found.
_NEAR = 20.0


class Picker:
    """places (N, 3) and triangles (T, 3) of the mesh, in the world. Raises nothing."""

    def __init__(self, places: np.ndarray, triangles: np.ndarray):
        self._places, self._triangles = places, triangles
        self._middle, self._size = places.mean(axis=0), diagonal(places)
        self._tree = BVHTree.FromPolygons(places.tolist(), triangles.tolist(), all_triangles=True)

    def vertex_at(self, pixel: Pixel, view: View, size: tuple[float, float], scale: float = 1.0) -> int | None:
        """The nearest corner on the screen of the foremost triangle under ``pixel`` (2,); beside the mesh, the nearest
        vertex if it is near. size: of the region in pixels; scale: of the interface."""
        begin, sight = view.line_of_sight(pixel, size)
        # From just before the mesh: Blender's single precision has few digits from far away.
        begin = begin + max(float((self._middle - begin) @ sight) - self._size, 0.0) * sight
        hit = self._tree.ray_cast(begin.tolist(), sight.tolist())[2]
        found = np.arange(len(self._places)) if hit is None else self._triangles[hit]
        away = np.linalg.norm(view.on_screen(self._places[found], size) - np.asarray(pixel), axis=1)
        if not np.isfinite(away).any():
            return None
        nearest = int(np.nanargmin(away))
        return int(found[nearest]) if hit is not None or away[nearest] <= _NEAR * scale else None
