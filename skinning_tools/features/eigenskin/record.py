# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mesh knows of its EigenSkin: a custom property that lists all that was made, so that it can be taken away."""

import hashlib
from dataclasses import dataclass, fields
from itertools import accumulate

import numpy as np

from ...blender.actions import property_path, value_path
from ...blender.preconditions import check_own_mesh, object_label
from ...blender.records import EIGENSKIN, has_eigenskin, record_of, write_record
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import read_weights
from ...core.errors import BadScene
from .drivers import PREFIX, VALUE_BEGINNING, drivers_of


@dataclass
class SupportRecord:
    """What was made for a support.

    joints, keys, attributes: names of its joints, shape keys and normal corrections. group: the vertex group with its
    mask; fingerprint: of it as it was when this was noted; painted: it is the artist's. singular_values: of all
    components that there are, but for the last where they are many; total_square: the sum of the squares of all.
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
    """properties: custom properties of the Key data-block. made_basis, made_animation: the Basis key, and the Key's
    animation data, were not there before. preserve_volume: names of Armature modifiers in which it was turned off, one
    for each of volume_objects, which have them. baked: the keys' values are keyframes at present; made_action: in an
    action that was not there before. world_units: the distances from the examples were measured in the world, as
    earlier versions did not."""

    vertex_count: int
    properties: tuple[str, ...] = ()
    made_basis: bool = False
    made_animation: bool = False
    preserve_volume: tuple[str, ...] = ()
    volume_objects: tuple[str, ...] = ()
    baked: bool = False
    made_action: bool = False
    world_units: bool = False


@dataclass
class Record(_Head):
    """All that was made on a mesh. kept: supports that are no more, whose painted groups were kept. muted: whether its
    shape keys are, at the time of reading."""

    supports: tuple[SupportRecord, ...] = ()
    kept: tuple[SupportRecord, ...] = ()
    muted: bool = False

    @property
    def turned_off(self) -> tuple[tuple[str, str], ...]:
        """Objects and Armature modifiers in which Preserve Volume was turned off."""
        return tuple(zip(self.volume_objects, self.preserve_volume, strict=False))

    @turned_off.setter
    def turned_off(self, pairs) -> None:
        pairs = dict.fromkeys(pairs)
        self.volume_objects = tuple(name for name, _ in pairs)
        self.preserve_volume = tuple(name for _, name in pairs)


def eigenskin_record(object) -> Record | None:
    """What was made on the object's mesh; None where there is no EigenSkin. Cheap enough for a panel."""
    if object is None or object.type != "MESH":
        return None
    mesh = object.data
    stored = mesh.get(EIGENSKIN)
    if not hasattr(stored, "to_dict"):
        return None
    values = stored.to_dict()
    head, supports, kept = record_of(values, _Head), _supports(values, "support"), _supports(values, "kept")
    if head is None or supports is None or kept is None:
        return None
    blocks = mesh.shape_keys.key_blocks if mesh.shape_keys is not None else {}
    mutes = [blocks[name].mute for support in supports for name in support.keys if name in blocks]
    return Record(**vars(head), supports=supports, kept=kept, muted=bool(mutes) and all(mutes))


def store_record(mesh, record: Record) -> None:
    """Keep ``record`` with the mesh."""
    write_record(mesh, EIGENSKIN, _Head(**{field.name: getattr(record, field.name) for field in fields(_Head)}))
    for kind, supports in (("support", record.supports), ("kept", record.kept)):
        for index, support in enumerate(supports):
            write_record(mesh[EIGENSKIN], f"{kind}_{index}", support)


def _supports(values: dict, kind: str) -> tuple[SupportRecord, ...] | None:
    """None where one is damaged."""
    found = []
    while f"{kind}_{len(found)}" in values:
        stored = values[f"{kind}_{len(found)}"]
        found.append(record_of(stored, SupportRecord) if isinstance(stored, dict) else None)
    return None if None in found else tuple(found)


def check_present(object) -> None:
    """Raises BadScene where there is no EigenSkin on the object's mesh, or it cannot be changed. It need not be
    readable, see ``present_record``."""
    if object is None:
        raise BadScene("There is no active object. Select a mesh with EigenSkin corrections")
    label = object_label(object)
    if not has_eigenskin(object):
        raise BadScene(f"The {label} has no EigenSkin corrections. Build them first")
    check_own_mesh(object, "its corrections cannot be changed")


def present_record(object) -> Record:
    """The record of corrections that can be changed. Raises BadScene, see ``check_present``."""
    check_present(object)
    record = eigenskin_record(object)
    if record is None:
        raise BadScene(
            f'The custom property "{EIGENSKIN}" of the mesh of {object_label(object)} was changed by hand, so its '
            "corrections are no longer known. Delete it, and the shape keys of the corrections"
        )
    return record


def own_keys(mesh, record: Record) -> list:
    """The shape keys that were made and are still there, renamed ones too: their drivers tell."""
    key = mesh.shape_keys
    if key is None:
        return []
    names = {name for support in record.supports for name in support.keys}
    driven = {curve.data_path for curve in own_drivers(mesh, record)}
    return [block for block in key.key_blocks if block.name in names or value_path(block.name) in driven]


def own_drivers(mesh, record: Record) -> list:
    """The driver curves that were made and are still there."""
    key = mesh.shape_keys
    if key is None:
        return []
    properties = [property_path(name) for name in record.properties]
    paths = {*properties, *(value_path(name) for support in record.supports for name in support.keys)}
    sources = tuple(f"{path}[" for path in properties)
    return [curve for curve in drivers_of(key) if curve.data_path in paths or _is_made(curve.driver, key, sources)]


def unknown_keys(mesh) -> list[str]:
    """Names of shape keys that an EigenSkin drives, where the mesh has no record."""
    driven = {curve.data_path for curve in _unknown_drivers(mesh)}
    return [block.name for block in mesh.shape_keys.key_blocks if value_path(block.name) in driven] if driven else []


def remove_dead_drivers(mesh) -> None:
    """Remove those of an EigenSkin whose shape keys are gone: some Blender versions keep them, and a new shape key of
    that name would obey them."""
    key = mesh.shape_keys
    alive = {value_path(block.name) for block in key.key_blocks} if key is not None else set()
    for curve in [curve for curve in _unknown_drivers(mesh) if curve.data_path not in alive]:
        key.animation_data.drivers.remove(curve)


def _unknown_drivers(mesh) -> list:
    key = mesh.shape_keys
    sources = (property_path(PREFIX).removesuffix('"]'),)
    return [curve for curve in drivers_of(key) if _is_made(curve.driver, key, sources)] if key is not None else []


def painted_masks(object) -> dict[str, np.ndarray]:
    """The masks (N,) that the artist has painted, by the support's name: of groups that are not as they were written.

    Painted once, a group stays the artist's until it is deleted. Where the mesh has got other vertices since, groups
    that were not painted before count as unchanged.
    """
    record = eigenskin_record(object)
    if record is None:
        return {}
    find_renamed_groups(object, record)
    same_mesh = record.vertex_count == len(object.data.vertices)
    known = {
        support.name: support
        for support in (*record.kept, *record.supports)
        if support.group in object.vertex_groups and (same_mesh or support.painted)
    }
    masks = group_masks(object, [support.group for support in known.values()])
    return {
        name: mask.astype(np.float64)
        for (name, support), mask in zip(known.items(), masks, strict=True)
        if support.painted or fingerprint(mask) != support.fingerprint
    }


def find_renamed_groups(object, record: Record) -> None:
    """Note in ``record`` the present names of groups that were renamed, and are otherwise as they were.

    Never a bone's group: the artist may have made a mask of it.
    """
    supports = (*record.kept, *record.supports)
    lost = [support for support in supports if support.group not in object.vertex_groups]
    if not lost:
        return
    armature = armature_of(object)
    bones = {bone.name for bone in armature.data.bones} if armature is not None else set()
    candidates = list(set(object.vertex_groups.keys()) - bones - {support.group for support in supports})
    masks = group_masks(object, candidates)
    names = {fingerprint(mask): name for name, mask in zip(candidates, masks, strict=True) if mask.any()}
    for support in lost:
        support.group = names.get(support.fingerprint, support.group)


def group_masks(object, names) -> np.ndarray:
    """(S, N) float32: the weights in the vertex groups ``names``."""
    bones, weights = read_weights(object, names)
    masks = np.zeros((len(names), len(bones)), np.float32)
    if names:
        for slot in range(bones.shape[1]):
            masks[bones[:, slot], np.arange(len(bones))] += weights[:, slot]
    return masks


def fingerprint(mask: np.ndarray) -> str:
    """Of a mask (N,) as a vertex group holds it."""
    return hashlib.sha1(np.ascontiguousarray(mask, np.float32), usedforsecurity=False).hexdigest()


def _is_made(driver, key, sources: tuple[str, ...]) -> bool:
    """Whether a driver computes what a shape key is given from the properties whose paths begin with ``sources``."""
    targets = (target for variable in driver.variables for target in variable.targets)
    return driver.expression.startswith(VALUE_BEGINNING) and any(
        target.id == key and target.data_path.startswith(sources) for target in targets
    )
