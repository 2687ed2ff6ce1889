# SPDX-License-Identifier: GPL-3.0-or-later
"""All or nothing: what is written to meshes, and added to their armature, is put back if one of the writes fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from . import actions
from .armatures import bones_edited, remove_bones, remove_if_empty
from .control_points import read_positions, stored_shapes
from .data_blocks import clear_shape_keys, is_alive
from .records import RESERVED
from .vertex_groups import Memberships, put_columns, remove_groups

# What writes change of a modifier, where it has such a property.
_SWITCHES = "show_viewport", "show_render", "use_vertex_groups", "use_deform_preserve_volume"
# What a bone that gets a new parent changes.
_JOINING = "use_connect", "use_inherit_rotation", "inherit_scale", "use_local_location"


@dataclass(frozen=True, eq=False)
class _Played:
    """What plays a data-block: its action with the slot, None without animation data; strips: those of its tracks, with
    theirs. kept: whether each of these actions has a fake user."""

    owner: bpy.types.ID
    played: tuple[Any, ...] | None
    strips: tuple[tuple[Any, ...], ...]
    kept: dict[bpy.types.Action, bool]

    @classmethod
    def of(cls, owner: bpy.types.ID) -> "_Played":
        animation = owner.animation_data
        action = animation.action if animation is not None else None
        played = None if animation is None else (action, getattr(animation, "action_slot", None))
        strips = tuple((each, each.action, actions.strip_slot(each)) for each in actions.own_strips(owner))
        everything = {action, *(each for _, each, _ in strips)} - {None}
        return cls(owner, played, strips, {each: each.use_fake_user for each in everything})

    def put_back(self) -> None:
        animation = self.owner.animation_data
        action, slot = self.played or (None, None)
        if animation is not None and animation.action != action:
            animation.action = action
            if slot is not None:
                animation.action_slot = slot
        for strip, *earlier in self.strips:
            if strip.action != earlier[0]:
                actions.set_strip_action(strip, *earlier)
        for each, kept in self.kept.items():
            if each.library is None:
                each.use_fake_user = kept
        if self.played is None:
            self.owner.animation_data_clear()


@dataclass(frozen=True, eq=False)
class _Skin:
    """An object with vertex groups. modifiers: which there are, and what of them is turned on; keys: of each shape key,
    whether it is muted and its value; played: by the shape keys, if there are any; shapes: in the order of
    ``stored_shapes``; properties: the extension's own, of the object and of its data."""

    object: bpy.types.Object
    groups: Memberships
    active: int
    modifiers: dict[str, dict[str, bool]]
    parent: bpy.types.Object | None
    parent_inverse: Matrix
    keys: dict[str, tuple[bool, float]]
    played: _Played | None
    shapes: list[np.ndarray]
    properties: tuple[dict[str, Any], dict[str, Any]]

    @classmethod
    def of(cls, ob: bpy.types.Object) -> "_Skin":
        return cls(
            ob,
            Memberships.read(ob),
            ob.vertex_groups.active_index,
            {m.name: {key: getattr(m, key) for key in _SWITCHES if hasattr(m, key)} for m in ob.modifiers},
            ob.parent,
            ob.matrix_parent_inverse.copy(),
            {block.name: (block.mute, block.value) for block in _shape_keys(ob)},
            _Played.of(ob.data.shape_keys) if _shape_keys(ob) else None,
            [read_positions(points, name) for points, name in stored_shapes(ob.data)],
            (_own_properties(ob), _own_properties(ob.data)),
        )

    def put_back(self) -> None:
        ob, names = self.object, self.groups.names
        for modifier in list(ob.modifiers):
            if modifier.name not in self.modifiers:
                ob.modifiers.remove(modifier)
                continue
            for key, value in self.modifiers[modifier.name].items():
                setattr(modifier, key, value)
        if ob.parent != self.parent:
            ob.parent = self.parent
            ob.matrix_parent_inverse = self.parent_inverse
        remove_groups(ob, [group.name for group in ob.vertex_groups if group.name not in names])
        put_columns(ob, dict(zip(names, self.groups.columns(names), strict=True)))
        ob.vertex_groups.active_index = self.active
        self._put_back_keys()
        for (points, name), shape in zip(stored_shapes(ob.data), self.shapes, strict=True):
            points.foreach_set(name, shape.astype(np.float32).ravel())
        for owner, properties in zip((ob, ob.data), self.properties, strict=True):
            written = _own_properties(owner)
            for key in written.keys() - properties.keys():
                del owner[key]
            for key, value in properties.items():
                if key not in written or written[key] != value:
                    owner[key] = value
        if isinstance(ob.data, bpy.types.Mesh):
            ob.data.update()
        ob.data.update_tag()

    def _put_back_keys(self) -> None:
        if self.played is not None:
            self.played.put_back()
        if not self.keys and _shape_keys(self.object):
            clear_shape_keys(self.object)
        for block in _shape_keys(self.object):
            if block.name not in self.keys:
                self.object.shape_key_remove(block)
                continue
            block.mute, block.value = self.keys[block.name]


def _shape_keys(ob: bpy.types.Object) -> list[bpy.types.ShapeKey]:
    keys = ob.data.shape_keys
    return list(keys.key_blocks) if keys is not None else []


def _own_properties(owner: bpy.types.ID) -> dict[str, Any]:
    return {key: _plain(owner[key]) for key in list(owner.keys()) if key.startswith(RESERVED)}


def _plain(value: Any) -> Any:
    """The value of a custom property, independent of its storage, which goes with the property."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.to_list() if hasattr(value, "to_list") else value


@dataclass(frozen=True, eq=False)
class _Bones:
    """An armature to which bones may be added, with drivers, bone collections and another action. joined: how each bone
    hangs on its parent."""

    armature: bpy.types.Object
    joined: dict[str, tuple[Any, ...]]
    collections: frozenset[str]
    played: _Played

    @classmethod
    def of(cls, armature: bpy.types.Object) -> "_Bones":
        return cls(
            armature,
            {bone.name: _joined(bone) for bone in armature.data.bones},
            frozenset(each.name for each in armature.data.collections_all),
            _Played.of(armature),
        )

    def put_back(self, context: bpy.types.Context) -> None:
        armature = self.armature
        self.played.put_back()
        added = [name for name in armature.data.bones.keys() if name not in self.joined]  # noqa: SIM118
        if added:
            remove_bones(context, armature, added, clear_animation=False)
            self._join_again(context)
        for collection in list(armature.data.collections_all):
            if collection.name not in self.collections:
                remove_if_empty(armature.data, collection)

    def _join_again(self, context: bpy.types.Context) -> None:
        changed = [bone.name for bone in self.armature.data.bones if _joined(bone) != self.joined[bone.name]]
        if not changed:
            return
        with bones_edited(context, self.armature) as edit_bones:
            for name in changed:
                above, *values = self.joined[name]
                edit_bones[name].parent = edit_bones.get(above)
                for key, value in zip(_JOINING, values, strict=True):
                    setattr(edit_bones[name], key, value)


def _joined(bone: bpy.types.Bone) -> tuple[Any, ...]:
    return (bone.parent.name if bone.parent is not None else "", *(getattr(bone, key) for key in _JOINING))


@contextmanager
def put_back_on_failure(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], armature: bpy.types.Object | None = None
) -> Iterator[None]:
    """Objects with vertex groups, and the bones of the ``armature``, are left as they were where the block raises."""
    skins = [_Skin.of(ob) for ob in objects]
    bones = _Bones.of(armature) if armature is not None else None
    try:
        yield
    except BaseException:
        if bones is not None and is_alive(bones.armature):
            bones.put_back(context)
        for each in skins:
            if is_alive(each.object):
                each.put_back()
        raise
