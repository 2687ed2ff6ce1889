# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove an EigenSkin's data from a mesh, and keep the artist's own settings."""

from collections.abc import Iterable, Sequence

import bpy

from ...blender.attributes import has_attribute, remove_attributes, write_attribute
from ...blender.data_blocks import clear_shape_keys
from ...blender.look_ups import users_of
from ...blender.skin_reader import rest_positions
from .bake import take_keyframes_away
from .record import Record, own_drivers, own_keys

# Properties that the artist may have set on a shape key, copied to the new one of the same name.
_KEPT_OF_KEY = ("mute", "lock_shape", "vertex_group")

# For the glTF exporter, which keeps names that begin with an underscore: each vertex's texels, see ``engine_table``.
RUNS_ATTRIBUTE, NORMAL_RUNS_ATTRIBUTE = "_EIGENSKIN", "_EIGENSKIN_NORMAL"


class Shown:
    """The active shape key and vertex group of each object with the mesh, by name."""

    def __init__(self, mesh_object: bpy.types.Object):
        self._active = [
            (
                ob,
                ob.active_shape_key_index,
                ob.active_shape_key.name if ob.active_shape_key else "",
                ob.vertex_groups.active_index,
                ob.vertex_groups.active.name if ob.vertex_groups.active else "",
            )
            for ob in users_of(mesh_object.data)
        ]

    def restore(self) -> None:
        for ob, key_index, key_name, group_index, group_name in self._active:
            blocks = ob.data.shape_keys.key_blocks if ob.data.shape_keys else ()
            ob.active_shape_key_index = max(blocks.find(key_name), 0) if key_name and blocks else key_index
            found = ob.vertex_groups.find(group_name) if group_name else group_index
            ob.vertex_groups.active_index = found if found >= 0 else 0


class KeptOfKeys:
    """The artist's settings on shape keys that are replaced, and the other keys relative to them."""

    def __init__(self, mesh: bpy.types.Mesh, replaced: Sequence[bpy.types.ShapeKey]):
        names = {block.name for block in replaced}
        blocks = mesh.shape_keys.key_blocks if replaced else ()
        self._settings = {block.name: {name: getattr(block, name) for name in _KEPT_OF_KEY} for block in replaced}
        self._relative = {
            block.name: block.relative_key.name
            for block in blocks
            if block.name not in names and block.relative_key.name in names
        }

    def restore(self, mesh: bpy.types.Mesh) -> None:
        blocks = mesh.shape_keys.key_blocks
        for name, settings in self._settings.items():
            for setting, value in settings.items() if name in blocks else ():
                setattr(blocks[name], setting, value)
        for name, relative in self._relative.items():
            if relative in blocks:
                blocks[name].relative_key = blocks[relative]


def take_away(mesh_object: bpy.types.Object, record: Record, spared_groups: Iterable[str] = ()) -> None:
    """Remove what ``record`` lists, if it still exists, except ``spared_groups``."""
    mesh = mesh_object.data
    take_keyframes_away(mesh, record)
    blocks = own_keys(mesh, record)
    for curve in own_drivers(mesh, record):
        mesh.shape_keys.animation_data.drivers.remove(curve)
    for name in record.properties if mesh.shape_keys is not None else ():
        mesh.shape_keys.pop(name, None)
    for block in blocks:
        mesh_object.shape_key_remove(block)
    for name in {entry.group for entry in (*record.kept, *record.supports)} - set(spared_groups):
        if name in mesh_object.vertex_groups:
            mesh_object.vertex_groups.remove(mesh_object.vertex_groups[name])
    remove_attributes(mesh, (name for entry in record.supports for name in entry.attributes))
    for name in (RUNS_ATTRIBUTE, NORMAL_RUNS_ATTRIBUTE):
        if has_attribute(mesh, name, "FLOAT2"):
            remove_attributes(mesh, (name,))
    users = {ob.name: ob for ob in users_of(mesh)}
    for user, name in record.turned_off:
        modifier = users[user].modifiers.get(name) if user in users else None
        if modifier is not None and modifier.type == "ARMATURE":
            modifier.use_deform_preserve_volume = True
    _take_frame_away(mesh_object, record)


def _take_frame_away(mesh_object: bpy.types.Object, record: Record) -> None:
    """Remove the data made to hold shape keys and drivers, if it holds nothing else."""
    key = mesh_object.data.shape_keys
    if key is None:
        return
    animation = key.animation_data
    unused = animation and not (len(animation.drivers) or animation.action or len(animation.nla_tracks))
    if record.made_animation and unused:
        key.animation_data_clear()
    if record.made_basis and len(key.key_blocks) == 1 and key.animation_data is None:
        positions = rest_positions(mesh_object.data)
        clear_shape_keys(mesh_object)
        write_attribute(mesh_object.data, "position", "FLOAT_VECTOR", positions)
