# SPDX-License-Identifier: GPL-3.0-or-later
"""The Geometry Nodes modifier that deforms a mesh about its centers of rotation, in Blender 5.1 and newer."""

import math

import bpy
import numpy as np

from ..core.errors import BadScene
from . import rotation_centers
from .crs_nodes import SLOTS_PER_ATTRIBUTE, build_tree, remove_tree
from .object_checks import object_label
from .skin_reader import (
    CRS_PROPERTY,
    Skin,
    armature_modifier,
    armature_of,
    bone_names,
    check_skinned,
    native_modifier,
    read_skin,
)

LABEL = "Center of Rotation"

# Names of the attributes with the vertices' bones and weights begin with this.
INFLUENCES = "skinning_influences"

# Vertices with more bones lose the smallest weights.
MOST_SLOTS = 2 * SLOTS_PER_ATTRIBUTE

FIRST_VERSION = (5, 1, 0)

# They make vertices, whose bone indices would be mixtures of those of others, or the wrong side's.
_REFINING = {"BEVEL", "BOOLEAN", "DECIMATE", "MIRROR", "MULTIRES", "REMESH", "SCREW", "SKIN", "SUBSURF"} | {
    "VOLUME_TO_MESH", "WELD", "WIREFRAME"
}  # fmt: skip


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
    check_skinned(context, object)
    rotation_centers.check_bakeable(object)
    _check_modifiers(object)
    _check_sharing(object)


def check_updatable(context, object) -> None:
    """Raises BadScene where ``update`` would; cheap."""
    if native_modifier(object) is not None and not reason_not_available():
        check_addable(context, object)


def add(context, object):
    """Add the modifier in place of the Armature modifier, which is turned off, or bring the one there up to date.

    Returns the modifier. Raises BadScene, also where the centers are missing or older than the weights.
    """
    check_addable(context, object)
    record = rotation_centers.check_fresh(object)
    return _write(object, read_skin(context, object), record)


def update(context, object) -> bool:
    """Bring the modifier up to date with the weights, where the object has one; returns whether it has."""
    if native_modifier(object) is None or reason_not_available():
        return False
    add(context, object)
    return True


def remove(object) -> None:
    """Remove the modifier with all that it needed, and turn the Armature modifier on as it was.

    Raises BadScene where there is none.
    """
    modifier = native_modifier(object)
    if modifier is None:
        raise BadScene(f"The {object_label(object)} has no {LABEL} modifier")
    tree = modifier.node_group
    record = tree[CRS_PROPERTY].to_dict()
    object.modifiers.remove(modifier)
    armature = object.modifiers.get(record["armature_modifier"])
    if armature is not None:
        armature.show_viewport, armature.show_render = record["show_viewport"], record["show_render"]
    remove_tree(tree)
    if not any(native_modifier(other) for other in _users(object.data)):
        remove_data(object.data)
    object.data.update()


def remove_data(mesh) -> None:
    """Take what the modifier reads off a mesh, where it has any."""
    for name in [attribute.name for attribute in mesh.attributes if attribute.name.startswith(INFLUENCES)]:
        mesh.attributes.remove(mesh.attributes[name])


def _write(object, skin: Skin, centers):
    armature, modifier = _own_armature_modifier(object), native_modifier(object)
    if modifier is None:
        shown = {"show_viewport": armature.show_viewport, "show_render": armature.show_render}
    else:
        previous = modifier.node_group[CRS_PROPERTY].to_dict()
        shown = {name: previous[name] for name in ("show_viewport", "show_render")}
    bones, weights = packed(skin)
    names = _write_influences(object.data, bones, weights)
    tree = build_tree(f"{object.name} {LABEL}", skin.bone_names, bones.shape[1], centers.attribute, names)
    tree[CRS_PROPERTY] = {
        "bones": list(skin.bone_names),
        "armature_modifier": armature.name,
        **shown,
    }
    if modifier is None:
        modifier = object.modifiers.new(LABEL, "NODES")
        object.modifiers.move(len(object.modifiers) - 1, object.modifiers.find(armature.name) + 1)
        modifier = object.modifiers[object.modifiers.find(armature.name) + 1]
        old = None
    else:
        old = modifier.node_group
    modifier.node_group = tree
    if old is not None:
        remove_tree(old)
    set_input(modifier, "Armature", skin.armature)
    armature.show_viewport = armature.show_render = False
    object.data.update()
    return modifier


def set_input(modifier, name: str, value=None, attribute: str | None = None) -> None:
    """Set an input of a Geometry Nodes modifier, to a value or to an attribute (a vertex group) by its name."""
    interface = modifier.node_group.interface
    identifier = next(
        item.identifier
        for item in interface.items_tree
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.name == name
    )
    if hasattr(modifier, "properties"):
        target = getattr(modifier.properties.inputs, identifier)
        if attribute is None:
            target.value = value
        else:
            target.type, target.attribute_name = "ATTRIBUTE", attribute
    elif attribute is None:
        modifier[identifier] = value
    else:
        modifier[f"{identifier}_use_attribute"], modifier[f"{identifier}_attribute_name"] = True, attribute
    modifier.id_data.update_tag()


def packed(skin: Skin) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (N, K) as the nodes read them, K at most MOST_SLOTS.

    Vertices that no bone moves follow a bone after the last one, which does nothing.
    """
    bones, weights = skin.bones, skin.weights
    if weights.shape[1] > MOST_SLOTS:
        # The slots keep their order, which the blending of rotations depends on.
        chosen = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :MOST_SLOTS], axis=1)
        bones, weights = (np.take_along_axis(values, chosen, axis=1) for values in (bones, weights))
        sums = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    still = ~weights.any(axis=1)
    bones, weights = bones.copy(), weights.copy()
    bones[still, 0], weights[still, 0] = len(skin.bone_names), 1.0
    return bones, weights


def _write_influences(mesh, bones: np.ndarray, weights: np.ndarray) -> list[str]:
    """Store bones and weights (N, K) as matrix attributes of 8 slots each; returns their names."""
    remove_data(mesh)
    names = []
    for part in range(math.ceil(bones.shape[1] / SLOTS_PER_ATTRIBUTE)):
        slots = slice(part * SLOTS_PER_ATTRIBUTE, (part + 1) * SLOTS_PER_ATTRIBUTE)
        count = bones[:, slots].shape[1]
        values = np.zeros((len(bones), 2, SLOTS_PER_ATTRIBUTE), np.float32)
        values[:, 0, :count], values[:, 1, :count] = bones[:, slots], weights[:, slots]
        attribute = mesh.attributes.new(f"{INFLUENCES}_{part + 1}", "FLOAT4X4", "POINT")
        attribute.data.foreach_set("value", values.ravel())
        names.append(attribute.name)
    return names


def _own_armature_modifier(object):
    """The Armature modifier; where the armature only is the parent, its effect is made a modifier first."""
    modifier = armature_modifier(object)
    if modifier is not None:
        return modifier
    modifier = object.modifiers.new("Armature", "ARMATURE")
    modifier.object = object.parent
    object.parent_type = "OBJECT"
    object.modifiers.move(len(object.modifiers) - 1, 0)
    return object.modifiers[0]


def _check_modifiers(object) -> None:
    """Raises BadScene where the vertices that reach the armature are not the mesh's own."""
    armature = armature_modifier(object)
    for modifier in object.modifiers:
        if modifier == armature:
            return
        if modifier.type in _REFINING and (modifier.show_viewport or modifier.show_render):
            raise BadScene(
                f'The modifier "{modifier.name}" of {object_label(object)} makes vertices that have no center of '
                "rotation. Apply it, or move it below the Armature modifier"
            )


def _check_sharing(object) -> None:
    """Raises BadScene where another object with the same mesh numbers its bones in another way."""
    names = bone_names(object, armature_of(object))
    for other in _users(object.data):
        modifier = native_modifier(other) if other != object else None
        if modifier is not None and list(modifier.node_group[CRS_PROPERTY]["bones"]) != list(names):
            raise BadScene(
                f'The {object_label(object)} shares its mesh with object "{other.name}", whose {LABEL} modifier has '
                "other bones. Make it a mesh of its own (Object > Relations > Make Single User > Object & Data)"
            )


def _users(mesh) -> list:
    return [ob for ob in bpy.data.objects if ob.data == mesh] if mesh.users > 1 else []
