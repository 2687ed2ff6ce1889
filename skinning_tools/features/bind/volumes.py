# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of containment binding in the viewport: shapes that the artist moves, rotates, scales and edits.

Each volume is an object in a separate collection, parented to the armature object and placed at its bone's rest
position. So volumes follow the armature object, but not the pose: they surround the rest pose, which is the pose
that is bound. They are not rendered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import look_ups
from ...blender.bodies import stretch_of
from ...blender.control_points import SKIN_TYPES
from ...blender.local_collections import collections_beside
from ...blender.preconditions import check_not_edited
from ...blender.records import read_record, write_record
from ...blender.skin_reader import mesh_triangles
from ...blender.wording import counted, listed
from ...core.errors import BadMesh, BadScene

if TYPE_CHECKING:
    from ...core.binding.containment import Volume
    from ...core.binding.mesh_volume import MeshVolume
    from ...core.binding.types import Skeleton

# A custom property of a volume's object: a VolumeRecord.
RECORD = "skinning_volume"

# Marks the collections of volumes.
_COLLECTION_MARK = "skinning_volumes"

_SEGMENTS = 32

# Tolerance from an affine map of the shape, relative to its size; rounding is much less, editing much more.
_EDITED = 1e-3

# Smallest ratio of a volume's extents: generated volumes are above a millionth.
_FLAT = 1e-8


@dataclass(frozen=True)
class VolumeRecord:
    """bone: its name. kind and radii: of core.binding.containment.Volume, of the generated mesh. meshes: names of the
    objects that the volume was generated for."""

    bone: str
    kind: str
    radii: tuple[float, ...]
    meshes: tuple[str, ...]


def is_volume(ob: bpy.types.Object) -> bool:
    return ob.type == "MESH" and RECORD in ob


def volume_armature(volume: bpy.types.Object) -> bpy.types.Object | None:
    """The armature object of a volume; None if the object is not a volume or was detached from its armature."""
    parent = volume.parent
    return parent if is_volume(volume) and parent is not None and parent.type == "ARMATURE" else None


def volumes_of(armature: bpy.types.Object) -> list:
    """The volume objects of an armature that are in a scene."""
    return [ob for ob in _by_armature.at(armature.session_uid) if look_ups.is_in_some_scene(ob)]


def _armature_number(volume: bpy.types.Object) -> int | None:
    armature = volume_armature(volume)
    return armature.session_uid if armature is not None else None


_by_armature = look_ups.Index(_armature_number, "MESH")


# The faces of a box whose corners are numbered in binary, x first.
_BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def wire_shape(kind: str, radii: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """points (n, 3) on the surface of a volume in its own space, and edges (e, 2)."""
    x, y, z = np.asarray(radii, dtype=np.float64)
    if kind == "BOX":
        points = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * [x, y, z]
        edges = [(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1]
        return points, np.array(edges)
    cap = min(np.sqrt(x * z), y) if kind == "CAPSULE" else y
    angle = np.arange(_SEGMENTS) * 2 * np.pi / _SEGMENTS
    cosine, sine = np.cos(angle), np.sin(angle)
    # A shape of two halves, cut where the caps meet the tube: ``side`` is the half of each point.
    half = np.arange(_SEGMENTS // 2 + 1) * 2 * np.pi / _SEGMENTS
    outline = np.concatenate([half, half + np.pi])
    side = np.repeat([1.0, -1.0], len(half)) * (y - cap)
    up = side + cap * np.sin(outline)
    loops = [
        np.column_stack([x * np.cos(outline), up, 0 * up]),
        np.column_stack([0 * up, up, z * np.cos(outline)]),
        *(
            np.column_stack([x * cosine, np.full(_SEGMENTS, height), z * sine])
            for height in ((y - cap, cap - y) if y > cap else (0.0,))
        ),
    ]
    starts = np.cumsum([0, *map(len, loops)])
    rings = [np.arange(len(loop)) + start for loop, start in zip(loops, starts[:-1], strict=True)]
    return np.concatenate(loops), np.concatenate([np.column_stack([ring, np.roll(ring, -1)]) for ring in rings])


def meshes_of_volume(context: bpy.types.Context, volume: bpy.types.Object) -> list:
    """The mesh objects in the view layer that a volume was generated for, found by name."""
    record = read_record(volume, RECORD, VolumeRecord)
    known = context.view_layer.objects
    found = [known.get(name) for name in record.meshes] if record is not None else []
    return [ob for ob in found if ob is not None and ob.type in SKIN_TYPES]


def write_volumes(
    context: bpy.types.Context,
    objects: Sequence[bpy.types.Object],
    armature: bpy.types.Object,
    skeleton: "Skeleton",
    volumes: "Sequence[Volume]",
) -> int:
    """Replace the armature's volumes in the scene with ``volumes`` of a ``skeleton``; returns their number.

    They are in the space of ``bodies.stretch_of`` the first of the mesh ``objects``.
    """
    remove_volumes(armature)
    to_armature = np.linalg.solve(_world(armature), _world(objects[0]) @ np.linalg.inv(_stretch(objects[0])))
    meshes = tuple(ob.name for ob in objects)
    collection = _new_collection(context, armature)
    for volume in volumes:
        name = skeleton.names[volume.bone]
        record = VolumeRecord(name, volume.kind, tuple(map(float, volume.radii)), meshes)
        placed = _new_object(armature, record, _new_mesh(record))
        collection.objects.link(placed)
        _place(placed, to_armature @ volume.matrix)
    return len(volumes)


def remove_volumes(armature: bpy.types.Object) -> int:
    """Delete the volumes of an armature and their collection; returns their number. Raises BadScene."""
    objects = volumes_of(armature)
    for ob in objects:
        _check_mode(ob)
    collections = {c for ob in objects for c in ob.users_collection if _COLLECTION_MARK in c}
    _delete(objects)
    bpy.data.batch_remove([c for c in collections if not c.objects and not c.children])
    return len(objects)


def read_volumes(
    mesh_object: bpy.types.Object, armature: bpy.types.Object, names: Sequence[str], matrices: np.ndarray | None = None
) -> tuple[list, list[str]]:
    """The armature's volumes of the bones ``names`` in the space of ``bodies.stretch_of`` the mesh, around the rest
    pose, or where ``matrices`` (P, 3, 4) of ``skin_reader.bone_matrices`` for the mesh take them.

    The user may have moved, rotated and scaled them, as objects or as whole meshes; or given them any closed mesh. Also
    returns notes: on bones without a volume, which get no weights, and on volumes without effect. Both are empty if the
    armature has no volumes. Raises BadScene if an edited volume is not closed, or if one is flat.
    """
    from ...core.binding.containment import Volume

    objects = volumes_of(armature)
    order = {name: index for index, name in enumerate(names)}
    to_mesh = np.linalg.inv(_world(mesh_object))
    volumes, others = [], []
    for ob in objects:
        record = _record_of(ob)
        if record.bone in order:
            moved = np.eye(4) if matrices is None else np.vstack([matrices[order[record.bone]], [0, 0, 0, 1]])
            placement, edits = _stretch(mesh_object) @ moved @ to_mesh @ _placement(ob), _edits(ob, record)
            volume: Volume | MeshVolume
            if edits is None:
                volume = _closed_mesh(ob, order[record.bone], placement)
            else:
                volume = Volume(order[record.bone], record.kind, placement @ edits, np.array(record.radii))
            if not np.isfinite(volume.matrix).all() or _is_flat(volume.matrix @ np.diag([*volume.radii, 1.0])):
                raise BadScene(f'The volume "{ob.name}" is flat. Scale it up, or delete it')
            volumes.append(volume)
        elif record.bone not in armature.data.bones or not armature.data.bones[record.bone].use_deform:
            others.append(record.bone)
    notes = []
    if others:
        notes.append(
            f"{listed(dict.fromkeys(others))}: volumes of bones that are missing or do not deform have no effect"
        )
    bare = sorted(set(order) - {names[volume.bone] for volume in volumes}, key=order.__getitem__)
    if objects and bare:
        notes.append(f"{listed(bare)}: no volume, so no weights")
    return volumes, notes


def mirror_volumes(armature: bpy.types.Object, objects: Sequence[bpy.types.Object]) -> tuple[int, int]:
    """Replace the volumes on the other side with mirror images, across the armature's X, of all volumes of the bones of
    the volume ``objects``. Returns the numbers of volumes and of bones.

    Raises BadScene if no bone has a counterpart, or if both sides are among the objects.
    """
    bones = {_record_of(ob).bone for ob in objects}
    sides = {bone: bpy.utils.flip_name(bone) for bone in bones}
    sides = {bone: other for bone, other in sides.items() if other != bone and other in armature.data.bones}
    if not sides:
        raise BadScene(
            "None of the selected volumes has a bone on the other side. Select volumes of bones with a side in their "
            "names, such as upper_arm.L"
        )
    both = sorted(set(sides) & set(sides.values()))
    if both:
        raise BadScene(f"Volumes of both sides are selected: {listed(both)}. Select the volumes of one side")
    present = [(ob, _record_of(ob)) for ob in volumes_of(armature)]
    sources = [(ob, record) for ob, record in present if record.bone in sides]
    for ob, _ in sources:
        _check_mode(ob)
    _delete([ob for ob, record in present if record.bone in sides.values()])
    flip = np.diag([-1.0, 1.0, 1.0, 1.0])
    for ob, record in sources:
        mesh = ob.data.copy()
        mesh.transform(Matrix.Diagonal((-1, 1, 1, 1)))
        mesh.flip_normals()
        mirrored = _new_object(armature, replace(record, bone=sides[record.bone]), mesh)
        for collection in ob.users_collection:
            collection.objects.link(mirrored)
        _place(mirrored, flip @ np.linalg.solve(_world(armature), _placement(ob)) @ flip)
    return len(sources), len(sides)


def volume_summary(armature: bpy.types.Object) -> str:
    """The number of volumes, for the panel."""
    count = len(volumes_of(armature))
    return f"{counted(count, 'volume')}, which Bind uses" if count else "No volumes: Bind uses temporary capsules"


def _check_mode(ob: bpy.types.Object) -> None:
    """Raise BadScene if a volume's mesh cannot be read."""
    check_not_edited(ob, f'volume "{ob.name}"')


def _delete(objects: Sequence[bpy.types.Object]) -> None:
    """Delete the objects and their meshes if nothing else uses them."""
    meshes = {ob.data for ob in objects}
    bpy.data.batch_remove(objects)
    bpy.data.batch_remove([mesh for mesh in meshes if not mesh.users])


def _new_collection(context: bpy.types.Context, armature: bpy.types.Object) -> bpy.types.Collection:
    collection = bpy.data.collections.new(f"{armature.name}_volumes")
    collection[_COLLECTION_MARK] = True
    collection.hide_render = True
    collections_beside(context, armature)[0].children.link(collection)
    return collection


def _new_mesh(record: VolumeRecord) -> bpy.types.Mesh:
    """A box has faces, for artists to shape; the others are rings, which show more of the body."""
    points, edges = wire_shape(record.kind, record.radii)
    faces = _BOX_FACES if record.kind == "BOX" else ()
    mesh = bpy.data.meshes.new(f"{record.bone}_volume")
    mesh.from_pydata(points.tolist(), [] if faces else edges.tolist(), faces)
    return mesh


def _new_object(armature: bpy.types.Object, record: VolumeRecord, mesh: bpy.types.Mesh) -> bpy.types.Object:
    mesh.name = f"{record.bone}_volume"
    ob = bpy.data.objects.new(mesh.name, mesh)
    write_record(ob, RECORD, record)
    ob.parent = armature
    ob.display_type = "WIRE"
    ob.show_in_front = True
    ob.hide_render = True
    return ob


def _place(ob: bpy.types.Object, matrix: np.ndarray) -> None:
    """Place the object by ``matrix`` (4, 4) in its parent's space, with location, rotation and scale.

    Shear, which an unevenly scaled armature requires, goes into the mesh.
    """
    ob.matrix_parent_inverse.identity()
    ob.matrix_basis = Matrix(matrix)
    rest = np.linalg.solve(np.array(ob.matrix_basis, dtype=np.float64), matrix)
    if np.abs(rest - np.eye(4)).max() > 1e-5:
        ob.data.transform(Matrix(rest))


def _placement(ob: bpy.types.Object) -> np.ndarray:
    """(4, 4) from a volume's space to the world, even if it is hidden and Blender does not evaluate it."""
    parts = (ob.parent.matrix_world, ob.matrix_parent_inverse, ob.matrix_basis)
    world, inverse, basis = (np.array(part, dtype=np.float64) for part in parts)
    return world @ inverse @ basis


def _edits(ob: bpy.types.Object, record: VolumeRecord) -> np.ndarray | None:
    """(4, 4) the transform that the user applied to all vertices of a volume, for instance by Apply Scale; None if the
    shape has changed."""
    made, made_edges = wire_shape(record.kind, record.radii)
    points, edges = _mesh_arrays(ob.data)
    size = max(record.radii)
    _check_mode(ob)
    if points.shape == made.shape and _pairs(edges) == _pairs(made_edges):
        known = np.column_stack([made / size, np.ones(len(made))])
        found = np.linalg.lstsq(known, points, rcond=None)[0]
        if np.abs(known @ found - points).max() <= _EDITED * np.ptp(points, axis=0).max():
            matrix = np.eye(4)
            matrix[:3, :3], matrix[:3, 3] = found[:3].T / size, found[3]
            return matrix
    return None


def _closed_mesh(ob: bpy.types.Object, bone: int, placement: np.ndarray) -> "MeshVolume":
    """A volume whose shape the user has made, in its object. Raises BadScene if that is not a closed surface."""
    from ...core.binding.mesh_volume import MeshVolume

    try:
        return MeshVolume.of(bone, placement, _mesh_arrays(ob.data)[0], mesh_triangles(ob.data))
    except BadMesh as error:
        raise BadScene(
            f'The volume "{ob.name}" was edited, and its shape cannot be used. {error}. Close it or undo the edit, or '
            "generate the volumes again. For a free shape, edit a volume of kind Box, or give the volume's object "
            "another closed mesh"
        ) from None


def _pairs(edges: np.ndarray) -> set[tuple[int, int]]:
    return set(map(tuple, np.sort(edges).tolist()))


def _record_of(ob: bpy.types.Object) -> VolumeRecord:
    """The record of a volume. Raises BadScene if it was changed by hand."""
    record = read_record(ob, RECORD, VolumeRecord)
    if record is None or record.kind not in ("CAPSULE", "ELLIPSOID", "BOX") or len(record.radii) != 3:
        raise BadScene(
            f'The custom property "{RECORD}" of the volume "{ob.name}" was changed by hand. Delete the volume'
        )
    return record


def _mesh_arrays(mesh: bpy.types.Mesh) -> tuple[np.ndarray, np.ndarray]:
    points, edges = np.empty((len(mesh.vertices), 3), np.float32), np.empty((len(mesh.edges), 2), np.int32)
    mesh.vertices.foreach_get("co", points.ravel())
    mesh.edges.foreach_get("vertices", edges.ravel())
    return points.astype(np.float64), edges


def _is_flat(matrix: np.ndarray) -> bool:
    sizes = np.linalg.svd(matrix[:3, :3], compute_uv=False)
    return not sizes[2] > _FLAT * sizes[0]


def _world(volume: bpy.types.Object) -> np.ndarray:
    return np.array(volume.matrix_world, dtype=np.float64)


def _stretch(volume: bpy.types.Object) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = stretch_of(volume)
    return matrix
