# SPDX-License-Identifier: GPL-3.0-or-later
"""The active vertex, with the data that the mesh stores for it in any mode, or the selected vertices. Cheap enough for
a redraw."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bmesh
import bpy
import numpy as np


@dataclass(frozen=True, eq=False)
class ActiveVertex:
    """index in the mesh; position (3,) in the edited mesh, or in the first shape key outside of Edit Mode; vectors and
    numbers: the values of the requested point attributes that the mesh has; groups: weights by the names of the vertex
    groups."""

    index: int
    position: np.ndarray
    vectors: dict[str, np.ndarray]
    numbers: dict[str, int]
    groups: dict[str, float]


def active_vertex(
    mesh_object: bpy.types.Object | None, vectors: Sequence[str] = (), numbers: Sequence[str] = ()
) -> ActiveVertex | None:
    """The active vertex in Edit Mode, or the only selected vertex in any mode; None if there is no single one. vectors,
    numbers: names of attributes to read, FLOAT_VECTOR and INT."""
    if mesh_object is None or mesh_object.type != "MESH":
        return None
    names = {group.index: group.name for group in mesh_object.vertex_groups}
    mesh = mesh_object.data
    if mesh_object.mode == "EDIT":
        with _edited_vertex(mesh) as found:
            if found is None:
                return None
            vertex, layers = found
            weights = vertex[layers.deform.active].items() if layers.deform.active is not None else ()
            return ActiveVertex(
                vertex.index,
                np.array(vertex.co),
                {name: np.array(vertex[layers.float_vector[name]]) for name in vectors if name in layers.float_vector},
                {name: vertex[layers.int[name]] for name in numbers if name in layers.int},
                {names[group]: weight for group, weight in weights if group in names},
            )
    selected = selected_vertices(mesh)
    if np.count_nonzero(selected) != 1:
        return None
    return stored_vertex(mesh_object, int(np.argmax(selected)), vectors, numbers)


def selected_vertices(mesh: bpy.types.Mesh) -> np.ndarray:
    """(N,) bool: whether each vertex is selected, outside of Edit Mode."""
    selected = np.empty(len(mesh.vertices), bool)
    mesh.vertices.foreach_get("select", selected)
    return selected


def stored_vertex(
    mesh_object: bpy.types.Object, index: int, vectors: Sequence[str] = (), numbers: Sequence[str] = ()
) -> ActiveVertex:
    """The vertex ``index`` of a mesh object, outside of Edit Mode."""
    mesh = mesh_object.data
    names = {group.index: group.name for group in mesh_object.vertex_groups}
    points = mesh.shape_keys.reference_key.points if mesh.shape_keys is not None else mesh.vertices
    attributes = mesh.attributes
    return ActiveVertex(
        index,
        np.array(points[index].co),
        {name: np.array(attributes[name].data[index].vector) for name in vectors if name in attributes},
        {name: attributes[name].data[index].value for name in numbers if name in attributes},
        {names[item.group]: item.weight for item in mesh.vertices[index].groups if item.group in names},
    )


@contextmanager
def _edited_vertex(mesh: bpy.types.Mesh) -> Iterator:
    """The vertex (with a valid index) and the layers of a mesh in Edit Mode, or None."""
    edited = bmesh.from_edit_mesh(mesh)
    try:
        vertex = edited.select_history.active
        if not isinstance(vertex, bmesh.types.BMVert) or not vertex.select:
            vertex = None
            if mesh.total_vert_sel == 1:
                vertex = next((each for each in edited.verts if each.select), None)
        if vertex is not None:
            edited.verts.index_update()
        yield None if vertex is None else (vertex, edited.verts.layers)
    finally:
        # Blender's Edit Mode owns the bmesh: drop the reference, do not free it.
        del edited
