# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts of a skinned mesh, as a face attribute, as face sets, or as objects parented to bones."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import bmesh
import bpy
import numpy as np

from ..core.errors import BadScene
from ..core.progress import checkpoint
from . import background, own_traces
from .bone_parenting import parent_to_bone
from .bone_weights import read_bone_weights, write_bone_weights
from .character import character_of
from .crs_record import native_modifier
from .data_blocks import is_alive, local_copy
from .local_collections import collections_beside
from .object_checks import check_own_mesh, object_label
from .object_transform import world_matrices
from .records import read_record, write_record
from .skin_reader import armature_modifier, armature_of
from .weight_tools import PARTITION_PROPERTY, forget_figures
from .wording import counted

if TYPE_CHECKING:
    from ..core.binding.partition import Partition

# The attribute of the faces, and the mesh's custom property that lists the parts' bones.
PART_ATTRIBUTE = "skinning_rigid_part"
FACE_SETS = ".sculpt_face_set"

# Marks the faces of a copy with their part while it is taken apart.
_LABEL = "skinning_piece"

# Vertex groups hold single precision: weights that sum to 1 may miss it by this much.
_ROUNDING = 1e-6
# Corner normals that differ by less need not be stored.
_SAME_NORMAL = 1e-3
# A shape key that moves no vertex farther than this share of the piece's size moves nothing.
_STILL = 1e-7
# Matrices that differ by a smaller share are the same: they are in single precision.
_MOVED = 1e-4


@dataclass(frozen=True)
class PartitionFigures:
    """What the panel shows. shares: of the vertices with 0, 1, 2 … influences; parts: how many are rigid; vertex_count:
    of the mesh that the figures are noted on."""

    shares: tuple[float, ...]
    parts: int
    rigid_faces: int
    skin_faces: int
    vertex_count: int

    @property
    def rigid_share(self) -> float:
        return self.rigid_faces / max(self.rigid_faces + self.skin_faces, 1)


@dataclass(frozen=True)
class Partitioned:
    object_name: str
    output: str
    figures: PartitionFigures
    notes: tuple[str, ...]
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        figures = self.figures
        rigid = f"{figures.rigid_faces:,} faces ({figures.rigid_share:.0%})"
        skin = f"{figures.skin_faces:,} faces of skin ({1 - figures.rigid_share:.0%})"
        parts = [
            f"{self.object_name}: {counted(figures.parts, 'rigid part')} with {rigid}, {skin}",
            ", ".join(f"{name} {share:.1%}" for name, share in share_rows(figures.shares)) + " of the vertices",
            *self.notes,
        ]
        return "; ".join(parts)


def share_rows(shares) -> list[tuple[str, float]]:
    """Names and shares of vertices by their number of bones, those that there are."""
    names = ["no bone", "one bone", "two bones", "three bones", "four bones"]
    rows = [(name, share) for name, share in zip(names, shares, strict=False) if share > 0]
    more = sum(shares[len(names) :])
    return [*rows, ("more bones", more)] if more > 0 else rows


def check_partitionable(context, object) -> None:
    """Raises BadScene with the reason why the active ``object`` cannot be partitioned. Cheap enough for a panel."""
    object = character_of(context, object)
    if not object.data.polygons:
        raise BadScene(f"The {object_label(object)} has no faces, so there is nothing to partition")


def partition(
    context, object, output: str = "ATTRIBUTE", tolerance: float = 0.0, least_faces: int = 1
) -> background.Steps:
    """Generator: find the rigid parts of ``object`` and make what ``output`` says; returns Partitioned.

    "ATTRIBUTE", "FACE_SETS", "OBJECTS" or "NONE", which only counts. Raises SkinningError for all that the user can
    mend; then, and where the generator is closed, nothing is left behind.
    """
    from ..core.binding.partition import influence_shares, partition_faces

    begin = time.perf_counter()
    check_partitionable(context, object)
    object = character_of(context, object)
    if output in ("ATTRIBUTE", "FACE_SETS"):
        check_own_mesh(object, "nothing can be stored in it")
    if output == "OBJECTS":
        _check_modifiers(object)
    if 0 <= tolerance < _ROUNDING:
        tolerance = _ROUNDING
    mesh = object.data
    weights = read_bone_weights(object, armature_of(object))
    corners, starts = _corners(mesh)

    def work(progress):
        checkpoint(progress, 0.1, "Finding rigid parts")
        found = partition_faces(
            corners, starts, weights.bones, weights.weights, tolerance=tolerance, least_faces=least_faces
        )
        return found, influence_shares(weights.weights, tolerance)

    found, shares = yield from background.run_in_worker(work)
    if len(mesh.polygons) != len(starts) or len(mesh.vertices) != len(weights.bones):
        raise BadScene(f"The {object_label(object)} was edited meanwhile. Start again")
    figures = PartitionFigures(
        shares=tuple(float(share) for share in shares),
        parts=len(found.bones),
        rigid_faces=int(found.face_counts.sum()),
        skin_faces=found.skin_faces,
        vertex_count=len(weights.bones),
    )
    pieces, notes = [], ()
    names = [weights.names[bone] for bone in found.bones]
    if output == "ATTRIBUTE":
        write_part_attribute(mesh, part_numbers(found), names)
    elif output == "FACE_SETS":
        _write_face_attribute(mesh, FACE_SETS, part_numbers(found) + 2)
        mesh.update()
    elif output == "OBJECTS":
        pieces, notes = yield from _make_objects(context, object, found, names, tolerance)
    for noted in (object, *pieces):
        write_record(noted, PARTITION_PROPERTY, replace(figures, vertex_count=len(noted.data.vertices)))
    return Partitioned(object.name, output, figures, notes, time.perf_counter() - begin)


def partition_figures(object) -> PartitionFigures | None:
    """Of the last partition, None where the mesh, or its weights by these tools, were changed since."""
    figures = read_record(object, PARTITION_PROPERTY, PartitionFigures)
    return figures if figures is not None and figures.vertex_count == len(object.data.vertices) else None


def part_numbers(found: "Partition") -> np.ndarray:
    """(M,) int32 the rigid part of each face, 0 …, or −1 for skin."""
    parts = np.searchsorted(found.bones, found.face_bones)
    return np.where(found.face_bones < 0, -1, parts).astype(np.int32)


def write_part_attribute(mesh, numbers: np.ndarray, names: list[str]) -> None:
    """Store parts (M,) in ``PART_ATTRIBUTE``, and their bones' names as the mesh's property of that name."""
    _write_face_attribute(mesh, PART_ATTRIBUTE, numbers)
    mesh[PART_ATTRIBUTE] = names
    mesh.update()


def _write_face_attribute(mesh, name: str, values: np.ndarray) -> None:
    attribute = mesh.attributes.get(name)
    if attribute is not None and (attribute.domain, attribute.data_type) != ("FACE", "INT"):
        mesh.attributes.remove(attribute)
        attribute = None
    if attribute is None:
        mesh.attributes.new(name, "INT", "FACE")
    mesh.attributes[name].data.foreach_set("value", np.ascontiguousarray(values, np.int32))


def _corners(mesh) -> tuple[np.ndarray, np.ndarray]:
    """The vertices (L,) of all faces one after the other, and where each face begins (M,)."""
    corners, starts = np.empty(len(mesh.loops), np.int32), np.empty(len(mesh.polygons), np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    mesh.polygons.foreach_get("loop_start", starts)
    return corners, starts


# Objects


def _check_modifiers(object) -> None:
    """Raises BadScene where a modifier shapes the mesh before its bones move it: they would move another mesh."""
    skinning = (armature_modifier(object), native_modifier(object))
    if not any(skinning):
        return
    for modifier in object.modifiers:
        if modifier in skinning:
            return
        if modifier.show_viewport:
            raise BadScene(
                f'The modifier "{modifier.name}" of {object_label(object)} works before the armature, so the rigid '
                "parts would not be those of its result. Apply it, move it below the armature, or disable it in the "
                "viewport"
            )


@dataclass
class _Made:
    """What is there so far."""

    meshes: list = field(default_factory=list)
    objects: list = field(default_factory=list)

    def copy_of(self, mesh):
        self.meshes.append(mesh.copy())
        return self.meshes[-1]

    def remove(self) -> None:
        keys = [mesh.shape_keys for mesh in self.meshes if is_alive(mesh)]
        blocks = [*self.objects, *self.meshes, *keys]
        bpy.data.batch_remove([block for block in blocks if block is not None and is_alive(block)])


def _make_objects(context, object, found: "Partition", names: list[str], tolerance: float) -> background.Steps:
    """Generator: an object for each rigid part and one for the skin, beside ``object``, which is hidden then.

    Returns them, and notes for the user.
    """
    if not names:
        raise BadScene(
            f"No part of {object_label(object)} follows one bone alone, so there is nothing to separate. "
            "Raise Tolerance, or lower Least Faces"
        )
    numbers, normals = part_numbers(found), _corner_normals(object.data)
    totals = np.empty(len(numbers), np.int32)
    object.data.polygons.foreach_get("loop_total", totals)
    made = _Made()
    try:
        pieces = {}
        for number, mesh in _pieces(object.data, numbers, made):
            _keep_normals(mesh, normals[np.repeat(numbers == number, totals)])
            pieces[number] = mesh
            yield len(pieces) / (len(names) + 1), "Separating rigid parts"
        for number, mesh in sorted(pieces.items()):
            piece = local_copy(object)
            made.objects.append(piece)
            if number < 0:
                _make_skin(object, piece, mesh, tolerance)
            else:
                _make_rigid(object, piece, mesh, names[number])
        notes = tuple(_notes(context, object, len(made.objects)))
        for collection in collections_beside(context, object):
            for piece in made.objects:
                collection.objects.link(piece)
        _show(context, object, made.objects)
    except BaseException:
        made.remove()
        raise
    return made.objects, notes


def _pieces(mesh, numbers: np.ndarray, made: _Made) -> Iterator[tuple[int, bpy.types.Mesh]]:
    """Number and mesh of each part that ``numbers`` (M,) tells apart; loose vertices and edges stay with the skin.

    By halves, so that each face is copied only as often as the parts can be halved.
    """
    whole = made.copy_of(mesh)
    _write_face_attribute(whole, _LABEL, numbers)
    waiting = [(whole, sorted(set(numbers.tolist())))]
    while waiting:
        mesh, labels = waiting.pop()
        if len(labels) == 1:
            mesh.attributes.remove(mesh.attributes[_LABEL])
            yield labels[0], mesh
            continue
        middle = 1 if labels[0] < 0 else len(labels) // 2
        halves = ((made.copy_of(mesh), labels[middle:]), (mesh, labels[:middle]))
        for half, kept in halves:
            _delete_others(half, kept)
        waiting += halves


def _delete_others(mesh, kept: list[int]) -> None:
    """Delete faces whose label is not ``kept``, and what is loose unless the skin is."""
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


def _corner_normals(mesh) -> np.ndarray:
    """(L, 3) float32: what is shaded with."""
    normals = np.empty((len(mesh.loops), 3), np.float32)
    mesh.corner_normals.foreach_get("vector", normals.ravel())
    return normals


def _keep_normals(mesh, normals: np.ndarray) -> None:
    """Let the corners be shaded by ``normals`` (L, 3), so that no border is seen where the mesh was cut."""
    if len(normals) and np.abs(_corner_normals(mesh) - normals).max() > _SAME_NORMAL:
        mesh.normals_split_custom_set(normals)


def _make_skin(object, piece, mesh, tolerance: float) -> None:
    """Let ``piece``, a copy of ``object``, have the skin ``mesh``, whose borders do as the rigid parts do."""
    from ..core.binding.partition import vertex_bones

    piece.name = mesh.name = f"{object.name}_skin"
    piece.data = mesh
    piece.skinning_rogue_weights.islands.clear()
    forget_figures(piece)
    weights = read_bone_weights(piece, armature_of(object))
    own = vertex_bones(weights.bones, weights.weights, tolerance)
    vertices = np.flatnonzero((own >= 0) & (weights.weights.max(axis=1) < 1))
    # They are the copy's own: locks are for those of the user.
    unlocked = replace(weights, locked=np.zeros(len(weights.names), bool))
    write_bone_weights(piece, unlocked, own[vertices, None], np.ones((len(vertices), 1)), vertices)


def _make_rigid(object, piece, mesh, bone_name: str) -> None:
    """Let ``piece``, a copy of ``object``, have the rigid ``mesh`` and follow the bone, and nothing else."""
    armature = armature_of(object)
    piece.name = mesh.name = f"{object.name}_{bone_name}"
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
    keys = mesh.shape_keys
    if keys is not None and not _moves_by_keys(mesh):
        piece.shape_key_clear()
        # Before 5.2 Blender counts a copied mesh's keys once too often, and leaves them.
        if is_alive(keys):
            bpy.data.batch_remove([keys])
    _follow_bone(object, piece, armature, armature.data.bones[bone_name])


def _follow_bone(object, piece, armature, bone) -> None:
    """Parent ``piece`` to the bone so that it is where the armature modifier has the part, in any pose."""
    piece.delta_location, piece.delta_rotation_euler, piece.delta_scale = (0, 0, 0), (0, 0, 0), (1, 1, 1)
    piece.delta_rotation_quaternion = (1, 0, 0, 0)
    # Location, rotation and scale cannot hold all of a matrix: the rest goes into the parent's inverse.
    piece.matrix_basis = object.matrix_world
    parent_to_bone(piece, armature, bone, object.matrix_world)


def _moves_by_keys(mesh) -> bool:
    """Whether a shape key moves any vertex."""
    positions = np.empty((2, len(mesh.vertices), 3), np.float32)
    mesh.shape_keys.reference_key.points.foreach_get("co", positions[0].ravel())
    size = float(np.ptp(positions[0], axis=0).max())
    for key in mesh.shape_keys.key_blocks:
        key.points.foreach_get("co", positions[1].ravel())
        if np.abs(positions[1] - positions[0]).max() > _STILL * size:
            return True
    return False


def _show(context, object, pieces) -> None:
    """Hide the object in favor of its pieces, which are selected unless bones are being posed."""
    view_layer = context.view_layer
    active = view_layer.objects.active
    if active == object:
        if object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        for other in list(view_layer.objects.selected):
            other.select_set(False, view_layer=view_layer)
        for piece in pieces:
            piece.select_set(True, view_layer=view_layer)
        view_layer.objects.active = pieces[0]
    object.hide_set(True, view_layer=view_layer)
    object.hide_render = True


def _notes(context, object, count: int) -> Iterator[str]:
    yield f'{counted(count, "object")} made, "{object.name}" hidden'
    skinning = (armature_modifier(object), native_modifier(object))
    names = [modifier.name for modifier in object.modifiers if modifier.show_viewport and modifier not in skinning]
    if names:
        listed = ", ".join(f'"{name}"' for name in names)
        yield f"look at the borders: each object has {listed} of its own"
    if _moves_against(context, object, armature_of(object)):
        yield f'"{object.name}" moves against its armature, which the rigid parts do not follow'


def _moves_against(context, object, armature) -> bool:
    """Whether the object has other places relative to its armature at other frames."""
    child = object.parent == armature and object.parent_type in {"OBJECT", "ARMATURE"}
    if child and object.animation_data is None and not object.constraints:
        return False
    scene = context.scene
    frames = np.linspace(scene.frame_start, scene.frame_end, 3)
    places = [
        np.linalg.solve(*matrices)
        for matrices in zip(*(world_matrices(context, ob, frames) for ob in (armature, object)), strict=True)
    ]
    now = np.linalg.solve(np.array(armature.matrix_world), np.array(object.matrix_world))
    return any(np.abs(place - now).max() > _MOVED * max(np.abs(now).max(), 1) for place in places)
