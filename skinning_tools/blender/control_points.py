# SPDX-License-Identifier: GPL-3.0-or-later
"""The points that have vertex groups, so that bones can move them: a mesh's vertices, and a lattice's control points.

Elsewhere in the project "vertex" means both, and a lattice counts as a body: its edges are those of its grid, its
triangles those of the faces on its outside. Points inside it hang on the edges alone.
"""

from collections.abc import Iterator

import bpy
import numpy as np

# The types of objects that can be skinned by weights.
SKIN_TYPES = ("MESH", "LATTICE")

# Their control points can follow bones by hooks alone: Blender gives them no vertex groups.
HOOKED_TYPES = ("CURVE", "SURFACE")


def points_of(data: bpy.types.Mesh | bpy.types.Lattice) -> bpy.types.bpy_prop_collection:
    """The collection of a mesh's vertices, or of a lattice's points."""
    return data.points if isinstance(data, bpy.types.Lattice) else data.vertices


def point_count(ob: bpy.types.Object) -> int:
    """The number of points of a mesh or lattice object."""
    return len(points_of(ob.data))


def stored_shapes(data: bpy.types.Mesh | bpy.types.Lattice) -> Iterator[tuple]:
    """Everything that holds positions of all points: a collection for ``foreach_get`` and its property. First the data
    itself, then its shape keys, the first one (Basis) before the others."""
    yield points_of(data), "co_deform" if isinstance(data, bpy.types.Lattice) else "co"
    if data.shape_keys is not None:
        yield from ((block.points, "co") for block in data.shape_keys.key_blocks)


def read_positions(points: bpy.types.bpy_prop_collection, name: str) -> np.ndarray:
    """(N, 3) float64 of one of ``stored_shapes``."""
    values = np.empty((len(points), 3), np.float32)
    points.foreach_get(name, values.ravel())
    return values.astype(np.float64)


def lattice_edges(lattice: bpy.types.Lattice) -> np.ndarray:
    """(E, 2) int64: the edges of a lattice's grid, inside and outside."""
    grid = _grid(lattice)
    ends = [np.column_stack([np.delete(grid, end, axis).ravel() for end in (-1, 0)]) for axis in range(3)]
    return np.concatenate(ends)


def lattice_triangles(lattice: bpy.types.Lattice, other: bool = False) -> np.ndarray:
    """(T, 3) int64: the faces on a lattice's outside, each cut into two triangles, wound as seen from outside; a flat
    lattice has each face once. other: each face cut along its other diagonal."""
    grid, quads = _grid(lattice), [np.zeros((0, 4), np.int64)]
    for axis in range(3):
        layers = np.moveaxis(grid, (axis, (axis + 1) % 3, (axis + 2) % 3), (0, 1, 2))
        for end in {0, len(layers) - 1}:
            layer = layers[end]
            corners = (layer[:-1, :-1], layer[1:, :-1], layer[1:, 1:], layer[:-1, 1:])
            quad = np.stack(corners, axis=-1).reshape(-1, 4)
            quads.append(quad if end else quad[:, ::-1])
    cut = [[0, 1, 3], [1, 2, 3]] if other else [[0, 1, 2], [0, 2, 3]]
    return np.concatenate(quads)[:, cut].reshape(-1, 3)


def _grid(lattice: bpy.types.Lattice) -> np.ndarray:
    """(U, V, W) the index of each point."""
    sizes = lattice.points_u, lattice.points_v, lattice.points_w
    return np.arange(np.prod(sizes)).reshape(sizes[::-1]).transpose()
