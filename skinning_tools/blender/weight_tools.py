# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the tools on the weights of a skinned mesh: the mesh to work on, its mode, and its figures."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import bpy
import numpy as np

from ..core.errors import BadScene, BadSettings
from .attributes import has_attribute, read_attribute, remove_attributes, write_attribute
from .character import mesh_meant
from .control_points import SKIN_TYPES, points_of
from .preconditions import check_mode, check_own_mesh, check_vertex_group, check_visible, object_label
from .skin_reader import check_rig, check_skinned
from .vertex_groups import read_weights

# The figures of the last compression, partition and pose test, custom properties of the mesh object.
COMPRESSION_PROPERTY = "skinning_compression"
PARTITION_PROPERTY = "skinning_partition"
POSE_TEST_PROPERTY = "skinning_pose_test"
# Of a mesh: its vertices whose bone was deleted.
_LOST = "skinning_lost"


def weighted_mesh(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The skinned mesh, or lattice, for the active object, if its weights can be changed.

    Cheap enough for a panel. Raises BadScene.
    """
    mesh_object = mesh_meant(context, active)
    check_skinned(context, mesh_object, SKIN_TYPES)
    assert mesh_object is not None
    check_own_mesh(mesh_object, "its weights cannot be changed")
    return mesh_object


def weighted_or_edited_mesh(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """``weighted_mesh``, but Edit Mode is allowed; see ``out_of_edit_mode``."""
    if active is None or active.type not in SKIN_TYPES or active.mode != "EDIT":
        return weighted_mesh(context, active)
    check_visible(context.scene, context.view_layer, active)
    check_rig(active)
    check_own_mesh(active, "its weights cannot be changed")
    return active


@contextmanager
def out_of_edit_mode(mesh_object: bpy.types.Object) -> Iterator[None]:
    """Leave Edit Mode, in which a mesh cannot be fully read or written, for the block, and enter it again.

    The edited and the selected objects stay the same: others may be in Edit Mode as well.
    """
    if mesh_object.mode != "EDIT":
        yield
        return
    objects = bpy.context.view_layer.objects
    edited = {ob for ob in objects if ob.mode == "EDIT"}
    selected = set(objects.selected)
    bpy.ops.object.mode_set(mode="OBJECT")
    try:
        yield
    finally:
        # Selected objects enter it.
        for ob in edited ^ selected:
            ob.select_set(ob in edited)
        bpy.ops.object.mode_set(mode="EDIT")
        for ob in edited ^ selected:
            ob.select_set(ob in selected)


def edit_vertices(context: bpy.types.Context, chosen: dict) -> None:
    """Enter Edit Mode of the mesh objects in ``chosen`` only, and select only their vertices given there (n,),
    unhidden. The first object becomes the active one. Blender edits objects of one type at a time: lattices among
    meshes, or meshes among lattices, stay in Object Mode."""
    view_layer = context.view_layer
    active, first = view_layer.objects.active, next(iter(chosen))
    if active is not None and active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in list(view_layer.objects.selected):
        other.select_set(False, view_layer=view_layer)
    view_layer.objects.active = first
    for mesh_object, vertices in chosen.items():
        mesh_object.select_set(True, view_layer=view_layer)
        _select_alone(mesh_object.data, vertices)
    context.scene.tool_settings.mesh_select_mode = (True, False, False)
    bpy.ops.object.mode_set(mode="EDIT")


def _select_alone(mesh: bpy.types.Mesh | bpy.types.Lattice, vertices: np.ndarray) -> None:
    selected = np.zeros(len(points_of(mesh)), bool)
    selected[vertices] = True
    points_of(mesh).foreach_set("select", selected)
    if isinstance(mesh, bpy.types.Lattice):
        return
    for parts in (mesh.edges, mesh.polygons):
        parts.foreach_set("select", np.zeros(len(parts), bool))
    hidden = np.empty(len(mesh.vertices), bool)
    mesh.vertices.foreach_get("hide", hidden)
    mesh.vertices.foreach_set("hide", hidden & ~selected)


def forget_figures(mesh_object: bpy.types.Object) -> None:
    """Remove the figures of the weights, which are no longer valid."""
    for key in (COMPRESSION_PROPERTY, PARTITION_PROPERTY, POSE_TEST_PROPERTY):
        if key in mesh_object:
            del mesh_object[key]


def lost_vertices(mesh: bpy.types.Mesh) -> np.ndarray | None:
    """(N,) bool: the vertices of deleted bones, as noted by an earlier Solve Again; None if there are none."""
    return read_attribute(mesh, _LOST) if has_attribute(mesh, _LOST, "BOOLEAN") else None


def note_lost_vertices(mesh: bpy.types.Mesh, lost: np.ndarray) -> None:
    """Note the vertices ``lost`` (N,) bool: pressed again, Solve Again still lets other bones keep their parts."""
    remove_attributes(mesh, (_LOST,))
    if lost.any():
        write_attribute(mesh, _LOST, "BOOLEAN", lost)


def forget_lost_vertices(mesh_object: bpy.types.Object, vertices: np.ndarray) -> None:
    """Remove the ``vertices`` (n,) int from that note: they have weights of another origin."""
    lost = lost_vertices(mesh_object.data) if mesh_object.type == "MESH" else None
    if lost is not None:
        lost[vertices] = False
        note_lost_vertices(mesh_object.data, lost)


def check_meshes(meshes: Iterable[bpy.types.Object], work: str) -> None:
    """Raises BadScene if the vertex groups of one of the mesh objects cannot be changed. work: as in
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
            f"Vertex groups that have to change are locked: {'; '.join(found)}. Unlock them (Object Data "
            "Properties > Vertex Groups)"
        )


def group_mask(mesh_object: bpy.types.Object, name: str, invert: bool) -> np.ndarray:
    """(N,) float64 from 0 to 1: the weights of a vertex group, or what they leave. Raises BadSettings if there is no
    such group, or it selects no vertex."""
    check_vertex_group(mesh_object, name)
    mask = np.clip(read_weights(mesh_object, [name])[1].sum(axis=1), 0, 1)
    if invert:
        mask = 1 - mask
    if not mask.any():
        whole = "weight 1 everywhere, so its inverse" if invert else "no weights, so it"
        raise BadSettings(f'The vertex group "{name}" has {whole} selects no vertex. Choose another group')
    return mask
