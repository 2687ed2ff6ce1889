# SPDX-License-Identifier: GPL-3.0-or-later
"""Write an EigenSkin as plain Blender data, which is shape keys with drivers on a mesh, and remove it again."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.actions import value_path
from ...blender.attributes import write_attribute
from ...blender.data_blocks import free_name
from ...blender.look_ups import users_of
from ...blender.preconditions import check_bones, check_mode, check_own_mesh, object_label, unmet
from ...blender.records import EIGENSKIN, checksum, has_eigenskin
from ...blender.skin_reader import armature_of, rest_positions
from ...blender.vertex_groups import write_weights
from ...blender.wording import counted
from ...core.errors import BadScene
from . import drivers
from .examples import check_correctable
from .normal_display import hide_normals, mute_normals, show_normals
from .record import (
    Record,
    SupportRecord,
    eigenskin_record,
    find_renamed_groups,
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

# The temporary name of new shape keys, groups and attributes, until those that they replace are removed.
_TEMPORARY = "skinning_eigenskin"

# The record stores this many singular values beyond those of the components. More would make redraws of the panel
# slow, which reads the record each time.
_FURTHER_VALUES = 12


@dataclass(frozen=True)
class Written:
    """A written EigenSkin. painted_groups: vertex groups with the artist's masks, which were kept. preserve_volume:
    names of Armature modifiers whose Preserve Volume was turned off."""

    mesh_object: bpy.types.Object
    armature: bpy.types.Object
    shape_keys: tuple[str, ...]
    groups: tuple[str, ...]
    painted_groups: tuple[str, ...]
    attributes: tuple[str, ...]
    driver_count: int
    preserve_volume: tuple[str, ...]

    @classmethod
    def of(cls, mesh_object: bpy.types.Object, armature: bpy.types.Object, record: Record, drivers: int) -> "Written":
        supports = record.supports
        return cls(
            mesh_object,
            armature,
            tuple(name for support in supports for name in support.keys),
            tuple(support.group for support in supports),
            tuple(support.group for support in supports if support.painted),
            tuple(name for support in supports for name in support.attributes),
            drivers,
            tuple(dict.fromkeys(record.preserve_volume)),
        )

    @property
    def shape_key_count(self) -> int:
        return len(self.shape_keys)

    @property
    def support_count(self) -> int:
        return len(self.groups)


def check_writable(mesh_object: bpy.types.Object) -> None:
    """Raise BadScene with the reason if no shape keys and drivers can be made on the mesh. Cheap enough for a panel."""
    check_mode(mesh_object)
    mesh = mesh_object.data
    check_own_mesh(mesh_object, "no shape keys can be made on it")
    check_correctable(mesh_object)
    armature = armature_of(mesh_object)
    others = users_of(mesh) if mesh.users > 1 else []
    different = next((other for other in others if armature_of(other) != armature), None)
    if different is not None:
        meaning = "which another armature deforms or none"
        raise unmet("MESH_SHARED", object=mesh_object, other=different, meaning=meaning)
    # A record that cannot be read is refused later, because reading takes time.
    if not has_eigenskin(mesh_object):
        _check_no_unknown_keys(mesh_object)


def _check_no_unknown_keys(mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if the mesh has shape keys of an earlier build whose record is lost."""
    unknown = unknown_keys(mesh_object.data)
    if unknown:
        raise BadScene(
            f"The {object_label(mesh_object)} has {counted(len(unknown), 'shape key')} of earlier corrections (the "
            f'first: "{unknown[0]}"), but their record was deleted from the custom properties of its mesh. Remove '
            "such shape keys first"
        )


def _begun(
    mesh_object: bpy.types.Object, old: Record | None, model: "EigenSkin", half_rotations: tuple[int, ...]
) -> tuple[Record, dict[str, str]]:
    """The record of a new build with what it takes over from the ``old`` one, and the groups that the artist has
    painted, by support. Raises BadScene."""
    record = Record(model.vertex_count, world_units=True)
    record.half_rotations = half_rotations
    if old is None:
        _check_no_unknown_keys(mesh_object)
        return record, {}
    find_renamed_groups(mesh_object, old)
    # The earlier build made these; before it, they did not exist.
    record.made_basis, record.made_animation = old.made_basis, old.made_animation
    record.half_rotations = (*old.half_rotations, *half_rotations)
    groups = {entry.name: entry.group for entry in (*old.kept, *old.supports)}
    return record, {name: groups[name] for name in painted_masks(mesh_object)}


def write_eigenskin(
    mesh_object: bpy.types.Object,
    armature: bpy.types.Object,
    rig: "Rig",
    model: "EigenSkin",
    normals: bool = False,
    half_rotations: tuple[int, ...] = (),
    shown_normals: np.ndarray | None = None,
) -> Written:
    """Make the shape keys and drivers of ``model`` on the mesh, and replace those of an earlier build.

    armature: its bones drive the shape keys. rig: the rig of which ``model`` was built. Vertex groups show the masks of
    the supports; groups that the artist has painted stay. normals: write normal corrections, if the model has any, as
    attributes. half_rotations: numbers of the half-rotation bones made for it, beside those of the earlier build.
    shown_normals (N, 3): those of the rest pose, to show the corrected ones; None to leave them to Blender. All
    or nothing: after an exception the scene is as before. After an exception during the removal of an earlier build,
    the record lists what remains of both, so that it can be removed or replaced. Raises BadScene.
    """
    from ...core.eigenskin.shader_tables import model_text

    check_writable(mesh_object)
    mesh = mesh_object.data
    rest = rest_positions(mesh)
    if not np.array_equal(rest, rig.rest):
        raise BadScene(f"The {object_label(mesh_object)} was edited since its corrections were built. Build them again")
    check_bones(armature, _driving_joints(model), "BONE_GONE")
    old = eigenskin_record(mesh_object)
    record, painted = _begun(mesh_object, old, model, half_rotations)
    model = model if normals else model.without_normals()
    network = drivers.plan(model)

    def show() -> None:
        names = [name for support in record.supports for name in support.attributes]
        if shown_normals is not None and names:
            show_normals(mesh_object, rest, shown_normals, names, drivers.normals_property(record.properties))

    with ExitStack() as end, ExitStack() as undo:
        end.callback(Shown(mesh_object).restore)
        undo.callback(take_away, mesh_object, record, painted.values())
        _make_keys(mesh_object, rest, model, record)
        _make_drivers(mesh, armature, network, record, old, model_text(model))
        _make_groups(mesh_object, model, record, painted)
        _make_attributes(mesh_object, model, record)
        _turn_preserve_volume_off(mesh, armature, record)
        if old:
            undo.pop_all()
            _replace(mesh_object, armature, old, record, painted, show)
        else:
            undo.callback(mesh.pop, EIGENSKIN, None)
            remove_dead_drivers(mesh)
            _name_all(mesh_object, armature, record, painted)
            store_record(mesh, record)
            show()
            undo.pop_all()
    mesh.update()
    return Written.of(mesh_object, armature, record, network.driver_count)


def remove_eigenskin(mesh_object: bpy.types.Object) -> int:
    """Remove everything that ``write_eigenskin`` made on the mesh, including painted groups, and return the number of
    shape keys. Raises BadScene if there are no corrections."""
    record = present_record(mesh_object)
    check_mode(mesh_object)
    find_renamed_groups(mesh_object, record)
    mesh = mesh_object.data
    count = len(own_keys(mesh, record))
    shown = Shown(mesh_object)
    hide_normals(mesh_object)
    take_away(mesh_object, record)
    del mesh[EIGENSKIN]
    shown.restore()
    mesh.update()
    return count


def mute_eigenskin(mesh_object: bpy.types.Object, mute: bool) -> None:
    """Mute or unmute the corrections. Raises BadScene if there are none."""
    _mute_keys(mesh_object.data, present_record(mesh_object), mute)
    mute_normals(mesh_object, mute)
    mesh_object.data.update()


def _mute_keys(mesh: bpy.types.Mesh, record: Record, mute: bool) -> None:
    for block in own_keys(mesh, record):
        block.mute = mute


def _make_keys(mesh_object: bpy.types.Object, rest: np.ndarray, model: "EigenSkin", record: Record) -> None:
    mesh = mesh_object.data
    if mesh.shape_keys is None:
        mesh_object.shape_key_add(name="Basis", from_mix=False)
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
            block = mesh_object.shape_key_add(name=_TEMPORARY, from_mix=False)
            entry.keys += (block.name,)
            shape = rest.copy()
            shape[support.vertices] += component
            block.points.foreach_set("co", shape.astype(np.float32).ravel())
            block.relative_key = mesh.shape_keys.reference_key
            block.slider_min, block.slider_max = -limit, limit


def _make_drivers(
    mesh: bpy.types.Mesh,
    armature: bpy.types.Object,
    network: drivers.Network,
    record: Record,
    old: Record | None,
    text: str,
) -> None:
    key = mesh.shape_keys
    if key.animation_data is None:
        record.made_animation = True
    # The new properties get other names: the old names identify the old drivers, even if the properties are gone.
    properties = drivers.free_properties(key, network, old.properties if old else ())
    record.properties = tuple(properties.values())
    paths = [value_path(name) for support in record.supports for name in support.keys]
    drivers.write_drivers(key, armature, network, properties, paths)
    key[properties[drivers.MODEL]] = text


def _make_groups(mesh_object: bpy.types.Object, model: "EigenSkin", record: Record, painted: dict[str, str]) -> None:
    """Make a vertex group for each support without a painted mask. painted: names of the painted groups, by support."""
    for entry in record.supports:
        entry.group = painted.get(entry.name, "")
    gone = painted.keys() - {entry.name for entry in record.supports}
    record.kept = tuple(SupportRecord(name, group=painted[name]) for name in painted if name in gone)
    artists = [entry for entry in (*record.kept, *record.supports) if entry.name in painted]
    for entry, mask in zip(artists, group_masks(mesh_object, [entry.group for entry in artists]), strict=True):
        entry.painted, entry.fingerprint = True, checksum(mask)
    chosen = [
        (entry, support)
        for entry, support in zip(record.supports, model.supports, strict=True)
        if support.name not in painted
    ]
    taken = _layer_names(mesh_object)
    for entry, _ in chosen:
        entry.group = free_name(taken, _TEMPORARY)
    names = [entry.group for entry, _ in chosen]
    weights = np.stack([support.mask for _, support in chosen], axis=1) if chosen else np.zeros((model.vertex_count, 0))
    write_weights(mesh_object, names, np.broadcast_to(np.arange(len(names)), weights.shape), weights)
    for (entry, _), mask in zip(chosen, group_masks(mesh_object, names), strict=True):
        entry.fingerprint = checksum(mask)


def _make_attributes(mesh_object: bpy.types.Object, model: "EigenSkin", record: Record) -> None:
    mesh = mesh_object.data
    for entry, support in zip(record.supports, model.supports, strict=True):
        if support.normals is None:
            continue
        for correction in support.normals.components:
            name = free_name(_layer_names(mesh_object), _TEMPORARY)
            entry.attributes += (name,)
            vectors = np.zeros((model.vertex_count, 3), np.float32)
            vectors[support.normals.vertices] = correction
            write_attribute(mesh, name, "FLOAT_VECTOR", vectors)


def _turn_preserve_volume_off(mesh: bpy.types.Mesh, armature: bpy.types.Object, record: Record) -> None:
    """Turn Preserve Volume off, because the corrections are for plain linear blending."""
    for ob in users_of(mesh):
        for modifier in ob.modifiers:
            if modifier.type == "ARMATURE" and modifier.object == armature and modifier.use_deform_preserve_volume:
                modifier.use_deform_preserve_volume = False
                record.turned_off = (*record.turned_off, (ob.name, modifier.name))


def _replace(
    mesh_object: bpy.types.Object,
    armature: bpy.types.Object,
    old: Record,
    record: Record,
    painted: dict[str, str],
    show: Callable[[], None],
) -> None:
    """Remove what ``old`` lists, give everything in ``record`` its final name, then ``show`` its normals. During the
    removal the mesh's record lists both."""
    mesh = mesh_object.data
    record.turned_off = (*old.turned_off, *record.turned_off)
    supports, kept_groups = (*old.supports, *record.supports), (*old.kept, *record.kept)
    both = replace(
        record, properties=(*old.properties, *record.properties), supports=supports, kept=kept_groups, baked=old.baked
    )
    both.made_action = old.made_action
    store_record(mesh, both)
    kept = KeptOfKeys(mesh, own_keys(mesh, old))
    hide_normals(mesh_object)
    take_away(mesh_object, replace(old, preserve_volume=(), volume_objects=()), painted.values())
    try:
        _name_all(mesh_object, armature, record, painted)
        kept.restore(mesh)
        show()
        if old.muted:
            _mute_keys(mesh, record, True)
            mute_normals(mesh_object, True)
    finally:
        store_record(mesh, record)


def _name_all(
    mesh_object: bpy.types.Object, armature: bpy.types.Object, record: Record, painted: dict[str, str]
) -> None:
    """Replace the temporary names by final ones. After an exception, ``record`` has the present names."""
    mesh = mesh_object.data
    bones = {bone.name for bone in armature.data.bones}
    for entry in record.supports:
        keys = [mesh.shape_keys.key_blocks[name] for name in entry.keys]
        taken = {block.name for block in mesh.shape_keys.key_blocks}
        for index, block in enumerate(keys):
            block.name = free_name(taken, entry.name, f" {index + 1}")
            entry.keys = tuple(block.name for block in keys)
        # A group with the name of a bone would be used as its weights.
        if entry.name not in painted:
            name = free_name(_layer_names(mesh_object) | bones, entry.name, SUPPORT_ENDING)
            mesh_object.vertex_groups[entry.group].name = name
            entry.group = name
        attributes = [mesh.attributes[name] for name in entry.attributes]
        taken = _layer_names(mesh_object)
        for attribute, key in zip(attributes, entry.keys, strict=False):
            attribute.name = free_name(taken, key, NORMAL_ENDING)
            entry.attributes = tuple(attribute.name for attribute in attributes)


def _driving_joints(model: "EigenSkin") -> list[str]:
    return [model.joint_names[joint] for joint in sorted({joint for part in model.supports for joint in part.joints})]


def _layer_names(mesh_object: bpy.types.Object) -> set[str]:
    """Names of vertex groups and attributes, which must differ from each other."""
    return {*mesh_object.vertex_groups.keys(), *mesh_object.data.attributes.keys()}
