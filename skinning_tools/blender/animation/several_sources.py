# SPDX-License-Identifier: GPL-3.0-or-later
"""Several objects that are converted together: which objects, and their transform into the space of one of them."""

from collections.abc import Iterable, Sequence

import bpy
import numpy as np
from mathutils import Matrix

from ...core.errors import BadScene
from ..object_checks import check_object
from ..preconditions import object_label, type_name, unmet

# Often selected along with meshes, with no shape that a conversion could leave out.
_WITHOUT_SHAPE = {"ARMATURE", "LATTICE", "EMPTY", "LIGHT", "LIGHT_PROBE", "CAMERA", "SPEAKER"}
# Relative to the largest singular value of a world matrix; below this, the matrix has no usable inverse.
_SINGULAR = 1e-6


def other_sources(context: bpy.types.Context, active: bpy.types.Object | None) -> tuple:
    """The selected meshes besides ``active``, in the order of their names; cheap enough for a panel.

    Skips objects without a shape (lights, cameras, empties, armatures). Raises BadScene for an object with a shape that
    is not a mesh, since it would be missing from the result without notice.
    """
    others = [ob for ob in context.view_layer.objects.selected if ob != active]
    for ob in others:
        if ob.type != "MESH" and (ob.type not in _WITHOUT_SHAPE or ob.instance_type == "COLLECTION"):
            kind = "Collection Instance" if ob.instance_type == "COLLECTION" else type_name(ob)
            raise unmet("NOT_A_MESH", object=ob, type=kind, remedy="Deselect it, or convert it to a mesh")
    return tuple(sorted((ob for ob in others if ob.type == "MESH"), key=lambda ob: ob.name_full))


def check_sources(context: bpy.types.Context, objects: Iterable[bpy.types.Object | None]) -> None:
    """Raises BadScene if one of the objects cannot be read, with the reason."""
    for ob in objects:
        check_object(context, ob)


def sources_label(objects: Sequence[bpy.types.Object]) -> str:
    """What messages call the objects; the first is the one that the others are converted with."""
    first, count = object_label(objects[0]), len(objects) - 1
    return f"{first} with {count} other{'s' if count > 1 else ''}" if count else first


def to_space_of(first: bpy.types.Object, other: bpy.types.Object, frame: float) -> np.ndarray | None:
    """(4, 4) float64: from the space of the evaluated object ``other`` to that of ``first``, None if they are the same.

    Raises BadScene, naming object and frame, if ``first`` is scaled to nothing, so that its space cannot hold the
    other.
    """
    to_world, world = (np.array(ob.matrix_world, dtype=np.float64) for ob in (other, first))
    if np.array_equal(to_world, world):
        return None
    values = np.linalg.svd(world[:3, :3], compute_uv=False)
    if not values[2] > _SINGULAR * values[0]:
        raise BadScene(
            f"The {object_label(first)} is scaled to nothing at frame {frame:g}, so {object_label(other)} cannot be "
            "converted in its space. Make another object the active one, or leave that frame out of the range"
        )
    return np.linalg.solve(world, to_world)


def move_mesh(mesh: bpy.types.Mesh, matrix: np.ndarray) -> None:
    """Transform a mesh with all its directional data into another space; normals still point outward."""
    size = np.linalg.det(matrix[:3, :3])
    normals = None
    if size and mesh.has_custom_normals:
        normals, order = _corner_normals(mesh) @ np.linalg.inv(matrix[:3, :3]), _corner_order(mesh)
    mesh.transform(Matrix(matrix.tolist()))
    if size < 0:
        mesh.flip_normals()
    if normals is not None:
        # Blender stores them relative to the corner's own frame, which a flip or an uneven scale changes.
        moved = np.empty_like(normals)
        moved[_corner_order(mesh)] = normals[order]
        mesh.normals_split_custom_set(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def _corner_normals(mesh: bpy.types.Mesh) -> np.ndarray:
    """(L, 3) float64 normals."""
    normals = np.empty((len(mesh.loops), 3), np.float32)
    mesh.corner_normals.foreach_get("vector", normals.ravel())
    return normals.astype(np.float64)


def _corner_order(mesh: bpy.types.Mesh) -> np.ndarray:
    """(L,) the corners in an order that flipped faces do not change: by face, then by vertex."""
    counts = np.empty(len(mesh.polygons), np.int32)
    mesh.polygons.foreach_get("loop_total", counts)
    vertices = np.empty(len(mesh.loops), np.int32)
    mesh.loops.foreach_get("vertex_index", vertices)
    return np.lexsort((vertices, np.repeat(np.arange(len(counts)), counts)))
