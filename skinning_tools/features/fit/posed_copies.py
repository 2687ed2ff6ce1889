# SPDX-License-Identifier: GPL-3.0-or-later
"""Posed copies of a mesh, whose vertices the artist moves to where the weights should bring them.

A copy stores each vertex's rest and posed positions as mesh attributes, and the bones' matrices as a custom property,
so the armature may move and the file may be saved and loaded in between.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bmesh
import bpy
import numpy as np
from mathutils import Matrix

from ...blender.active_vertex import selected_vertices
from ...blender.attributes import has_attribute, read_attribute, write_attribute
from ...blender.character import character_of, chosen_mesh
from ...blender.fit_poses import MeshPose, check_bent, check_fittable, check_shown, read_pose
from ...blender.local_collections import collections_beside
from ...blender.look_ups import Index
from ...blender.preconditions import object_label, unmet
from ...blender.records import checksum, has_checksum, read_record, write_record
from ...blender.skin_reader import armature_of, rest_positions
from ...core.errors import BadMesh, BadScene
from ...core.geometry import transform_points

REST_ATTRIBUTE = "skinning_fit_rest"
SHAPE_ATTRIBUTE = "skinning_fit_shape"
INDEX_ATTRIBUTE = "skinning_fit_index"
_KINDS = {REST_ATTRIBUTE: "FLOAT_VECTOR", SHAPE_ATTRIBUTE: "FLOAT_VECTOR", INDEX_ATTRIBUTE: "INT"}
_POSE = "skinning_fit_pose"
# The names of the objects that were selected before.
_SELECTED = "skinning_fit_selected"


@dataclass(frozen=True)
class _StoredPose:
    """bones: names of the deforming bones; matrices: 12 numbers each, row by row."""

    bones: tuple[str, ...]
    matrices: tuple[float, ...]


def is_copy(ob: bpy.types.Object) -> bool:
    """Whether an object is a posed copy, even if its mesh is gone."""
    return ob is not None and ob.type == "MESH" and ob.get(_POSE) is not None


_copies = Index(lambda ob: is_copy(ob) or None, "MESH")


def copies_in(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """All posed copies in the scene. Cheap enough for a panel."""
    return _copies.at(True, within=scene)


def original_of(copy: bpy.types.Object) -> bpy.types.Object:
    """The mesh object of a posed copy, None if it is gone. Raises nothing: for panels."""
    return copy.skinning_fit_copy.mesh if is_copy(copy) else None


def copies_of(mesh_object: bpy.types.Object, scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The posed copies of a mesh object in the scene, by name."""
    return [ob for ob in copies_in(scene) if original_of(ob) == mesh_object]


def fit_target(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The mesh object for the active object: itself, the original of a copy, or the mesh that an armature deforms.

    Raises BadScene if there is none, or more than one.
    """
    if active is not None and is_copy(active):
        original = original_of(active)
        if original is None:
            raise BadScene(f'The mesh that "{active.name}" was copied from is gone. Press Cancel to remove the copy')
        return original
    if active is not None and active.type == "ARMATURE":
        # The mesh is hidden while it has copies.
        copied = {original_of(ob) for ob in copies_in(context.scene)} - {None}
        chosen = chosen_mesh(context, active)
        meshes = [ob for ob in copied if armature_of(ob) == active and chosen in (None, ob)]
        if len(meshes) == 1:
            return meshes[0]
    if active is not None and active.type == "MESH" and copies_of(active, context.scene):
        return active
    return character_of(context, active)


def check_startable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene with the reason if no posed copy can be made for the active object. Cheap enough for a panel."""
    original = fit_target(context, active)
    if is_copy(active):
        _check_left(active)
    check_fittable(context, original)
    if not copies_of(original, context.scene):
        check_shown(context, original)


def start(context: bpy.types.Context, given: bpy.types.Object) -> bpy.types.Object:
    """Make a posed copy of the mesh, show it instead of the mesh, and make it active; returns it.

    Raises BadScene, BadMesh.
    """
    check_startable(context, given)
    original = fit_target(context, given)
    others = copies_of(original, context.scene)
    pose = read_pose(context, original)
    check_bent(original, pose)
    first = others[0].skinning_fit_copy if others else None
    was_visible = first.hid_mesh if first else original.visible_get(view_layer=context.view_layer)
    active, mode = (first.active, first.mode) if first else (given, given.mode)
    selected = others[0].get(_SELECTED, []) if others else [ob.name for ob in context.selected_objects]
    if given.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    copy = _new_copy(context, original, pose)
    group = copy.skinning_fit_copy
    group.mesh, group.hid_mesh = original, was_visible
    group.active, group.mode = active, mode
    copy[_SELECTED] = selected
    group.frame = context.scene.frame_current
    group.fingerprint = checksum(_at_rest(original))
    show(context, original, copy)
    return copy


def show(context: bpy.types.Context, original: bpy.types.Object, copy: bpy.types.Object) -> None:
    """Make ``copy`` the only visible copy, active and selected alone; the original is hidden."""
    for ob in [original, *copies_of(original, context.scene)]:
        if ob.name in context.view_layer.objects:
            ob.hide_set(ob != copy, view_layer=context.view_layer)
    _activate(context, copy)
    space = context.space_data
    if space is not None and space.type == "VIEW_3D" and space.local_view is not None:
        copy.local_view_set(space, True)


def read_copy(copy: bpy.types.Object, original: bpy.types.Object) -> tuple[MeshPose, np.ndarray, np.ndarray]:
    """The stored pose of a copy, the present positions of its vertices (N, 3) in the mesh object's space, and their
    selection (N,). Works in any mode.

    Raises BadScene, BadMesh if copy, mesh or armature no longer match those that the copy was made with.
    """
    _check_left(copy)
    with _readable_mesh(copy) as mesh:
        return _read(copy, mesh, original)


def _read(
    copy: bpy.types.Object, mesh: bpy.types.Mesh, original: bpy.types.Object
) -> tuple[MeshPose, np.ndarray, np.ndarray]:
    group = copy.skinning_fit_copy
    again = (
        'Undo that, or press Cancel and start again; "Other Object" accepts any mesh with the same number of vertices'
    )
    count, expected = len(mesh.vertices), len(original.data.vertices)
    if count != expected:
        other = f'copy "{copy.name}"'
        raise unmet("OTHER_VERTEX_COUNT", other=other, count=count, object=original, expected=expected, remedy=again)
    bones, matrices = stored_bones(copy)
    whole = bool(bones) and all(has_attribute(mesh, name, kind) for name, kind in _KINDS.items())
    if not whole or not np.array_equal(read_attribute(mesh, INDEX_ATTRIBUTE), np.arange(count)):
        raise BadMesh(f'The vertices of the copy "{copy.name}" were replaced. {again}')
    if not has_checksum(group.fingerprint, _at_rest(original)):
        raise BadMesh(
            f'The mesh of {object_label(original)} was edited after "{copy.name}" was copied from it. '
            "Press Cancel and start again"
        )
    pose = MeshPose(bones, matrices, _vectors(mesh, REST_ATTRIBUTE), _vectors(mesh, SHAPE_ATTRIBUTE))
    to_mesh = np.array(group.to_mesh, dtype=np.float64)
    return pose, transform_points(_vectors(mesh, "position"), to_mesh), selected_vertices(mesh)


@contextmanager
def _readable_mesh(copy: bpy.types.Object) -> Iterator[bpy.types.Mesh]:
    """The copy's mesh, in Edit Mode a temporary one with the present edits."""
    if copy.mode != "EDIT":
        yield copy.data
        return
    mesh = bpy.data.meshes.new("skinning_fit")
    try:
        bmesh.from_edit_mesh(copy.data).to_mesh(mesh)
        yield mesh
    finally:
        bpy.data.meshes.remove(mesh)


def stored_bones(copy: bpy.types.Object) -> tuple[tuple[str, ...], np.ndarray]:
    """The bones in the stored pose of a copy and their matrices (P, 3, 4); none if they are lost."""
    stored = read_record(copy, _POSE, _StoredPose)
    if stored is None or len(stored.matrices) != 12 * len(stored.bones):
        return (), np.zeros((0, 3, 4))
    return stored.bones, np.reshape(stored.matrices, (-1, 3, 4))


def check_bones(copy: bpy.types.Object, original: bpy.types.Object, names: Sequence[str]) -> None:
    """Raise BadScene if the deforming bones ``names`` differ from those that the copy was made with."""
    then, now = set(stored_bones(copy)[0]), set(names)
    if then == now:
        return
    armature = armature_of(original)
    assert armature is not None, "its bones were read"
    name = sorted(then ^ now)[0]
    what = "has no deforming bone" if name in then else "has the new deforming bone"
    raise BadScene(
        f'The armature "{armature.name}" {what} "{name}", unlike when "{copy.name}" was made. Undo what was renamed, '
        "added or removed, or press Cancel and start again"
    )


def remove(context: bpy.types.Context, copies: Sequence[bpy.types.Object]) -> None:
    """Remove posed copies, show the original, and restore the previous active object, mode and selection."""
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


def _leave_modes(view_layer: bpy.types.ViewLayer, copies: Sequence[bpy.types.Object]) -> None:
    """Bring copies to Object Mode before their removal; only the active object can change its mode."""
    active = view_layer.objects.active
    for copy in copies:
        if copy.mode != "OBJECT":
            view_layer.objects.active = copy
            bpy.ops.object.mode_set(mode="OBJECT")
    view_layer.objects.active = active


def _new_copy(context: bpy.types.Context, original: bpy.types.Object, pose: MeshPose) -> bpy.types.Object:
    """A copy of the posed mesh object, at the original's place in the world, with the data for ``read_copy``."""
    mesh = _posed_mesh(original, pose)
    copy = bpy.data.objects.new(f"{original.name}_fit", mesh)
    for slot, other in zip(copy.material_slots, original.material_slots, strict=False):
        slot.link = other.link
        slot.material = other.material
    copy.color = original.color
    # Renders show the original, which is hidden only in the viewport.
    copy.hide_render = True
    for collection in collections_beside(context, original):
        collection.objects.link(copy)
    world = original.matrix_world.copy()
    copy.matrix_world = world
    context.view_layer.update()
    to_mesh = Matrix.Identity(4)
    placed, wanted = np.array(copy.matrix_world), np.array(world)
    if np.abs(placed - wanted).max() > 1e-5 * np.abs(wanted).max():
        # An object cannot be sheared, but its mesh can.
        mesh.transform(world)
        copy.matrix_world = Matrix.Identity(4)
        to_mesh = world.inverted()
    copy.skinning_fit_copy.to_mesh = to_mesh
    write_record(copy, _POSE, _StoredPose(pose.bones, tuple(pose.matrices.ravel().tolist())))
    return copy


def _posed_mesh(original: bpy.types.Object, pose: MeshPose) -> bpy.types.Mesh:
    """The original's mesh without shape keys, as posed, with the attributes of a copy."""
    mesh = bpy.data.meshes.new_from_object(original)
    mesh.name = f"{original.name}_fit"
    for key in list(mesh.keys()):
        del mesh[key]
    write_attribute(mesh, "position", "FLOAT_VECTOR", pose.shape)
    write_attribute(mesh, REST_ATTRIBUTE, _KINDS[REST_ATTRIBUTE], pose.rest)
    write_attribute(mesh, SHAPE_ATTRIBUTE, _KINDS[SHAPE_ATTRIBUTE], pose.shape)
    write_attribute(mesh, INDEX_ATTRIBUTE, _KINDS[INDEX_ATTRIBUTE], np.arange(len(pose.shape)))
    mesh.update()
    return mesh


def _check_left(copy: bpy.types.Object) -> None:
    """Raise BadScene in a mode in which the vertices of a copy cannot be read."""
    if copy.mode == "SCULPT" and copy.use_dynamic_topology_sculpting:
        raise BadScene(f'Dyntopo is on for "{copy.name}", which changes the number of vertices. Disable it')
    if copy.mode != "EDIT" and copy.data.is_editmode:
        raise unmet("SHARED_MESH_IN_EDIT_MODE", object=copy)


def _at_rest(original: bpy.types.Object) -> np.ndarray:
    """(N, 3) float32 the mesh's rest positions, to detect edits."""
    return rest_positions(original.data).astype(np.float32)


def _vectors(mesh: bpy.types.Mesh, name: str) -> np.ndarray:
    """The values (N, 3) float64 of a point attribute."""
    return read_attribute(mesh, name).astype(np.float64)


def _activate(context: bpy.types.Context, mesh_object: bpy.types.Object, selected: Sequence[str] | None = None) -> None:
    """Make the visible object active, and select only it, or the objects named ``selected``."""
    view_layer = context.view_layer
    for ob in view_layer.objects:
        wanted = ob == mesh_object if selected is None else ob.name in selected
        if ob.select_get(view_layer=view_layer) != wanted:
            ob.select_set(wanted, view_layer=view_layer)
    view_layer.objects.active = mesh_object
