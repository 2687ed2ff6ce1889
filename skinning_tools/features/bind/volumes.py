# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of containment binding in the viewport: wire shapes that the artist moves, rotates and scales.

Each is an object of its own, in a collection of its own, parented to the armature object and placed where its bone is
at rest. So volumes follow the armature object, but not the pose: in a posed armature they stand around the rest pose,
which is what is bound. Nothing of them is rendered.
"""

from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import look_ups
from ...blender.bodies import stretch_of
from ...blender.local_collections import collections_beside
from ...blender.preconditions import UNREADABLE_MODES, unmet
from ...blender.records import read_record, write_record
from ...blender.wording import counted, listed
from ...core.errors import BadScene

# A custom property of a volume's object: a VolumeRecord.
RECORD = "skinning_volume"

# Marks the collections of volumes.
_COLLECTION_MARK = "skinning_volumes"

_SEGMENTS = 32

# Vertices may be off an affine map of the shape by this share of its size; rounding is much less, editing much more.
_EDITED = 1e-3

# Smallest share of a volume's extents of each other: generated ones are above a millionth.
_FLAT = 1e-8


@dataclass(frozen=True)
class VolumeRecord:
    """bone: its name. kind and radii: of core.binding.containment.Volume, as the mesh was made. meshes: names of the
    objects that the volume was generated for."""

    bone: str
    kind: str
    radii: tuple[float, ...]
    meshes: tuple[str, ...]


def is_volume(object) -> bool:
    return object.type == "MESH" and RECORD in object


def volume_armature(object):
    """The armature object of a volume; None where the object is none, or was taken off its armature."""
    parent = object.parent
    return parent if is_volume(object) and parent is not None and parent.type == "ARMATURE" else None


def volumes_of(armature) -> list:
    """The volume objects of an armature that are in some scene."""
    return [ob for ob in _by_armature.at(armature.session_uid) if look_ups.is_in_some_scene(ob)]


def _armature_number(object) -> int | None:
    armature = volume_armature(object)
    return armature.session_uid if armature is not None else None


_by_armature = look_ups.Index(_armature_number, "MESH")


def wire_shape(kind: str, radii) -> tuple[np.ndarray, np.ndarray]:
    """points (n, 3) on the surface of a volume in its own space, and edges (e, 2)."""
    x, y, z = np.asarray(radii, dtype=np.float64)
    if kind == "BOX":
        points = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * [x, y, z]
        edges = [(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1]
        return points, np.array(edges)
    cap = min(np.sqrt(x * z), y) if kind == "CAPSULE" else y
    angle = np.arange(_SEGMENTS) * 2 * np.pi / _SEGMENTS
    cosine, sine = np.cos(angle), np.sin(angle)
    # A shape of two halves, cut open where the caps meet the tube: ``side`` tells which half a point belongs to.
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


def meshes_of_volume(context, object) -> list:
    """The mesh objects of the view layer that a volume was generated for, as far as they still have their names."""
    record = read_record(object, RECORD, VolumeRecord)
    known = context.view_layer.objects
    found = [known.get(name) for name in record.meshes] if record is not None else []
    return [ob for ob in found if ob is not None and ob.type == "MESH"]


def write_volumes(context, objects, armature, skeleton, volumes) -> int:
    """Put ``volumes`` of a ``skeleton`` into the scene, in place of those that the armature has; returns their number.

    They are in the space of ``bodies.stretch_of`` the first of the mesh ``objects``.
    """
    remove_volumes(armature)
    to_armature = np.linalg.solve(_world(armature), _world(objects[0]) @ np.linalg.inv(_stretch(objects[0])))
    meshes = tuple(ob.name for ob in objects)
    collection = _new_collection(context, armature)
    for volume in volumes:
        name = skeleton.names[volume.bone]
        record = VolumeRecord(name, volume.kind, tuple(map(float, volume.radii)), meshes)
        placed = _new_object(armature, record, *wire_shape(volume.kind, volume.radii))
        collection.objects.link(placed)
        _place(placed, to_armature @ volume.matrix)
    return len(volumes)


def remove_volumes(armature) -> int:
    """Delete the volumes of an armature with what was made for them; returns their number. Raises BadScene."""
    objects = volumes_of(armature)
    for ob in objects:
        _check_mode(ob)
    collections = {c for ob in objects for c in ob.users_collection if _COLLECTION_MARK in c}
    _delete(objects)
    bpy.data.batch_remove([c for c in collections if not c.objects and not c.children])
    return len(objects)


def read_volumes(object, armature, names) -> tuple[list, list[str]]:
    """The armature's volumes of the bones ``names`` in the space of ``bodies.stretch_of`` the mesh.

    As they are now: moved, rotated and scaled, as objects or as whole meshes. Also notes for the user: on bones that
    have none and so get no weights, and on volumes that count for nothing. Both empty where the armature has no
    volumes. Raises BadScene where the shape of one was edited, or it is flat.
    """
    from ...core.binding.containment import Volume

    objects = volumes_of(armature)
    order = {name: index for index, name in enumerate(names)}
    to_binding = _stretch(object) @ np.linalg.inv(_world(object))
    volumes, others = [], []
    for ob in objects:
        record = _record_of(ob)
        if record.bone in order:
            matrix = to_binding @ _placement(ob) @ _edits(ob, record)
            if not np.isfinite(matrix).all() or _is_flat(matrix @ np.diag([*record.radii, 1.0])):
                raise BadScene(f'The volume "{ob.name}" is flat. Scale it up, or delete it')
            volumes.append(Volume(order[record.bone], record.kind, matrix, np.array(record.radii)))
        elif record.bone not in armature.data.bones or not armature.data.bones[record.bone].use_deform:
            others.append(record.bone)
    notes = []
    if others:
        notes.append(
            f"{listed(dict.fromkeys(others))}: volumes of bones that are gone or do not deform count for nothing"
        )
    bare = sorted(set(order) - {names[volume.bone] for volume in volumes}, key=order.get)
    if objects and bare:
        notes.append(f"{listed(bare)}: no volume, so no weights")
    return volumes, notes


def mirror_volumes(armature, objects) -> tuple[int, int]:
    """Give the bones on the other side the mirror images, across the armature's X, of all volumes of the bones that
    the volume ``objects`` are of, in place of those that they have. Returns the numbers of volumes and of bones.

    Raises BadScene where no bone has another side, or both sides are among the objects.
    """
    bones = {_record_of(ob).bone for ob in objects}
    sides = {bone: bpy.utils.flip_name(bone) for bone in bones}
    sides = {bone: other for bone, other in sides.items() if other != bone and other in armature.data.bones}
    if not sides:
        raise BadScene(
            "None of the selected volumes has a bone on the other side. Select volumes of bones that are named left or "
            "right, such as upper_arm.L"
        )
    both = sorted(set(sides) & set(sides.values()))
    if both:
        raise BadScene(f"Volumes of both sides are selected: {listed(both)}. Select those of one side")
    present = [(ob, _record_of(ob)) for ob in volumes_of(armature)]
    sources = [(ob, record) for ob, record in present if record.bone in sides]
    for ob, _ in sources:
        _check_mode(ob)
    _delete([ob for ob, record in present if record.bone in sides.values()])
    flip = np.diag([-1.0, 1.0, 1.0, 1.0])
    for ob, record in sources:
        points, edges = _mesh_arrays(ob.data)
        mirrored = _new_object(armature, replace(record, bone=sides[record.bone]), points * [-1, 1, 1], edges)
        for collection in ob.users_collection:
            collection.objects.link(mirrored)
        _place(mirrored, flip @ np.linalg.solve(_world(armature), _placement(ob)) @ flip)
    return len(sources), len(sides)


def volume_summary(armature) -> str:
    """For the panel: how many volumes there are."""
    count = len(volumes_of(armature))
    return f"{counted(count, 'volume')}, which Bind uses" if count else "No volumes: Bind makes capsules for itself"


def _check_mode(ob) -> None:
    """Raises BadScene where a volume's mesh cannot be read."""
    if ob.data.is_editmode:
        raise unmet("MODE", object=f'volume "{ob.name}"', mode=UNREADABLE_MODES["EDIT"])


def _delete(objects) -> None:
    """With the meshes that nothing else uses."""
    meshes = {ob.data for ob in objects}
    bpy.data.batch_remove(objects)
    bpy.data.batch_remove([mesh for mesh in meshes if not mesh.users])


def _new_collection(context, armature):
    collection = bpy.data.collections.new(f"{armature.name}_volumes")
    collection[_COLLECTION_MARK] = True
    collection.hide_render = True
    collections_beside(context, armature)[0].children.link(collection)
    return collection


def _new_object(armature, record: VolumeRecord, points, edges):
    name = f"{record.bone}_volume"
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(np.asarray(points).tolist(), np.asarray(edges).tolist(), [])
    ob = bpy.data.objects.new(name, mesh)
    write_record(ob, RECORD, record)
    ob.parent = armature
    ob.display_type = "WIRE"
    ob.show_in_front = True
    ob.hide_render = True
    return ob


def _place(ob, matrix: np.ndarray) -> None:
    """Where ``matrix`` (4, 4) has it in the space of its parent, by location, rotation and scale.

    Shear, which an unevenly scaled armature asks for, goes into the mesh.
    """
    ob.matrix_parent_inverse.identity()
    ob.matrix_basis = Matrix(matrix)
    rest = np.linalg.solve(np.array(ob.matrix_basis, dtype=np.float64), matrix)
    if np.abs(rest - np.eye(4)).max() > 1e-5:
        ob.data.transform(Matrix(rest))


def _placement(ob) -> np.ndarray:
    """(4, 4) from a volume's space to the world, also where it is hidden and Blender does not place it."""
    parts = (ob.parent.matrix_world, ob.matrix_parent_inverse, ob.matrix_basis)
    world, inverse, basis = (np.array(part, dtype=np.float64) for part in parts)
    return world @ inverse @ basis


def _edits(ob, record: VolumeRecord) -> np.ndarray:
    """(4, 4) what was done to the vertices of a volume as a whole, by applying its scale, for instance.

    Raises BadScene where it has another shape now.
    """
    made, made_edges = wire_shape(record.kind, record.radii)
    points, edges = _mesh_arrays(ob.data)
    size = max(record.radii)
    _check_mode(ob)
    if points.shape == made.shape and np.array_equal(np.sort(edges), np.sort(made_edges)):
        known = np.column_stack([made / size, np.ones(len(made))])
        found = np.linalg.lstsq(known, points, rcond=None)[0]
        if np.abs(known @ found - points).max() <= _EDITED * np.ptp(points, axis=0).max():
            matrix = np.eye(4)
            matrix[:3, :3], matrix[:3, 3] = found[:3].T / size, found[3]
            return matrix
    raise BadScene(
        f'The volume "{ob.name}" is no {record.kind.lower()} any more: its mesh was edited. Volumes can be moved, '
        "rotated and scaled; undo the rest, or delete it and generate the volumes again"
    )


def _record_of(ob) -> VolumeRecord:
    """Raises BadScene where it was changed by hand."""
    record = read_record(ob, RECORD, VolumeRecord)
    if record is None or record.kind not in ("CAPSULE", "ELLIPSOID", "BOX") or len(record.radii) != 3:
        raise BadScene(
            f'The custom property "{RECORD}" of the volume "{ob.name}" was changed by hand. Delete the volume'
        )
    return record


def _mesh_arrays(mesh) -> tuple[np.ndarray, np.ndarray]:
    points, edges = np.empty((len(mesh.vertices), 3), np.float32), np.empty((len(mesh.edges), 2), np.int32)
    mesh.vertices.foreach_get("co", points.ravel())
    mesh.edges.foreach_get("vertices", edges.ravel())
    return points.astype(np.float64), edges


def _is_flat(matrix: np.ndarray) -> bool:
    sizes = np.linalg.svd(matrix[:3, :3], compute_uv=False)
    return not sizes[2] > _FLAT * sizes[0]


def _world(object) -> np.ndarray:
    return np.array(object.matrix_world, dtype=np.float64)


def _stretch(object) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = stretch_of(object)
    return matrix
