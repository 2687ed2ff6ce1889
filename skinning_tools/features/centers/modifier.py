# SPDX-License-Identifier: GPL-3.0-or-later
"""The Geometry Nodes modifier that deforms a mesh about its centers of rotation, in Blender 5.1 and newer."""

import itertools
import math

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
from ...blender.look_ups import users_of
from ...blender.object_checks import REFINING_MODIFIERS
from ...blender.object_transform import set_parent_type
from ...blender.preconditions import UNREADABLE_MODES, check_attributes_writable, object_label, unmet
from ...blender.records import RESERVED, write_record
from ...blender.skin_reader import Skin, armature_modifier, armature_of, bone_names, check_turning, read_skin
from ...core.errors import BadScene
from . import baking
from .following import REST
from .node_builder import remove_tree
from .nodes import SLOTS_PER_ATTRIBUTE, build_tree

LABEL = "Center of Rotation"

# Names of the attributes with the vertices' bones and weights begin with this.
INFLUENCES = f"{RESERVED}influences"

# Vertices with more bones lose the smallest weights.
MOST_SLOTS = 2 * SLOTS_PER_ATTRIBUTE

FIRST_VERSION = (5, 1, 0)


def reason_not_available() -> str:
    """Why this Blender cannot have the modifier, in one line, or ""."""
    if bpy.app.version >= FIRST_VERSION:
        return ""
    return (
        f"The modifier needs Blender 5.1 or newer, this is {bpy.app.version_string}: geometry nodes cannot read bones "
        "before. Use Apply as Shape Keys or Bake to PC2 instead"
    )


def check_addable(context, object) -> None:
    """Raises BadScene with the reason why the modifier cannot be added; cheap. The bake is checked by ``add``."""
    reason = reason_not_available()
    if reason:
        raise BadScene(reason)
    check_turning(context, object)
    check_attributes_writable(object)
    _check_modifiers(object)
    _check_sharing(object)


def check_updatable(context, object) -> None:
    """Raises BadScene where ``update`` would. Evaluates what is above the armature."""
    check_turning(context, object)
    if reason_not_available():
        return
    if native_modifier(object) is not None:
        check_addable(context, object)
        check_vertices(context, object)
    elif _twins(object):
        _check_sharing(object)


def is_current(object) -> bool:
    """Whether the modifier of ``object`` still goes with the rig. Cheap; weights are what the bake's state tells of.

    The nodes know bones by their names and numbers: renaming a bone, or one bone more or less, makes them others.
    """
    modifier, armature = native_modifier(object), armature_of(object)
    record = modifier_record(modifier)
    if record is None or armature is None:
        return False
    return record.bones == bone_names(object, armature) and modifier_input(modifier, "Armature") == armature


def refining_above(object):
    """The first modifier, or None, that makes vertices before they reach this one, or the armature where it is not."""
    end = native_modifier(object) or armature_modifier(object)
    for modifier in object.modifiers:
        if modifier == end:
            return None
        # Bone indices of the vertices that they make would be mixtures of those of others, or the wrong side's.
        if modifier.type in REFINING_MODIFIERS and (modifier.show_viewport or modifier.show_render):
            return modifier
    return None


def is_leftover(object) -> bool:
    """Whether the modifier was removed or applied by other means: its data is there, and the Armature modifier off."""
    armature = armature_modifier(object)
    if native_modifier(object) is not None or armature is None or armature.show_viewport or armature.show_render:
        return False
    return any(attribute.name.startswith(INFLUENCES) for attribute in object.data.attributes)


def add(context, object):
    """Add the modifier in place of the Armature modifier, which is turned off, or bring the one there up to date.

    So are those of other objects with the same mesh. Returns the modifier. Raises BadScene, also where the centers are
    missing or older than the weights, and BadMesh where a modifier above the armature makes vertices.
    """
    check_addable(context, object)
    record = baking.check_fresh(object)
    check_vertices(context, object)
    _write([object, *_twins(object)], read_skin(context, object), record)
    return native_modifier(object)


def update(context, object) -> None:
    """Bring the modifiers of all objects that share the object's mesh and bones up to date with its bake."""
    if reason_not_available():
        return
    users = _twins(object)
    if native_modifier(object) is not None:
        users.insert(0, object)
    if users:
        _write(users, read_skin(context, object), baking.check_fresh(object))


def bake(context, object, add_modifier: bool = False, **settings) -> background.Steps:
    """Generator: as ``baking.bake``, after which the modifiers that play the centers go with them.

    add_modifier: ``object`` gets one where it has none.
    """
    if add_modifier:
        check_addable(context, object)
    check_updatable(context, object)
    result = yield from baking.bake(context, object, **settings)
    # A modifier's own copy of the weights may be as old as the centers were.
    (add if add_modifier else update)(context, object)
    return result


def check_removable(context, object) -> None:
    """Raises BadScene with the reason why the modifier cannot be removed; cheap."""
    mesh = object is not None and object.type == "MESH"
    modifier = native_modifier(object) if mesh else None
    if modifier is None and not (mesh and is_leftover(object)):
        if not mesh:
            raise BadScene("There is no active mesh. Select one, or its armature")
        raise BadScene(f"The {object_label(object)} has no {LABEL} modifier")
    linked = object.override_library is not None and modifier is not None and modifier.is_override_data
    if object.library is not None or linked:
        raise BadScene(
            f"The {LABEL} modifier of {object_label(object)} is linked from another file. Remove it there, or make "
            "the object local (Object > Relations > Make Local)"
        )
    if object.data.is_editmode:
        raise unmet("MODE", object=object_label(object), mode=UNREADABLE_MODES["EDIT"])


def remove(object):
    """Remove the modifier with all that it needed, and turn the Armature modifier on as it was.

    So, too, where only leftovers of it are there. Returns the Armature modifier, None where it is gone. For what passes
    ``check_removable``.
    """
    modifier, armature, record = native_modifier(object), armature_modifier(object), None
    if modifier is not None:
        tree, record = modifier.node_group, modifier_record(modifier)
        object.modifiers.remove(modifier)
        remove_tree(tree)
    if armature is not None:
        armature.show_viewport, armature.show_render = _shown(armature, record)
    object.add_rest_position_attribute = record is not None and record.rest_position
    mesh = object.data
    if mesh.library is None and not any(native_modifier(other) for other in _other_users(object)):
        remove_data(mesh)
        mesh.update()
    return armature


def remove_data(mesh) -> None:
    """Take what the modifier reads off a mesh, where it has any."""
    names = [attribute.name for attribute in mesh.attributes if attribute.name.startswith(INFLUENCES)]
    remove_attributes(mesh, [*names, REST])


def _write(users: list, skin: Skin, centers: baking.BakeRecord) -> None:
    """Give ``users``, objects with the skin's mesh and bones, the modifier. What may fail comes before all changes."""
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


def _install(object, tree, bones: tuple[str, ...], leftover: bool) -> None:
    """Put the tree into the object's modifier, which is made where there is none.

    leftover: the Armature modifier is off for one that is gone.
    """
    armature, modifier = _own_armature_modifier(object), native_modifier(object)
    old = modifier.node_group if modifier is not None else None
    record = modifier_record(modifier) if modifier is not None else None
    if modifier is not None or leftover:
        shown = _shown(armature, record)
    else:
        shown = armature.show_viewport, armature.show_render
    rest = record.rest_position if record is not None else object.add_rest_position_attribute and not leftover
    write_record(tree, CRS_PROPERTY, ModifierRecord(bones, armature.name, *shown, rest))
    if modifier is None:
        modifier = _new_modifier(object, LABEL, "NODES", object.modifiers.find(armature.name) + 1)
    modifier.node_group = tree
    if old is not None:
        remove_tree(old)
    set_input(modifier, "Armature", armature.object)
    object.add_rest_position_attribute = True
    armature.show_viewport = armature.show_render = False


def _shown(armature, record: ModifierRecord | None) -> tuple[bool, bool]:
    """Where the Armature modifier is to show (viewport, render) when the modifier with the record is gone."""
    if record is None:
        return True, True
    if armature.show_viewport and armature.name != record.armature_modifier:
        # Not the one that was turned off.
        return armature.show_viewport, armature.show_render
    return record.show_viewport, record.show_render


def packed(skin: Skin) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (N, K) as the nodes read them, K at most MOST_SLOTS.

    Vertices that no bone moves follow a bone after the last one, which does nothing.
    """
    from ...core.deform import strongest_influences

    bones, weights = strongest_influences(skin.bones, skin.weights, MOST_SLOTS)
    still = ~weights.any(axis=1)
    bones, weights = bones.copy(), weights.copy()
    bones[still, 0], weights[still, 0] = len(skin.bone_names), 1.0
    return bones, weights


def _influence_names(object, slot_count: int) -> list[str]:
    """Names for the attributes that hold as many slots. Those of vertex groups are taken: to Blender they are alike."""
    numbered = (f"{INFLUENCES}_{number}" for number in itertools.count(1))
    free = (name for name in numbered if name not in object.vertex_groups)
    return list(itertools.islice(free, math.ceil(slot_count / SLOTS_PER_ATTRIBUTE)))


def _write_influences(mesh, bones: np.ndarray, weights: np.ndarray, names: list[str]) -> None:
    """Store bones and weights (N, K) as matrix attributes of 8 slots each, in place of those that are there."""
    remove_data(mesh)
    for part, name in enumerate(names):
        slots = slice(part * SLOTS_PER_ATTRIBUTE, (part + 1) * SLOTS_PER_ATTRIBUTE)
        count = bones[:, slots].shape[1]
        values = np.zeros((len(bones), 2, SLOTS_PER_ATTRIBUTE), np.float32)
        values[:, 0, :count], values[:, 1, :count] = bones[:, slots], weights[:, slots]
        write_attribute(mesh, name, "FLOAT4X4", values)


def _own_armature_modifier(object):
    """The Armature modifier; where the armature only is the parent, its effect is made a modifier first."""
    modifier = armature_modifier(object)
    if modifier is not None:
        return modifier
    modifier = _new_modifier(object, "Armature", "ARMATURE", 0)
    modifier.object = object.parent
    set_parent_type(object, "OBJECT")
    return modifier


def _new_modifier(object, label: str, kind: str, place: int):
    """A modifier at a place among the others; the one that is active stays so."""
    active = object.modifiers.active
    active = active.name if active is not None else ""
    name = object.modifiers.new(label, kind).name
    object.modifiers.move(object.modifiers.find(name), place)
    if active:
        object.modifiers.active = object.modifiers[active]
    return object.modifiers[name]


def _check_modifiers(object) -> None:
    """Raises BadScene where the vertices that reach the armature are not the mesh's own."""
    modifier = refining_above(object)
    if modifier is not None:
        below = f"the {LABEL} modifier" if native_modifier(object) is not None else "the Armature modifier"
        raise BadScene(
            f'The modifier "{modifier.name}" of {object_label(object)} makes vertices that have no center of '
            f"rotation. Apply it, or move it below {below}"
        )


def _check_sharing(object) -> None:
    """Raises BadScene where another object with the same mesh numbers its bones in another way."""
    twins = _twins(object)
    for other in _other_users(object):
        if native_modifier(other) is not None and armature_of(other) is not None and other not in twins:
            raise BadScene(
                f'The {object_label(object)} shares its mesh with object "{other.name}", whose {LABEL} modifier has '
                "other bones. Make it a mesh of its own (Object > Relations > Make Single User > Object & Data)"
            )


def _twins(object) -> list:
    """Other objects with the modifier that share the mesh and number its bones alike, from whatever armature."""
    names = bone_names(object, armature_of(object))
    return [
        other
        for other in _other_users(object)
        if native_modifier(other) and armature_of(other) and bone_names(other, armature_of(other)) == names
    ]


def _other_users(object) -> list:
    """Objects of this file that share the mesh of ``object``."""
    users = users_of(object.data) if object.data.users > 1 else []
    return [ob for ob in users if ob != object and ob.library is None]
