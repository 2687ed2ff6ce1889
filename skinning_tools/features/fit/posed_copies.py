# SPDX-License-Identifier: GPL-3.0-or-later
"""Posed copies of a mesh, whose vertices the artist moves to where the weights are to bring them.

A copy keeps, as attributes of its mesh, where each vertex was at rest and in the pose, and as a custom property the
bones' matrices: the armature may move on, the file be saved and read again.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bmesh
import bpy
import numpy as np
from mathutils import Matrix

from ...blender.active_vertex import selected_vertices
from ...blender.character import character_of, chosen_mesh
from ...blender.fit_poses import MeshPose, check_bent, check_fittable, check_shown, read_pose
from ...blender.local_collections import collections_beside
from ...blender.look_ups import Index
from ...blender.preconditions import object_label, unmet
from ...blender.records import read_record, write_record
from ...blender.skin_reader import armature_of, rest_positions
from ...core.errors import BadMesh, BadScene

REST_ATTRIBUTE = "skinning_fit_rest"
SHAPE_ATTRIBUTE = "skinning_fit_shape"
INDEX_ATTRIBUTE = "skinning_fit_index"
ATTRIBUTES = (REST_ATTRIBUTE, SHAPE_ATTRIBUTE, INDEX_ATTRIBUTE)
_POSE = "skinning_fit_pose"
# Names of the objects that were selected before.
_SELECTED = "skinning_fit_selected"


@dataclass(frozen=True)
class _StoredPose:
    """bones: names of the deforming ones; matrices: 12 numbers each, row by row."""

    bones: tuple[str, ...]
    matrices: tuple[float, ...]


def is_copy(object) -> bool:
    """Whether an object is a posed copy, of a mesh that may be gone."""
    return object is not None and object.type == "MESH" and object.get(_POSE) is not None


_copies = Index(lambda ob: is_copy(ob) or None, "MESH")


def copies_in(scene) -> list[bpy.types.Object]:
    """All posed copies in the scene. Cheap enough for a panel."""
    return _copies.at(True, within=scene)


def original_of(copy):
    """The mesh object that a posed copy was made of, None where it is gone. Raises nothing: for panels."""
    return copy.skinning_fit_copy.mesh if is_copy(copy) else None


def copies_of(object, scene) -> list[bpy.types.Object]:
    """The posed copies of a mesh object in the scene, by name."""
    return [ob for ob in copies_in(scene) if original_of(ob) == object]


def fit_target(context, object):
    """The mesh object that is meant where ``object`` is active: itself, that of a copy, or what an armature deforms.

    Raises BadScene where there is none, or more than one.
    """
    if is_copy(object):
        original = original_of(object)
        if original is None:
            raise BadScene(f'The mesh that "{object.name}" was copied from is gone. Remove the copy by Cancel')
        return original
    if object is not None and object.type == "ARMATURE":
        # The mesh is hidden while there are copies of it.
        copied = {original_of(ob) for ob in copies_in(context.scene)} - {None}
        chosen = chosen_mesh(context, object)
        meshes = [ob for ob in copied if armature_of(ob) == object and chosen in (None, ob)]
        if len(meshes) == 1:
            return meshes[0]
    if object is not None and object.type == "MESH" and copies_of(object, context.scene):
        return object
    return character_of(context, object)


def check_startable(context, object) -> None:
    """Raises BadScene with the reason why no posed copy can be made with ``object`` active. Cheap."""
    original = fit_target(context, object)
    if is_copy(object):
        _check_left(object)
    check_fittable(context, original)
    if not copies_of(original, context.scene):
        check_shown(context, original)


def start(context, object) -> bpy.types.Object:
    """Make a posed copy of the mesh that is meant, in place of which it is shown, and make it active; returns it.

    Raises BadScene, BadMesh.
    """
    check_startable(context, object)
    original = fit_target(context, object)
    others = copies_of(original, context.scene)
    pose = read_pose(context, original)
    check_bent(original, pose)
    first = others[0].skinning_fit_copy if others else None
    was_visible = first.hid_mesh if first else original.visible_get(view_layer=context.view_layer)
    active, mode = (first.active, first.mode) if first else (object, object.mode)
    selected = others[0].get(_SELECTED, []) if others else [ob.name for ob in context.selected_objects]
    if object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    copy = _new_copy(context, original, pose)
    group = copy.skinning_fit_copy
    group.mesh, group.hid_mesh = original, was_visible
    group.active, group.mode = active, mode
    copy[_SELECTED] = selected
    group.frame = context.scene.frame_current
    group.fingerprint = _fingerprint(original)
    show(context, original, copy)
    return copy


def show(context, original, copy) -> None:
    """Let ``copy`` be the one of the copies that is seen, active and selected alone; the original is hidden."""
    for ob in [original, *copies_of(original, context.scene)]:
        if ob.name in context.view_layer.objects:
            ob.hide_set(ob != copy, view_layer=context.view_layer)
    _activate(context, copy)
    space = context.space_data
    if space is not None and space.type == "VIEW_3D" and space.local_view is not None:
        copy.local_view_set(space, True)


def read_copy(copy, original) -> tuple[MeshPose, np.ndarray, np.ndarray]:
    """The pose that a copy was made in, where its vertices (N, 3) are by now, in the mesh object's space, and which are
    selected (N,). In any mode.

    Raises BadScene, BadMesh where copy, mesh or armature are no longer what they were when the copy was made.
    """
    _check_left(copy)
    with _readable_mesh(copy) as mesh:
        return _read(copy, mesh, original)


def _read(copy, mesh, original) -> tuple[MeshPose, np.ndarray, np.ndarray]:
    group = copy.skinning_fit_copy
    again = 'Undo that, or press Cancel and start again; "Other Object" takes any mesh with as many vertices'
    count, expected = len(mesh.vertices), len(original.data.vertices)
    if count != expected:
        raise BadMesh(
            f'The copy "{copy.name}" has {count:,} vertices and {object_label(original)} {expected:,}: vertices of '
            f"one of them were added or removed. {again}"
        )
    bones, matrices = stored_bones(copy)
    order = np.empty(count, np.int32)
    whole = bool(bones) and all(name in mesh.attributes for name in ATTRIBUTES)
    if whole:
        mesh.attributes[INDEX_ATTRIBUTE].data.foreach_get("value", order)
        whole = np.array_equal(order, np.arange(count))
    if not whole:
        raise BadMesh(f'The vertices of the copy "{copy.name}" are not those it was made with. {again}')
    if group.fingerprint != _fingerprint(original):
        raise BadMesh(
            f'The mesh of {object_label(original)} was edited after "{copy.name}" was copied from it. '
            "Press Cancel and start again"
        )
    pose = MeshPose(bones, matrices, _vectors(mesh, REST_ATTRIBUTE), _vectors(mesh, SHAPE_ATTRIBUTE))
    to_mesh = np.array(group.to_mesh, dtype=np.float64)
    return pose, _vectors(mesh, "position") @ to_mesh[:3, :3].T + to_mesh[:3, 3], selected_vertices(mesh)


@contextmanager
def _readable_mesh(copy) -> Iterator[bpy.types.Mesh]:
    """The copy's mesh, in Edit Mode one that is as it is being edited."""
    if copy.mode != "EDIT":
        yield copy.data
        return
    mesh = bpy.data.meshes.new("skinning_fit")
    try:
        bmesh.from_edit_mesh(copy.data).to_mesh(mesh)
        yield mesh
    finally:
        bpy.data.meshes.remove(mesh)


def stored_bones(copy) -> tuple[tuple[str, ...], np.ndarray]:
    """The bones of the pose that a copy was made in and their matrices (P, 3, 4); none where they are lost."""
    stored = read_record(copy, _POSE, _StoredPose)
    if stored is None or len(stored.matrices) != 12 * len(stored.bones):
        return (), np.zeros((0, 3, 4))
    return stored.bones, np.reshape(stored.matrices, (-1, 3, 4))


def check_bones(copy, original, names) -> None:
    """Raises BadScene where the deforming bones ``names`` are not those that the copy was made with."""
    then, now = set(stored_bones(copy)[0]), set(names)
    if then == now:
        return
    armature = armature_of(original)
    name = sorted(then ^ now)[0]
    what = "has no deforming bone" if name in then else "has by now the deforming bone"
    raise BadScene(
        f'The armature "{armature.name}" {what} "{name}", unlike when "{copy.name}" was made. Undo what was renamed, '
        "added or removed, or press Cancel and start again"
    )


def remove(context, copies) -> None:
    """Remove posed copies, show what they were made of, and give the user back what was active before."""
    copies = list(copies)
    view_layer = context.view_layer
    active = view_layer.objects.active
    was_active = active in copies
    _leave_modes(view_layer, copies)
    shown, wanted, mode, selected = [], None, "OBJECT", None
    for copy in copies:
        group, selected = copy.skinning_fit_copy, copy.get(_SELECTED)
        wanted, mode = group.active or group.mesh or wanted, group.mode
        if group.hid_mesh and group.mesh is not None:
            shown.append(group.mesh)
        mesh = copy.data
        bpy.data.objects.remove(copy)
        if not mesh.users:
            bpy.data.meshes.remove(mesh)
    view_layer.update()
    for original in shown:
        if original.name in view_layer.objects and not copies_of(original, context.scene):
            original.hide_set(False, view_layer=view_layer)
    if was_active and wanted is not None and wanted.name in view_layer.objects and wanted.visible_get():
        _activate(context, wanted, selected)
        if wanted.mode != mode:
            bpy.ops.object.mode_set(mode=mode)


def _leave_modes(view_layer, copies) -> None:
    """Bring copies to Object Mode, which only the active object can be told to go to: an edited one must not go."""
    active = view_layer.objects.active
    for copy in copies:
        if copy.mode != "OBJECT":
            view_layer.objects.active = copy
            bpy.ops.object.mode_set(mode="OBJECT")
    view_layer.objects.active = active


def _new_copy(context, original, pose: MeshPose) -> bpy.types.Object:
    """The mesh object as posed, where the original is in the world, with what ``read_copy`` asks for."""
    mesh = _posed_mesh(original, pose)
    copy = bpy.data.objects.new(f"{original.name}_fit", mesh)
    for slot, other in zip(copy.material_slots, original.material_slots, strict=False):
        slot.link = other.link
        slot.material = other.material
    copy.color = original.color
    # The mesh itself, which only the view hides, is what is rendered.
    copy.hide_render = True
    for collection in collections_beside(context, original):
        collection.objects.link(copy)
    world = original.matrix_world.copy()
    copy.matrix_world = world
    context.view_layer.update()
    to_mesh = Matrix.Identity(4)
    placed, wanted = np.array(copy.matrix_world), np.array(world)
    if np.abs(placed - wanted).max() > 1e-5 * np.abs(wanted).max():
        # An object by itself cannot be sheared, its mesh can.
        mesh.transform(world)
        copy.matrix_world = Matrix.Identity(4)
        to_mesh = world.inverted()
    copy.skinning_fit_copy.to_mesh = to_mesh
    write_record(copy, _POSE, _StoredPose(pose.bones, tuple(pose.matrices.ravel().tolist())))
    return copy


def _posed_mesh(original, pose: MeshPose) -> bpy.types.Mesh:
    """The original's mesh without shape keys, as posed, with the attributes of a copy."""
    mesh = bpy.data.meshes.new_from_object(original)
    mesh.name = f"{original.name}_fit"
    for key in list(mesh.keys()):
        del mesh[key]
    mesh.attributes["position"].data.foreach_set("vector", pose.shape.astype(np.float32).ravel())
    for name, values in ((REST_ATTRIBUTE, pose.rest), (SHAPE_ATTRIBUTE, pose.shape)):
        attribute = mesh.attributes.new(name, "FLOAT_VECTOR", "POINT")
        attribute.data.foreach_set("vector", values.astype(np.float32).ravel())
    attribute = mesh.attributes.new(INDEX_ATTRIBUTE, "INT", "POINT")
    attribute.data.foreach_set("value", np.arange(len(pose.shape), dtype=np.int32))
    mesh.update()
    return mesh


def _check_left(copy) -> None:
    """Raises BadScene in a mode in which the vertices of a copy cannot be read."""
    if copy.mode == "SCULPT" and copy.use_dynamic_topology_sculpting:
        raise BadScene(f'Dyntopo is on for "{copy.name}", which makes other vertices. Disable it')
    if copy.mode != "EDIT" and copy.data.is_editmode:
        raise unmet("SHARED_MESH_IN_EDIT_MODE", object=object_label(copy))


def _fingerprint(original) -> str:
    """Of the mesh's vertices at rest."""
    return f"{zlib.crc32(rest_positions(original.data).astype(np.float32).tobytes()):08x}"


def _vectors(mesh, name: str) -> np.ndarray:
    """(N, 3) float64 of a point attribute."""
    values = np.empty((len(mesh.vertices), 3), np.float32)
    mesh.attributes[name].data.foreach_get("vector", values.ravel())
    return values.astype(np.float64)


def _activate(context, object, selected=None) -> None:
    """Make ``object``, which is visible, the active one, and select it alone, or those of the names ``selected``."""
    view_layer = context.view_layer
    for ob in view_layer.objects:
        wanted = ob == object if selected is None else ob.name in selected
        if ob.select_get(view_layer=view_layer) != wanted:
            ob.select_set(wanted, view_layer=view_layer)
    view_layer.objects.active = object
