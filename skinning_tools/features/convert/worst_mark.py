# SPDX-License-Identifier: GPL-3.0-or-later
"""The vertex that Go to Worst Frame marks in the views. It is kept in memory only, not in the file."""

from typing import NamedTuple

import bpy
from mathutils import Vector

from ...blender.conversions import Result, rig_of
from ...blender.data_blocks import object_again
from .result import worst_frame, worst_vertex


class Mark(NamedTuple):
    """A vertex at a frame. uid: of its object, to tell it from others of the same name."""

    name: str
    uid: int
    vertex: int
    frame: int


_mark: Mark | None = None


def set_mark(result: Result) -> Mark | None:
    """Mark the result's worst vertex at its worst frame; None, and nothing is marked, if it is not known."""
    global _mark
    found = worst_vertex(result)
    frame = worst_frame(result.figures)
    if found is None or frame is None:
        _mark = None
    else:
        _mark = Mark(found[0].name, found[0].session_uid, found[1], round(frame))
    return _mark


def clear_mark() -> None:
    global _mark
    _mark = None


def marked(context: bpy.types.Context, result: Result | None = None) -> tuple[bpy.types.Object, Mark] | None:
    """The object and its mark at the marked frame, else None; with ``result``, only if it belongs to that result."""
    if _mark is None or context.scene.frame_current != _mark.frame:
        return None
    ob = object_again(_mark.name, _mark.uid)
    if ob is None or _mark.vertex >= len(ob.data.vertices):
        return None
    if (result is not None and ob not in result.meshes) or not ob.visible_get(view_layer=context.view_layer):
        return None
    return ob, _mark


def place_of(context: bpy.types.Context, mesh_object: bpy.types.Object, mark: Mark) -> Vector:
    """The marked vertex in world space, as last evaluated by the view layer."""
    depsgraph = context.view_layer.depsgraph
    evaluated = mesh_object.evaluated_get(depsgraph) if depsgraph is not None else mesh_object
    vertices = evaluated.data.vertices
    # A modifier added later may have renumbered the vertices.
    if len(vertices) == len(mesh_object.data.vertices):
        return evaluated.matrix_world @ vertices[mark.vertex].co
    return evaluated.matrix_world @ _skinned(mesh_object, mark.vertex, depsgraph)


def _skinned(mesh_object: bpy.types.Object, vertex: int, depsgraph: bpy.types.Depsgraph) -> Vector:
    """A vertex deformed by shape keys and armature only, in object space."""
    place = _keyed(mesh_object.data, vertex)
    rig = rig_of(mesh_object)
    if rig is None:
        return place
    posed = rig.evaluated_get(depsgraph)
    groups = {group.index: group.name for group in mesh_object.vertex_groups}
    to_rig = posed.matrix_world.inverted_safe() @ mesh_object.evaluated_get(depsgraph).matrix_world
    moved, total = Vector((0.0, 0.0, 0.0)), 0.0
    for element in mesh_object.data.vertices[vertex].groups:
        pose_bone = posed.pose.bones.get(groups.get(element.group, ""))
        if pose_bone is not None and pose_bone.bone.use_deform:
            moved += element.weight * (
                pose_bone.matrix @ pose_bone.bone.matrix_local.inverted_safe() @ (to_rig @ place)
            )
            total += element.weight
    return to_rig.inverted_safe() @ (moved / total) if total else place


def _keyed(mesh: bpy.types.Mesh, vertex: int) -> Vector:
    keys = mesh.shape_keys
    if keys is None:
        return mesh.vertices[vertex].co.copy()
    place = keys.reference_key.data[vertex].co.copy()
    for key in keys.key_blocks:
        if not key.mute:
            place += key.value * (key.data[vertex].co - key.relative_key.data[vertex].co)
    return place
