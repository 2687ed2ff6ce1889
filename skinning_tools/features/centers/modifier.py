# SPDX-License-Identifier: GPL-3.0-or-later
"""The Geometry Nodes modifier that deforms a mesh about its centers of rotation, in Blender 5.1 and newer."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import read_attribute, remove_attributes, write_attribute
from ...blender.before_armature import check_vertices
from ...blender.center_records import (
    CRS_PROPERTY,
    ModifierRecord,
    modifier_input,
    modifier_record,
    native_modifier,
    set_input,
)
from ...blender.character import check_one_character
from ...blender.look_ups import users_of
from ...blender.node_builder import remove_tree
from ...blender.object_checks import REFINING_MODIFIERS
from ...blender.object_transform import set_parent_type
from ...blender.preconditions import check_attributes_writable, check_not_edited, check_type, object_label, unmet
from ...blender.records import RESERVED, write_record
from ...blender.skin_reader import Skin, armature_modifier, armature_of, bone_names, check_turning, read_skin
from ...core.errors import BadScene
from . import baking
from .following import REST
from .nodes import SLOTS_PER_ATTRIBUTE, build_tree

LABEL = "Center of Rotation"

# Prefix of the attributes with the vertices' bones and weights.
INFLUENCES = f"{RESERVED}influences"

# Vertices with more bones lose the smallest weights.
MOST_SLOTS = 2 * SLOTS_PER_ATTRIBUTE

FIRST_VERSION = (5, 1, 0)


def reason_not_available() -> str:
    """Why this Blender version does not support the modifier, in one line, or ""."""
    if bpy.app.version >= FIRST_VERSION:
        return ""
    return (
        f"The modifier needs Blender 5.1 or newer, this is {bpy.app.version_string}: earlier geometry nodes cannot "
        "read bones. Use Apply as Shape Keys or Bake to PC2 instead"
    )


def check_addable(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raise BadScene with the reason if the modifier cannot be added; cheap. ``add`` checks the bake."""
    reason = reason_not_available()
    if reason:
        raise BadScene(reason)
    check_turning(context, mesh_object)
    check_attributes_writable(mesh_object)
    _check_modifiers(mesh_object)
    _check_sharing(mesh_object)


def check_updatable(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if ``update`` would. Evaluates the modifiers above the armature."""
    check_turning(context, mesh_object)
    if reason_not_available():
        return
    if native_modifier(mesh_object) is not None:
        check_addable(context, mesh_object)
        check_vertices(context, mesh_object)
    elif _twins(mesh_object):
        _check_sharing(mesh_object)


def is_current(mesh_object: bpy.types.Object) -> bool:
    """Whether the object's modifier still matches the rig. Cheap: the bake's state covers the weights.

    The nodes use bones' names and numbers: renaming, adding or removing a bone invalidates them.
    """
    modifier, armature = native_modifier(mesh_object), armature_of(mesh_object)
    record = modifier_record(modifier)
    if record is None or armature is None:
        return False
    return record.bones == bone_names(mesh_object, armature) and modifier_input(modifier, "Armature") == armature


def refining_above(mesh_object: bpy.types.Object) -> bpy.types.MirrorModifier | None:
    """The first modifier, or None, that adds vertices before this modifier or, without it, before the armature."""
    end = native_modifier(mesh_object) or armature_modifier(mesh_object)
    for modifier in mesh_object.modifiers:
        if modifier == end:
            return None
        # Bone indices of added vertices would be mixtures of others', or from the wrong side.
        if modifier.type in REFINING_MODIFIERS and (modifier.show_viewport or modifier.show_render):
            return modifier
    return None


def is_leftover(mesh_object: bpy.types.Object) -> bool:
    """Whether the user removed or applied the modifier: its data is left, and the Armature modifier is off."""
    armature = armature_modifier(mesh_object)
    if native_modifier(mesh_object) is not None or armature is None or armature.show_viewport or armature.show_render:
        return False
    return any(attribute.name.startswith(INFLUENCES) for attribute in mesh_object.data.attributes)


def add(context: bpy.types.Context, mesh_object: bpy.types.Object) -> bpy.types.NodesModifier:
    """Add the modifier instead of the Armature modifier, which is turned off, or update the existing one.

    Also updates those of other objects with the same mesh. Returns the modifier. Raises BadScene, also if the centers
    are missing or older than the weights, and BadMesh if a modifier above the armature adds vertices.
    """
    check_addable(context, mesh_object)
    record = baking.check_fresh(mesh_object)
    check_vertices(context, mesh_object)
    _write([mesh_object, *_twins(mesh_object)], read_skin(context, mesh_object), record)
    return native_modifier(mesh_object)


def update(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Update the modifiers of all objects that share the object's mesh and bones to its bake."""
    if reason_not_available():
        return
    users = _twins(mesh_object)
    if native_modifier(mesh_object) is not None:
        users.insert(0, mesh_object)
    if users:
        _write(users, read_skin(context, mesh_object), baking.check_fresh(mesh_object))


def check_bakeable(context: bpy.types.Context, meshes: Sequence[bpy.types.Object]) -> None:
    """Raise BadScene if centers of the meshes cannot be baked. Cheap enough for a panel."""
    for mesh_object in meshes:
        check_turning(context, mesh_object)
    check_one_character(list(meshes))


def bake(
    context: bpy.types.Context, meshes: Sequence[bpy.types.Object], add_modifier: bool = False, **settings: Any
) -> background.Steps:
    """Generator: ``baking.bake``, followed by an update of the modifiers that use the centers.

    add_modifier: add one to those of ``meshes`` that have none.
    """
    for mesh_object in meshes:
        if add_modifier:
            check_addable(context, mesh_object)
        check_updatable(context, mesh_object)
    result = yield from baking.bake(context, meshes, **settings)
    for mesh_object in meshes:
        # A modifier's copy of the weights may be as outdated as the centers were.
        (add if add_modifier else update)(context, mesh_object)
    return result


def check_removable(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raise BadScene with the reason if the modifier cannot be removed; cheap."""
    mesh = mesh_object is not None and mesh_object.type == "MESH"
    modifier = native_modifier(mesh_object) if mesh else None
    if modifier is None and not (mesh and is_leftover(mesh_object)):
        check_type(mesh_object, "Select a mesh, or its armature")
        raise BadScene(f"The {object_label(mesh_object)} has no {LABEL} modifier")
    linked = mesh_object.override_library is not None and modifier is not None and modifier.is_override_data
    if mesh_object.library is not None or linked:
        block = f"{LABEL} modifier of {object_label(mesh_object)}"
        raise unmet("LINKED", block=block, work="it cannot be removed here")
    check_not_edited(mesh_object)


def remove(mesh_object: bpy.types.Object) -> bpy.types.ArmatureModifier | None:
    """Remove the modifier with its data, and turn the Armature modifier on again.

    Also works if only its data is left. Returns the Armature modifier, None if it is gone. The object must pass
    ``check_removable``.
    """
    modifier, armature, record = native_modifier(mesh_object), armature_modifier(mesh_object), None
    if modifier is not None:
        tree, record = modifier.node_group, modifier_record(modifier)
        mesh_object.modifiers.remove(modifier)
        remove_tree(tree)
    if armature is not None:
        armature.show_viewport, armature.show_render = _shown(armature, record)
    mesh_object.add_rest_position_attribute = record is not None and record.rest_position
    mesh = mesh_object.data
    if mesh.library is None and not any(native_modifier(other) for other in _other_users(mesh_object)):
        remove_data(mesh)
        mesh.update()
    return armature


def remove_data(mesh: bpy.types.Mesh) -> None:
    """Remove the modifier's data from a mesh, if any."""
    names = [attribute.name for attribute in mesh.attributes if attribute.name.startswith(INFLUENCES)]
    remove_attributes(mesh, [*names, REST])


def _write(users: list, skin: Skin, centers: baking.BakeRecord) -> None:
    """Give ``users``, objects with the skin's mesh and bones, the modifier. Steps that may fail precede all changes."""
    bones, weights = packed(skin)
    names = _influence_names(skin.object, bones.shape[1])
    trees = []
    try:
        for user in users:
            tree = build_tree(f"{user.name} {LABEL}", skin.bone_names, bones.shape[1], centers.attribute, names)
            trees.append(tree)
    except BaseException:
        for tree in trees:
            remove_tree(tree)
        raise
    leftovers = [is_leftover(user) for user in users]
    _write_influences(skin.object.data, bones, weights, names)
    write_attribute(skin.object.data, REST, "FLOAT_VECTOR", read_attribute(skin.object.data, "position"))
    for user, tree, leftover in zip(users, trees, leftovers, strict=True):
        _install(user, tree, skin.bone_names, leftover)
    skin.object.data.update()


def _install(
    mesh_object: bpy.types.Object, tree: bpy.types.GeometryNodeTree, bones: tuple[str, ...], leftover: bool
) -> None:
    """Assign the tree to the object's modifier, which is added if missing.

    leftover: the Armature modifier is off because of a removed modifier.
    """
    armature, modifier = _own_armature_modifier(mesh_object), native_modifier(mesh_object)
    old = modifier.node_group if modifier is not None else None
    record = modifier_record(modifier) if modifier is not None else None
    if modifier is not None or leftover:
        shown = _shown(armature, record)
    else:
        shown = armature.show_viewport, armature.show_render
    rest = record.rest_position if record is not None else mesh_object.add_rest_position_attribute and not leftover
    write_record(tree, CRS_PROPERTY, ModifierRecord(bones, armature.name, *shown, rest))
    if modifier is None:
        modifier = _new_modifier(mesh_object, LABEL, "NODES", mesh_object.modifiers.find(armature.name) + 1)
    modifier.node_group = tree
    if old is not None:
        remove_tree(old)
    set_input(modifier, "Armature", armature.object)
    mesh_object.add_rest_position_attribute = True
    armature.show_viewport = armature.show_render = False


def _shown(armature: bpy.types.ArmatureModifier, record: ModifierRecord | None) -> tuple[bool, bool]:
    """Where the Armature modifier is to be on (viewport, render) after removal of the modifier with the record."""
    if record is None:
        return True, True
    if armature.show_viewport and armature.name != record.armature_modifier:
        # Another one than was turned off.
        return armature.show_viewport, armature.show_render
    return record.show_viewport, record.show_render


def packed(skin: Skin) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (N, K) for the nodes, K at most MOST_SLOTS.

    Vertices that no bone moves follow an identity bone after the last one.
    """
    from ...core.deform import strongest_influences

    bones, weights = strongest_influences(skin.bones, skin.weights, MOST_SLOTS)
    still = ~weights.any(axis=1)
    bones, weights = bones.copy(), weights.copy()
    bones[still, 0], weights[still, 0] = len(skin.bone_names), 1.0
    return bones, weights


def _influence_names(mesh_object: bpy.types.Object, slot_count: int) -> list[str]:
    """Names for the attributes that hold ``slot_count`` slots. Names of vertex groups are excluded: Blender treats both
    alike."""
    numbered = (f"{INFLUENCES}_{number}" for number in itertools.count(1))
    free = (name for name in numbered if name not in mesh_object.vertex_groups)
    return list(itertools.islice(free, math.ceil(slot_count / SLOTS_PER_ATTRIBUTE)))


def _write_influences(mesh: bpy.types.Mesh, bones: np.ndarray, weights: np.ndarray, names: list[str]) -> None:
    """Store bones and weights (N, K) as matrix attributes of 8 slots each, replacing earlier ones."""
    remove_data(mesh)
    for part, name in enumerate(names):
        slots = slice(part * SLOTS_PER_ATTRIBUTE, (part + 1) * SLOTS_PER_ATTRIBUTE)
        count = bones[:, slots].shape[1]
        values = np.zeros((len(bones), 2, SLOTS_PER_ATTRIBUTE), np.float32)
        values[:, 0, :count], values[:, 1, :count] = bones[:, slots], weights[:, slots]
        write_attribute(mesh, name, "FLOAT4X4", values)


def _own_armature_modifier(mesh_object: bpy.types.Object) -> bpy.types.ArmatureModifier:
    """The Armature modifier; if the armature deforms only as the parent, that is converted to a modifier first."""
    modifier = armature_modifier(mesh_object)
    if modifier is not None:
        return modifier
    modifier = _new_modifier(mesh_object, "Armature", "ARMATURE", 0)
    modifier.object = mesh_object.parent
    set_parent_type(mesh_object, "OBJECT")
    return modifier


def _new_modifier(mesh_object: bpy.types.Object, label: str, kind: str, place: int) -> bpy.types.NodesModifier:
    """A new modifier at a place among the others; the active modifier stays active."""
    active = mesh_object.modifiers.active
    active = active.name if active is not None else ""
    name = mesh_object.modifiers.new(label, kind).name
    mesh_object.modifiers.move(mesh_object.modifiers.find(name), place)
    if active:
        mesh_object.modifiers.active = mesh_object.modifiers[active]
    return mesh_object.modifiers[name]


def _check_modifiers(mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if the vertices that reach the armature are not the mesh's own."""
    modifier = refining_above(mesh_object)
    if modifier is not None:
        below = f"the {LABEL} modifier" if native_modifier(mesh_object) is not None else "the Armature modifier"
        raise BadScene(
            f'The modifier "{modifier.name}" of {object_label(mesh_object)} adds vertices that have no center of '
            f"rotation. Apply it, or move it below {below}"
        )


def _check_sharing(mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if another object with the same mesh numbers its bones differently."""
    twins = _twins(mesh_object)
    for other in _other_users(mesh_object):
        if native_modifier(other) is not None and armature_of(other) is not None and other not in twins:
            meaning = f"whose {LABEL} modifier has other bones"
            raise unmet("MESH_SHARED", object=mesh_object, other=other, meaning=meaning)


def _twins(mesh_object: bpy.types.Object) -> list:
    """Other objects with the modifier that share the mesh and number its bones alike, from any armature."""
    names = bone_names(mesh_object, armature_of(mesh_object))
    return [
        other
        for other in _other_users(mesh_object)
        if native_modifier(other) and armature_of(other) and bone_names(other, armature_of(other)) == names
    ]


def _other_users(mesh_object: bpy.types.Object) -> list:
    """Other local objects that share the mesh of ``mesh_object``."""
    users = users_of(mesh_object.data) if mesh_object.data.users > 1 else []
    return [ob for ob in users if ob != mesh_object and ob.library is None]
