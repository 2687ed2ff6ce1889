# SPDX-License-Identifier: GPL-3.0-or-later
"""Write an EigenSkin as plain Blender data, shape keys with drivers on a mesh, and take it away again."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.actions import value_path
from ...blender.data_blocks import joined_name
from ...blender.look_ups import users_of
from ...blender.preconditions import check_mode, check_own_mesh, object_label
from ...blender.records import EIGENSKIN, has_eigenskin
from ...blender.skin_reader import armature_of, rest_positions
from ...blender.vertex_groups import write_weights
from ...core.errors import BadScene
from . import drivers
from .examples import check_correctable
from .record import (
    Record,
    SupportRecord,
    eigenskin_record,
    find_renamed_groups,
    fingerprint,
    group_masks,
    own_keys,
    painted_masks,
    present_record,
    remove_dead_drivers,
    store_record,
    unknown_keys,
)
from .removal import KeptOfKeys, Shown, take_away

if TYPE_CHECKING:
    from ...core.eigenskin import EigenSkin, Rig

SUPPORT_ENDING = " support"
NORMAL_ENDING = " normal"

# What new things are called until those that they replace are gone.
_TEMPORARY = "skinning_eigenskin"

# Singular values that the record has beyond those of the components: a panel reads it at each redraw.
_FURTHER_VALUES = 12


@dataclass(frozen=True)
class Written:
    """A written EigenSkin. painted_groups: vertex groups with the artist's masks, which were kept; preserve_volume:
    Armature modifiers in which it was turned off."""

    object: bpy.types.Object
    armature: bpy.types.Object
    shape_keys: tuple[str, ...]
    groups: tuple[str, ...]
    painted_groups: tuple[str, ...]
    attributes: tuple[str, ...]
    driver_count: int
    preserve_volume: tuple[str, ...]

    @property
    def shape_key_count(self) -> int:
        return len(self.shape_keys)

    @property
    def support_count(self) -> int:
        return len(self.groups)


def check_writable(object) -> None:
    """Raises BadScene with the reason why shape keys and drivers cannot be made on ``object``. Cheap enough for a
    panel."""
    label = object_label(object)
    check_mode(object)
    mesh = object.data
    check_own_mesh(object, "no shape keys can be made on it")
    check_correctable(object)
    armature = armature_of(object)
    others = users_of(mesh) if mesh.users > 1 else []
    different = next((other for other in others if armature_of(other) != armature), None)
    if different is not None:
        raise BadScene(
            f'The {label} shares its mesh with object "{different.name}", which another armature deforms or none. '
            "Make it a mesh of its own (Object > Relations > Make Single User > Object & Data)"
        )
    # One that cannot be read is for later: reading takes time.
    if not has_eigenskin(object):
        _check_no_unknown_keys(object)


def _check_no_unknown_keys(object) -> None:
    """Raises BadScene where a build would put its shape keys on top of an earlier one's, of which nothing is known."""
    unknown = unknown_keys(object.data)
    if unknown:
        raise BadScene(
            f"The {object_label(object)} has {len(unknown)} shape keys of earlier corrections, the first of them "
            f'"{unknown[0]}", but what was known of these was deleted from the custom properties of its mesh. Remove '
            "those shape keys first"
        )


def write_eigenskin(object, armature, rig: "Rig", model: "EigenSkin", normals: bool = False) -> Written:
    """Make the shape keys and drivers of ``model`` on the mesh, in place of those that an earlier one left there.

    armature: the object whose bones drive them; rig: what ``model`` was built for. Vertex groups show the supports'
    masks; those that the artist has painted stay. normals: write normal corrections, where the model has any, as
    attributes. All or nothing: where it raises, all is as before; where it fails after it has begun to take an earlier
    one away, what is there of both can be removed, and replaced. Raises BadScene.
    """
    check_writable(object)
    mesh = object.data
    rest = rest_positions(mesh)
    if not np.array_equal(rest, rig.rest):
        raise BadScene(f"The {object_label(object)} was edited since its corrections were built. Build them again")
    missing = [name for name in _driving_joints(model) if name not in armature.data.bones]
    if missing:
        raise BadScene(f'The armature "{armature.name}" has no bone "{missing[0]}" any more. Start again')
    old = eigenskin_record(object)
    if old is None:
        _check_no_unknown_keys(object)
    if old:
        find_renamed_groups(object, old)
    groups = {entry.name: entry.group for entry in (*old.kept, *old.supports)} if old else {}
    painted = {name: groups[name] for name in painted_masks(object)}
    record = Record(model.vertex_count, world_units=True)
    if old:
        # What an earlier one made was not there before.
        record.made_basis, record.made_animation = old.made_basis, old.made_animation
    network = drivers.plan(model)
    with ExitStack() as end, ExitStack() as undo:
        end.callback(Shown(object).restore)
        undo.callback(take_away, object, record, painted.values())
        _make_keys(object, rest, model, record)
        _make_drivers(mesh, armature, network, record, old)
        _make_groups(object, model, record, painted)
        if normals:
            _make_attributes(object, model, record)
        _turn_preserve_volume_off(mesh, armature, record)
        if old:
            undo.pop_all()
            _replace(object, armature, old, record, painted)
        else:
            undo.callback(mesh.pop, EIGENSKIN, None)
            remove_dead_drivers(mesh)
            _name_all(object, armature, record, painted)
            store_record(mesh, record)
            undo.pop_all()
    mesh.update()
    supports = record.supports
    return Written(
        object,
        armature,
        tuple(name for support in supports for name in support.keys),
        tuple(support.group for support in supports),
        tuple(support.group for support in supports if support.painted),
        tuple(name for support in supports for name in support.attributes),
        network.driver_count,
        tuple(dict.fromkeys(record.preserve_volume)),
    )


def remove_eigenskin(object) -> int:
    """Take away all that ``write_eigenskin`` left on the mesh, painted groups too; returns the number of shape keys.

    Raises BadScene where there is nothing.
    """
    record = present_record(object)
    check_mode(object)
    find_renamed_groups(object, record)
    mesh = object.data
    count = len(own_keys(mesh, record))
    shown = Shown(object)
    take_away(object, record)
    del mesh[EIGENSKIN]
    shown.restore()
    mesh.update()
    return count


def mute_eigenskin(object, mute: bool) -> None:
    """Show the mesh without its corrections, or with them again. Raises BadScene where there are none."""
    _mute_keys(object.data, present_record(object), mute)
    object.data.update()


def _mute_keys(mesh, record: Record, mute: bool) -> None:
    for block in own_keys(mesh, record):
        block.mute = mute


def _make_keys(object, rest: np.ndarray, model: "EigenSkin", record: Record) -> None:
    mesh = object.data
    if mesh.shape_keys is None:
        object.shape_key_add(name="Basis", from_mix=False)
        record.made_basis = True
    for support in model.supports:
        joints = tuple(model.joint_names[joint] for joint in support.joints)
        values = support.singular_values
        entry = SupportRecord(
            support.name,
            joints,
            singular_values=tuple(values[: len(support.components) + _FURTHER_VALUES].tolist()),
            total_square=float(np.square(values).sum()),
        )
        record.supports += (entry,)
        for component, limit in zip(support.components, support.limits.tolist(), strict=True):
            block = object.shape_key_add(name=_TEMPORARY, from_mix=False)
            entry.keys += (block.name,)
            shape = rest.copy()
            shape[support.vertices] += component
            block.points.foreach_set("co", shape.astype(np.float32).ravel())
            block.relative_key = mesh.shape_keys.reference_key
            block.slider_min, block.slider_max = -limit, limit


def _make_drivers(mesh, armature, network, record: Record, old: Record | None) -> None:
    key = mesh.shape_keys
    if key.animation_data is None:
        record.made_animation = True
    # What is left of the old ones is told by its properties' names, even where these are gone.
    properties = drivers.free_properties(key, network, old.properties if old else ())
    record.properties = tuple(properties.values())
    paths = [value_path(name) for support in record.supports for name in support.keys]
    drivers.write_drivers(key, armature, network, properties, paths)


def _make_groups(object, model: "EigenSkin", record: Record, painted: dict[str, str]) -> None:
    """Of all supports whose mask is not painted. painted: the groups of the others, by support."""
    for entry in record.supports:
        entry.group = painted.get(entry.name, "")
    gone = painted.keys() - {entry.name for entry in record.supports}
    record.kept = tuple(SupportRecord(name, group=painted[name]) for name in painted if name in gone)
    artists = [entry for entry in (*record.kept, *record.supports) if entry.name in painted]
    for entry, mask in zip(artists, group_masks(object, [entry.group for entry in artists]), strict=True):
        entry.painted, entry.fingerprint = True, fingerprint(mask)
    chosen = [
        (entry, support)
        for entry, support in zip(record.supports, model.supports, strict=True)
        if support.name not in painted
    ]
    taken = _layer_names(object)
    for entry, _ in chosen:
        entry.group = _free_name(_TEMPORARY, "", taken)
        taken.add(entry.group)
    names = [entry.group for entry, _ in chosen]
    weights = np.stack([support.mask for _, support in chosen], axis=1) if chosen else np.zeros((model.vertex_count, 0))
    write_weights(object, names, np.broadcast_to(np.arange(len(names)), weights.shape), weights)
    for (entry, _), mask in zip(chosen, group_masks(object, names), strict=True):
        entry.fingerprint = fingerprint(mask)


def _make_attributes(object, model: "EigenSkin", record: Record) -> None:
    mesh = object.data
    for entry, support in zip(record.supports, model.supports, strict=True):
        for correction in support.normal_components if support.normal_components is not None else ():
            name = _free_name(_TEMPORARY, "", _layer_names(object))
            attribute = mesh.attributes.new(name, "FLOAT_VECTOR", "POINT")
            entry.attributes += (name,)
            vectors = np.zeros((model.vertex_count, 3), np.float32)
            vectors[support.vertices] = correction
            attribute.data.foreach_set("vector", vectors.ravel())


def _turn_preserve_volume_off(mesh, armature, record: Record) -> None:
    """The corrections are of plain linear blending."""
    for ob in users_of(mesh):
        for modifier in ob.modifiers:
            if modifier.type == "ARMATURE" and modifier.object == armature and modifier.use_deform_preserve_volume:
                modifier.use_deform_preserve_volume = False
                record.turned_off = (*record.turned_off, (ob.name, modifier.name))


def _replace(object, armature, old: Record, record: Record, painted: dict[str, str]) -> None:
    """Take away what ``old`` lists, and give all in ``record`` its name. The mesh knows of both until that is done."""
    mesh = object.data
    record.turned_off = (*old.turned_off, *record.turned_off)
    supports, kept_groups = (*old.supports, *record.supports), (*old.kept, *record.kept)
    both = replace(
        record, properties=(*old.properties, *record.properties), supports=supports, kept=kept_groups, baked=old.baked
    )
    both.made_action = old.made_action
    store_record(mesh, both)
    kept = KeptOfKeys(mesh, own_keys(mesh, old))
    take_away(object, replace(old, preserve_volume=(), volume_objects=()), painted.values())
    try:
        _name_all(object, armature, record, painted)
        kept.restore(mesh)
        if old.muted:
            _mute_keys(mesh, record, True)
    finally:
        store_record(mesh, record)


def _name_all(object, armature, record: Record, painted: dict[str, str]) -> None:
    """Names that tell what is what, in place of the temporary ones. Where it fails, ``record`` has those so far."""
    mesh = object.data
    bones = {bone.name for bone in armature.data.bones}
    for entry in record.supports:
        keys = [mesh.shape_keys.key_blocks[name] for name in entry.keys]
        taken = {block.name for block in mesh.shape_keys.key_blocks}
        for index, block in enumerate(keys):
            block.name = _free_name(entry.name, f" {index + 1}", taken)
            entry.keys = tuple(block.name for block in keys)
        # A group with a bone's name would move the mesh.
        if entry.name not in painted:
            name = _free_name(entry.name, SUPPORT_ENDING, _layer_names(object) | bones)
            object.vertex_groups[entry.group].name = name
            entry.group = name
        attributes = [mesh.attributes[name] for name in entry.attributes]
        taken = _layer_names(object)
        for attribute, key in zip(attributes, entry.keys, strict=False):
            attribute.name = _free_name(key, NORMAL_ENDING, taken)
            entry.attributes = tuple(attribute.name for attribute in attributes)


def _driving_joints(model: "EigenSkin") -> list[str]:
    return [model.joint_names[joint] for joint in sorted({joint for part in model.supports for joint in part.joints})]


def _layer_names(object) -> set[str]:
    """Vertex groups and attributes have one set of names."""
    return {*object.vertex_groups.keys(), *object.data.attributes.keys()}


def _free_name(stem: str, ending: str, taken: set[str]) -> str:
    """``stem`` and ``ending``, with a number between them where that name is taken. Too long a stem is cut."""
    number = ""
    while True:
        name = joined_name(stem, number + ending)
        if name not in taken:
            return name
        number = f".{int(number[1:] or 0) + 1:03}"
