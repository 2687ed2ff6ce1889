# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an EigenSkin: a custom property of the mesh that lists everything made, so that it can be removed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate

import bpy
import numpy as np

from ...blender.actions import property_path, value_path
from ...blender.preconditions import check_own_mesh, check_type, object_label
from ...blender.records import EIGENSKIN, has_checksum, has_eigenskin, record_of, stored_values, write_record
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import read_weights
from ...core.errors import BadScene
from .driver_network import VALUE_BEGINNING
from .drivers import PREFIX, drivers_of


@dataclass
class SupportRecord:
    """What was made for a support.

    joints, keys, attributes: names of its joints, shape keys and normal corrections. group: name of the vertex group
    with its mask. fingerprint: checksum of that mask when it was written. painted: the artist has painted the group.
    singular_values: the largest ones of all possible components. total_square: the sum of the squares of all.
    """

    name: str
    joints: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    group: str = ""
    fingerprint: str = ""
    painted: bool = False
    singular_values: tuple[float, ...] = ()
    total_square: float = 0.0

    @property
    def count(self) -> int:
        """How many components it has."""
        return len(self.keys)

    @property
    def captured(self) -> tuple[float, ...]:
        """The share of the displacements' sum of squares that so many components hold."""
        squares = accumulate(value * value for value in self.singular_values)
        return tuple(square / self.total_square for square in squares)


@dataclass
class _Head:
    """The part of a record that is stored beside its supports.

    properties: custom properties of the Key data-block. made_basis, made_animation: the build made the Basis key and
    the Key's animation data. preserve_volume: names of Armature modifiers whose Preserve Volume was turned off, one for
    each of volume_objects, the names of their objects. baked: the shape keys have keyframes. made_action: the bake made
    the action of these. world_units: distances from the examples are in world space; earlier versions measured in
    object space. half_rotations: numbers of the half-rotation bones under the corrections.
    """

    vertex_count: int
    properties: tuple[str, ...] = ()
    made_basis: bool = False
    made_animation: bool = False
    preserve_volume: tuple[str, ...] = ()
    volume_objects: tuple[str, ...] = ()
    baked: bool = False
    made_action: bool = False
    world_units: bool = False
    half_rotations: tuple[int, ...] = ()


@dataclass
class Record(_Head):
    """Everything that was made on a mesh. kept: former supports whose painted groups were kept. muted: all shape keys
    were muted when the record was read."""

    supports: tuple[SupportRecord, ...] = ()
    kept: tuple[SupportRecord, ...] = ()
    muted: bool = False

    @property
    def turned_off(self) -> tuple[tuple[str, str], ...]:
        """Objects and Armature modifiers in which Preserve Volume was turned off."""
        return tuple(zip(self.volume_objects, self.preserve_volume, strict=False))

    @turned_off.setter
    def turned_off(self, pairs: Iterable[tuple[str, str]]) -> None:
        each_once = dict.fromkeys(pairs)
        self.volume_objects = tuple(name for name, _ in each_once)
        self.preserve_volume = tuple(name for _, name in each_once)


def eigenskin_record(mesh_object: bpy.types.Object | None) -> Record | None:
    """The record of the object's mesh, or None without an EigenSkin. Cheap enough for a panel."""
    if mesh_object is None or mesh_object.type != "MESH":
        return None
    mesh = mesh_object.data
    values = stored_values(mesh, EIGENSKIN)
    if values is None:
        return None
    head, supports, kept = record_of(values, _Head), _supports(values, "support"), _supports(values, "kept")
    if head is None or supports is None or kept is None:
        return None
    blocks = mesh.shape_keys.key_blocks if mesh.shape_keys is not None else {}
    mutes = [blocks[name].mute for support in supports for name in support.keys if name in blocks]
    return Record(**vars(head), supports=supports, kept=kept, muted=bool(mutes) and all(mutes))


def store_record(mesh: bpy.types.Mesh, record: Record) -> None:
    """Store ``record`` on the mesh."""
    write_record(mesh, EIGENSKIN, _Head(**{field.name: getattr(record, field.name) for field in fields(_Head)}))
    for kind, supports in (("support", record.supports), ("kept", record.kept)):
        for index, support in enumerate(supports):
            write_record(mesh[EIGENSKIN], f"{kind}_{index}", support)


def _supports(values: dict, kind: str) -> tuple[SupportRecord, ...] | None:
    """The supports of one kind, or None if one is damaged."""
    found: list[SupportRecord] = []
    while f"{kind}_{len(found)}" in values:
        stored = values[f"{kind}_{len(found)}"]
        support = record_of(stored, SupportRecord) if isinstance(stored, dict) else None
        if support is None:
            return None
        found.append(support)
    return tuple(found)


def check_present(mesh_object: bpy.types.Object | None) -> None:
    """Raise BadScene if the object's mesh has no EigenSkin, or it cannot be changed. Does not read the record, see
    ``present_record``."""
    check_type(mesh_object, "Select a mesh with EigenSkin corrections")
    label = object_label(mesh_object)
    if not has_eigenskin(mesh_object):
        raise BadScene(f"The {label} has no EigenSkin corrections. Build them first")
    check_own_mesh(mesh_object, "its corrections cannot be changed")


def present_record(mesh_object: bpy.types.Object) -> Record:
    """The record of corrections that can be changed. Raises BadScene, see ``check_present``."""
    check_present(mesh_object)
    record = eigenskin_record(mesh_object)
    if record is None:
        raise BadScene(
            f'The custom property "{EIGENSKIN}" of the mesh of {object_label(mesh_object)} was changed by hand, so its '
            "corrections can no longer be listed. Delete it, and the shape keys of the corrections"
        )
    return record


def own_keys(mesh: bpy.types.Mesh, record: Record) -> list:
    """The shape keys that were made and still exist. Their drivers identify renamed ones."""
    key = mesh.shape_keys
    if key is None:
        return []
    names = {name for support in record.supports for name in support.keys}
    driven = {curve.data_path for curve in own_drivers(mesh, record)}
    return [block for block in key.key_blocks if block.name in names or value_path(block.name) in driven]


def own_drivers(mesh: bpy.types.Mesh, record: Record) -> list:
    """The driver curves that were made and still exist."""
    key = mesh.shape_keys
    if key is None:
        return []
    properties = [property_path(name) for name in record.properties]
    paths = {*properties, *(value_path(name) for support in record.supports for name in support.keys)}
    sources = tuple(f"{path}[" for path in properties)
    return [curve for curve in drivers_of(key) if curve.data_path in paths or _is_made(curve.driver, key, sources)]


def unknown_keys(mesh: bpy.types.Mesh) -> list[str]:
    """Names of shape keys that an EigenSkin drives although the mesh has no record of it."""
    driven = {curve.data_path for curve in _unknown_drivers(mesh)}
    return [block.name for block in mesh.shape_keys.key_blocks if value_path(block.name) in driven] if driven else []


def remove_dead_drivers(mesh: bpy.types.Mesh) -> None:
    """Remove drivers of an EigenSkin whose shape keys no longer exist. Some Blender versions keep them, and they would
    drive a new shape key of that name."""
    key = mesh.shape_keys
    alive = {value_path(block.name) for block in key.key_blocks} if key is not None else set()
    for curve in [curve for curve in _unknown_drivers(mesh) if curve.data_path not in alive]:
        key.animation_data.drivers.remove(curve)


def _unknown_drivers(mesh: bpy.types.Mesh) -> list:
    key = mesh.shape_keys
    sources = (property_path(PREFIX).removesuffix('"]'),)
    return [curve for curve in drivers_of(key) if _is_made(curve.driver, key, sources)] if key is not None else []


def painted_masks(mesh_object: bpy.types.Object) -> dict[str, np.ndarray]:
    """The masks (N,) of groups that the artist has changed, by the support's name.

    A painted group stays painted until it is deleted. If the number of vertices has changed, groups that were not
    painted before count as unchanged.
    """
    record = eigenskin_record(mesh_object)
    if record is None:
        return {}
    find_renamed_groups(mesh_object, record)
    same_mesh = record.vertex_count == len(mesh_object.data.vertices)
    known = {
        support.name: support
        for support in (*record.kept, *record.supports)
        if support.group in mesh_object.vertex_groups and (same_mesh or support.painted)
    }
    masks = group_masks(mesh_object, [support.group for support in known.values()])
    return {
        name: mask.astype(np.float64)
        for (name, support), mask in zip(known.items(), masks, strict=True)
        if support.painted or not has_checksum(support.fingerprint, mask)
    }


def find_renamed_groups(mesh_object: bpy.types.Object, record: Record) -> None:
    """Update ``record`` with the present names of groups that were renamed and not changed otherwise.

    Groups with the names of bones are not considered: the artist may have used a mask as weights.
    """
    supports = (*record.kept, *record.supports)
    lost = [support for support in supports if support.group not in mesh_object.vertex_groups]
    if not lost:
        return
    armature = armature_of(mesh_object)
    bones = {bone.name for bone in armature.data.bones} if armature is not None else set()
    candidates = list(set(mesh_object.vertex_groups.keys()) - bones - {support.group for support in supports})
    masks = group_masks(mesh_object, candidates)
    painted = {name: mask for name, mask in zip(candidates, masks, strict=True) if mask.any()}
    for support in lost:
        same = (name for name, mask in painted.items() if has_checksum(support.fingerprint, mask))
        support.group = next(same, support.group)


def group_masks(mesh_object: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(S, N) float32: the weights in the vertex groups ``names``."""
    bones, weights = read_weights(mesh_object, names)
    masks = np.zeros((len(names), len(bones)), np.float32)
    if names:
        for slot in range(bones.shape[1]):
            masks[bones[:, slot], np.arange(len(bones))] += weights[:, slot]
    return masks


def _is_made(driver: bpy.types.Driver, key: bpy.types.Key, sources: tuple[str, ...]) -> bool:
    """Whether a driver computes a shape key's value from properties whose paths begin with ``sources``."""
    targets = (target for variable in driver.variables for target in variable.targets)
    return driver.expression.startswith(VALUE_BEGINNING) and any(
        target.id == key and target.data_path.startswith(sources) for target in targets
    )
