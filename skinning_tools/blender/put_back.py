# SPDX-License-Identifier: GPL-3.0-or-later
"""All or nothing: what is written to meshes, and added to their armature, is put back if one of the writes fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from .armatures import remove_bones, remove_if_empty
from .control_points import read_positions, stored_shapes
from .data_blocks import is_alive
from .vertex_groups import Memberships, put_columns, remove_groups

# What writes change of a modifier, where it has such a property.
_SWITCHES = "show_viewport", "show_render", "use_vertex_groups", "use_deform_preserve_volume"
# How the names of the extension's own custom properties begin.
_OWN = "skinning_"


@dataclass(frozen=True, eq=False)
class _Skin:
    """An object with vertex groups. modifiers: which there are, and what of them is turned on; shapes: in the order of
    ``stored_shapes``; properties: the extension's own, of the object and of its data."""

    object: bpy.types.Object
    groups: Memberships
    active: int
    modifiers: dict[str, dict[str, bool]]
    parent: bpy.types.Object | None
    parent_inverse: Matrix
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


def _own_properties(owner: bpy.types.ID) -> dict[str, Any]:
    return {key: _plain(owner[key]) for key in list(owner.keys()) if key.startswith(_OWN)}


def _plain(value: Any) -> Any:
    """The value of a custom property, independent of its storage, which goes with the property."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.to_list() if hasattr(value, "to_list") else value


@dataclass(frozen=True, eq=False)
class _Bones:
    """An armature to which bones may be added, with drivers, bone collections and another action. played: the action
    with its slot, None without animation data; kept: whether the action has a fake user."""

    armature: bpy.types.Object
    names: frozenset[str]
    collections: frozenset[str]
    played: tuple[Any, ...] | None
    kept: bool

    @classmethod
    def of(cls, armature: bpy.types.Object) -> "_Bones":
        animation = armature.animation_data
        action = animation.action if animation is not None else None
        return cls(
            armature,
            frozenset(armature.data.bones.keys()),
            frozenset(each.name for each in armature.data.collections_all),
            None if animation is None else (action, getattr(animation, "action_slot", None)),
            action is not None and action.use_fake_user,
        )

    def put_back(self, context: bpy.types.Context) -> None:
        armature, animation = self.armature, self.armature.animation_data
        action, slot = self.played or (None, None)
        if animation is not None and animation.action != action:
            animation.action = action
            if slot is not None:
                animation.action_slot = slot
        if action is not None:
            action.use_fake_user = self.kept
        added = [name for name in armature.data.bones.keys() if name not in self.names]  # noqa: SIM118
        if added:
            remove_bones(context, armature, added, clear_animation=False)
        if self.played is None:
            armature.animation_data_clear()
        for collection in list(armature.data.collections_all):
            if collection.name not in self.collections:
                remove_if_empty(armature.data, collection)


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
