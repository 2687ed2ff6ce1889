# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools on the weights of a skinned mesh share: which mesh is meant, in which mode, and its figures."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import bpy
import numpy as np

from ..core.errors import BadScene
from .character import character_of
from .preconditions import check_mode, check_own_mesh, check_visible, object_label
from .skin_reader import check_rig

# The figures of the last compression and partition, custom properties of the mesh object.
COMPRESSION_PROPERTY = "skinning_compression"
PARTITION_PROPERTY = "skinning_partition"


def weighted_mesh(context: bpy.types.Context, object: bpy.types.Object | None) -> bpy.types.Object:
    """The skinned mesh that is meant where ``object`` is active, if its weights can be changed.

    Cheap enough for a panel. Raises BadScene.
    """
    object = character_of(context, object)
    check_own_mesh(object, "its weights cannot be changed")
    return object


def weighted_or_edited_mesh(context: bpy.types.Context, object: bpy.types.Object | None) -> bpy.types.Object:
    """``weighted_mesh``, which also may be in Edit Mode; see ``out_of_edit_mode``."""
    if object is None or object.type != "MESH" or object.mode != "EDIT":
        return weighted_mesh(context, object)
    check_visible(context.scene, context.view_layer, object)
    check_rig(object)
    check_own_mesh(object, "its weights cannot be changed")
    return object


@contextmanager
def out_of_edit_mode(object: bpy.types.Object) -> Iterator[None]:
    """In Edit Mode a mesh cannot be read in full, nor be written to: leave it, and enter it again.

    What is edited and what is selected stay the same: others may be in Edit Mode as well.
    """
    if object.mode != "EDIT":
        yield
        return
    objects = bpy.context.view_layer.objects
    edited = {ob for ob in objects if ob.mode == "EDIT"}
    selected = set(objects.selected)
    bpy.ops.object.mode_set(mode="OBJECT")
    try:
        yield
    finally:
        # Those that are selected enter it.
        for ob in edited ^ selected:
            ob.select_set(ob in edited)
        bpy.ops.object.mode_set(mode="EDIT")
        for ob in edited ^ selected:
            ob.select_set(ob in selected)


def edit_vertices(context: bpy.types.Context, chosen: dict) -> None:
    """Edit Mode of mesh objects alone with vertex selection, in which ``chosen``, indices (n,) of each, alone are
    selected, and not hidden. The first object is the active one."""
    view_layer = context.view_layer
    active, first = view_layer.objects.active, next(iter(chosen))
    if active is not None and active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in list(view_layer.objects.selected):
        other.select_set(False, view_layer=view_layer)
    view_layer.objects.active = first
    for object, vertices in chosen.items():
        object.select_set(True, view_layer=view_layer)
        _select_alone(object.data, vertices)
    context.scene.tool_settings.mesh_select_mode = (True, False, False)
    bpy.ops.object.mode_set(mode="EDIT")


def _select_alone(mesh, vertices: np.ndarray) -> None:
    for parts in (mesh.edges, mesh.polygons):
        parts.foreach_set("select", np.zeros(len(parts), bool))
    selected, hidden = np.zeros(len(mesh.vertices), bool), np.empty(len(mesh.vertices), bool)
    selected[vertices] = True
    mesh.vertices.foreach_get("hide", hidden)
    mesh.vertices.foreach_set("hide", hidden & ~selected)
    mesh.vertices.foreach_set("select", selected)


def check_unchanged(object: bpy.types.Object, vertex_count: int) -> None:
    """Raises BadScene where the mesh got other vertices while its weights were worked on."""
    if len(object.data.vertices) != vertex_count:
        raise BadScene(f"The {object_label(object)} was edited meanwhile. Start again")


def forget_figures(object: bpy.types.Object) -> None:
    """What was counted in the weights holds no more."""
    for key in (COMPRESSION_PROPERTY, PARTITION_PROPERTY):
        if key in object:
            del object[key]


def check_meshes(meshes: Iterable[bpy.types.Object], work: str) -> None:
    """Raises BadScene where the vertex groups of one of the mesh objects cannot be changed. work: as in
    ``preconditions.check_own_mesh``."""
    for ob in meshes:
        check_own_mesh(ob, work)
        check_mode(ob)


def check_unlocked(meshes: Iterable[bpy.types.Object], names: Collection[str]) -> None:
    """Raises BadScene with the vertex groups of ``names`` that are locked."""
    found = []
    for ob in meshes:
        locked = [f'"{name}"' for name in names if name in ob.vertex_groups and ob.vertex_groups[name].lock_weight]
        if locked:
            found.append(f"{', '.join(dict.fromkeys(locked))} of {object_label(ob)}")
    if found:
        raise BadScene(
            f"Vertex groups are locked that would have to change: {'; '.join(found)}. Unlock them (Object Data "
            "Properties > Vertex Groups)"
        )
