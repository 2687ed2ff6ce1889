# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts of a skinned mesh as objects parented to bones, and one object for the skin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import bmesh
import bpy
import numpy as np

from ...blender import background
from ...blender.animation import own_traces
from ...blender.attributes import remove_attributes, write_attribute
from ...blender.bone_parenting import parent_to_bone
from ...blender.bone_weights import read_bone_weights, write_bone_weights
from ...blender.center_records import native_modifier
from ...blender.data_blocks import clear_shape_keys, is_alive, local_copy, remove_living
from ...blender.local_collections import collections_beside
from ...blender.object_transform import world_matrices
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_modifier, armature_of
from ...blender.weight_tools import forget_figures
from ...blender.wording import counted
from ...core.errors import BadScene

# Marks the faces of a copy with their part during the separation.
_LABEL = "skinning_piece"

# Corner normals that differ by less need not be stored.
_SAME_NORMAL = 1e-3

# A shape key that moves no vertex by more than this, relative to the piece's size, has no effect.
_STILL = 1e-7

# Matrices with a smaller relative difference are equal: they are in single precision.
_MOVED = 1e-4


def check_separable(mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if a modifier changes the mesh before its bones deform it: the parts would not match."""
    skinning = (armature_modifier(mesh_object), native_modifier(mesh_object))
    if not any(skinning):
        return
    for modifier in mesh_object.modifiers:
        if modifier in skinning:
            return
        if modifier.show_viewport:
            raise BadScene(
                f'The modifier "{modifier.name}" of {object_label(mesh_object)} works before the armature, so the '
                "rigid parts would not match its result. Apply it, move it below the armature, or disable it in "
                "the viewport"
            )


def make_objects(
    context: bpy.types.Context, mesh_object: bpy.types.Object, numbers: np.ndarray, names: list[str], tolerance: float
) -> background.Steps:
    """Generator: make an object for each rigid part and one for the skin, and hide ``mesh_object``.

    numbers (M,): the rigid part of each face, −1 for skin; names: their bones. Returns the objects, and notes for the
    user. Raises BadScene if no part is rigid; then, and if it is closed, nothing is left behind.
    """
    if not names:
        raise BadScene(
            f"No part of {object_label(mesh_object)} follows only one bone, so there is nothing to separate. "
            "Raise Tolerance, or lower Least Faces"
        )
    armature, normals = armature_of(mesh_object), _corner_normals(mesh_object.data)
    totals = np.empty(len(numbers), np.int32)
    mesh_object.data.polygons.foreach_get("loop_total", totals)
    made = _Made()
    try:
        pieces = {}
        for number, mesh in _pieces(mesh_object.data, numbers, made):
            _keep_normals(mesh, normals[np.repeat(numbers == number, totals)])
            pieces[number] = mesh
            yield len(pieces) / (len(names) + 1), "Separating rigid parts"
        for number, mesh in sorted(pieces.items()):
            piece = local_copy(mesh_object)
            made.objects.append(piece)
            if number < 0:
                _make_skin(mesh_object, piece, mesh, tolerance)
            else:
                _make_rigid(mesh_object, armature, piece, mesh, names[number])
        notes = tuple(_notes(context, mesh_object, len(made.objects)))
        for collection in collections_beside(context, mesh_object):
            for piece in made.objects:
                collection.objects.link(piece)
        _show(context, mesh_object, made.objects)
    except BaseException:
        made.remove()
        raise
    return made.objects, notes


@dataclass
class _Made:
    """The data made so far."""

    meshes: list = field(default_factory=list)
    objects: list = field(default_factory=list)

    def copy_of(self, mesh: bpy.types.Mesh) -> bpy.types.Mesh:
        self.meshes.append(mesh.copy())
        return self.meshes[-1]

    def remove(self) -> None:
        keys = [mesh.shape_keys for mesh in self.meshes if is_alive(mesh)]
        remove_living(block for block in [*self.objects, *self.meshes, *keys] if block is not None)


def _pieces(mesh: bpy.types.Mesh, numbers: np.ndarray, made: _Made) -> Iterator[tuple[int, bpy.types.Mesh]]:
    """Number and mesh of each part in ``numbers`` (M,); loose vertices and edges stay with the skin.

    By halves, so that each face is copied only as often as the parts can be halved.
    """
    whole = made.copy_of(mesh)
    write_attribute(whole, _LABEL, "INT", numbers, "FACE")
    waiting = [(whole, sorted(set(numbers.tolist())))]
    while waiting:
        mesh, labels = waiting.pop()
        if len(labels) == 1:
            remove_attributes(mesh, (_LABEL,))
            yield labels[0], mesh
            continue
        middle = 1 if labels[0] < 0 else len(labels) // 2
        halves = ((made.copy_of(mesh), labels[middle:]), (mesh, labels[:middle]))
        for half, kept in halves:
            _delete_others(half, kept)
        waiting += halves


def _delete_others(mesh: bpy.types.Mesh, kept: list[int]) -> None:
    """Delete faces whose label is not ``kept``, and loose vertices and edges unless ``kept`` is the skin."""
    chosen = set(kept)
    edited = bmesh.new()
    try:
        edited.from_mesh(mesh, face_normals=False, vertex_normals=False)
        layer = edited.faces.layers.int[_LABEL]
        bmesh.ops.delete(edited, geom=[face for face in edited.faces if face[layer] not in chosen], context="FACES")
        if kept[0] >= 0:
            bmesh.ops.delete(edited, geom=[edge for edge in edited.edges if edge.is_wire], context="EDGES")
            bmesh.ops.delete(edited, geom=[vertex for vertex in edited.verts if not vertex.link_faces], context="VERTS")
        edited.to_mesh(mesh)
    finally:
        edited.free()


def _corner_normals(mesh: bpy.types.Mesh) -> np.ndarray:
    """(L, 3) float32: the corner normals used for shading."""
    normals = np.empty((len(mesh.loops), 3), np.float32)
    mesh.corner_normals.foreach_get("vector", normals.ravel())
    return normals


def _keep_normals(mesh: bpy.types.Mesh, normals: np.ndarray) -> None:
    """Shade the corners by ``normals`` (L, 3), so that the cuts are not visible."""
    if len(normals) and np.abs(_corner_normals(mesh) - normals).max() > _SAME_NORMAL:
        mesh.normals_split_custom_set(normals)


def _make_skin(mesh_object: bpy.types.Object, piece: bpy.types.Object, mesh: bpy.types.Mesh, tolerance: float) -> None:
    """Give ``piece``, a copy of ``mesh_object``, the skin ``mesh``, whose borders move like the rigid parts."""
    from ...core.binding.partition import vertex_bones

    piece.name = mesh.name = f"{mesh_object.name}_skin"
    piece.data = mesh
    piece.skinning_rogue_weights.islands.clear()
    forget_figures(piece)
    weights = read_bone_weights(piece, armature_of(mesh_object))
    own = vertex_bones(weights.bones, weights.weights, tolerance)
    vertices = np.flatnonzero((own >= 0) & (weights.weights.max(axis=1) < 1))
    # These groups belong to the copy: locks protect only the user's groups.
    unlocked = replace(weights, locked=np.zeros(len(weights.names), bool))
    write_bone_weights(piece, unlocked, own[vertices, None], np.ones((len(vertices), 1)), vertices)


def _make_rigid(
    mesh_object: bpy.types.Object,
    armature: bpy.types.Object,
    piece: bpy.types.Object,
    mesh: bpy.types.Mesh,
    bone_name: str,
) -> None:
    """Give ``piece``, a copy of ``mesh_object``, the rigid ``mesh``, and make it follow only the bone."""
    piece.name = mesh.name = f"{mesh_object.name}_{bone_name}"
    piece.data = mesh
    own_traces.remove_notes(piece)
    own_traces.remove_from_mesh(mesh)
    piece.animation_data_clear()
    for constraint in list(piece.constraints):
        piece.constraints.remove(constraint)
    native = native_modifier(piece)
    for modifier in list(piece.modifiers):
        if modifier.type == "ARMATURE" or modifier == native:
            piece.modifiers.remove(modifier)
    for bone in armature.data.bones:
        if bone.name in piece.vertex_groups:
            piece.vertex_groups.remove(piece.vertex_groups[bone.name])
    if mesh.shape_keys is not None and not _moves_by_keys(mesh):
        clear_shape_keys(piece)
    _follow_bone(mesh_object, piece, armature, armature.data.bones[bone_name])


def _follow_bone(
    mesh_object: bpy.types.Object, piece: bpy.types.Object, armature: bpy.types.Object, bone: bpy.types.Bone
) -> None:
    """Parent ``piece`` to the bone so that it matches the part under the Armature modifier in any pose."""
    piece.delta_location, piece.delta_rotation_euler, piece.delta_scale = (0, 0, 0), (0, 0, 0), (1, 1, 1)
    piece.delta_rotation_quaternion = (1, 0, 0, 0)
    # Location, rotation and scale cannot hold every matrix: the rest goes into the parent's inverse.
    piece.matrix_basis = mesh_object.matrix_world
    parent_to_bone(piece, armature, bone, mesh_object.matrix_world)


def _moves_by_keys(mesh: bpy.types.Mesh) -> bool:
    """Whether a shape key moves any vertex."""
    positions = np.empty((2, len(mesh.vertices), 3), np.float32)
    mesh.shape_keys.reference_key.points.foreach_get("co", positions[0].ravel())
    size = float(np.ptp(positions[0], axis=0).max())
    for key in mesh.shape_keys.key_blocks:
        key.points.foreach_get("co", positions[1].ravel())
        if np.abs(positions[1] - positions[0]).max() > _STILL * size:
            return True
    return False


def _show(context: bpy.types.Context, mesh_object: bpy.types.Object, pieces: Sequence[bpy.types.Object]) -> None:
    """Hide the object in favor of its pieces, which are selected unless bones are being posed."""
    view_layer = context.view_layer
    active = view_layer.objects.active
    if active == mesh_object:
        if mesh_object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        for other in list(view_layer.objects.selected):
            other.select_set(False, view_layer=view_layer)
        for piece in pieces:
            piece.select_set(True, view_layer=view_layer)
        view_layer.objects.active = pieces[0]
    mesh_object.hide_set(True, view_layer=view_layer)
    mesh_object.hide_render = True


def _notes(context: bpy.types.Context, mesh_object: bpy.types.Object, count: int) -> Iterator[str]:
    yield f'{counted(count, "object")} made, "{mesh_object.name}" hidden'
    skinning = (armature_modifier(mesh_object), native_modifier(mesh_object))
    names = [modifier.name for modifier in mesh_object.modifiers if modifier.show_viewport and modifier not in skinning]
    if names:
        listed = ", ".join(f'"{name}"' for name in names)
        yield f"look at the borders: each object has {listed} of its own"
    if _moves_against(context, mesh_object, armature_of(mesh_object)):
        yield f'"{mesh_object.name}" moves relative to its armature, which the rigid parts do not follow'


def _moves_against(context: bpy.types.Context, mesh_object: bpy.types.Object, armature: bpy.types.Object) -> bool:
    """Whether the object moves relative to its armature over the frames."""
    child = mesh_object.parent == armature and mesh_object.parent_type in {"OBJECT", "ARMATURE"}
    if child and mesh_object.animation_data is None and not mesh_object.constraints:
        return False
    scene = context.scene
    frames = np.linspace(scene.frame_start, scene.frame_end, 3)
    places = [
        np.linalg.solve(*matrices)
        for matrices in zip(*(world_matrices(context, ob, frames) for ob in (armature, mesh_object)), strict=True)
    ]
    now = np.linalg.solve(np.array(armature.matrix_world), np.array(mesh_object.matrix_world))
    return any(np.abs(place - now).max() > _MOVED * max(np.abs(now).max(), 1) for place in places)
