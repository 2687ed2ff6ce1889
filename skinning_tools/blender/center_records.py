# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of centers of rotation, on the mesh that has them and on the modifier that uses them, and its inputs."""

from dataclasses import dataclass
from typing import Any

import bpy

from .attributes import remove_attributes
from .figures import Figure
from .records import read_record

# On the node group of the modifier: a ModifierRecord.
CRS_PROPERTY = "skinning_center_of_rotation"
# On the mesh: a BakeRecord of the last bake.
BAKE_PROPERTY = "skinning_rotation_centers"
# The shapes that centers may be baked of: the mesh itself, or what reaches its armature at the current frame.
BASIS, CURRENT = "BASIS", "CURRENT"
# Ending of the attribute that marks the vertices with a center.
VALID_ENDING = "_valid"


@dataclass(frozen=True)
class ModifierRecord:
    """bones: in the order of the vertices' bone indices. armature_modifier: the name of the modifier that it replaces;
    show_viewport and show_render: where that was enabled. rest_position: whether the object had the rest position
    attribute before."""

    bones: tuple[str, ...]
    armature_modifier: str
    show_viewport: bool
    show_render: bool
    rest_position: bool = False


@dataclass(frozen=True)
class BakeRecord:
    """How the centers of a mesh were baked. fingerprint: of the mesh, without shape keys and modifiers, and weights.
    shape: BASIS or CURRENT."""

    attribute: str
    sigma: float
    subdivision_epsilon: float
    symmetrize: bool
    center_count: int
    fingerprint: str
    shape: str = BASIS

    def figures(self, vertex_count: int) -> list[Figure]:
        """The figures of the bake of a mesh with that many vertices."""
        count, epsilon = self.center_count, self.subdivision_epsilon
        return [
            Figure("With a center", count, panel=f"{count:,} of {vertex_count:,}"),
            Figure("Without", vertex_count - count, panel=""),
            Figure("Sigma", self.sigma, "{:.4g}", line=""),
            Figure("Subdivision", epsilon, "{:.4g}", line="", panel=None if epsilon else "Off"),
            Figure("Rest shape", self.shape, line="", panel="Current" if self.shape == CURRENT else ""),
        ]


def remove_centers(mesh: bpy.types.Mesh) -> None:
    """Remove the centers from a mesh."""
    record = read_record(mesh, BAKE_PROPERTY, BakeRecord)
    if record is not None:
        remove_attributes(mesh, (record.attribute, record.attribute + VALID_ENDING))
    if BAKE_PROPERTY in mesh:
        del mesh[BAKE_PROPERTY]


def native_modifier(mesh_object: bpy.types.Object) -> bpy.types.NodesModifier | None:
    """The object's Center of Rotation modifier, or None."""
    for modifier in mesh_object.modifiers:
        if modifier.type == "NODES" and modifier.node_group and modifier.node_group.get(CRS_PROPERTY) is not None:
            return modifier
    return None


def modifier_record(modifier: bpy.types.NodesModifier) -> ModifierRecord | None:
    """The record of ``native_modifier``; None if it is damaged."""
    return read_record(modifier.node_group, CRS_PROPERTY, ModifierRecord)


def modifier_input(modifier: bpy.types.NodesModifier, name: str) -> Any:
    """The value of an input of a Geometry Nodes modifier; None if it has no such input."""
    identifier = _identifier(modifier, name)
    if identifier is None:
        return None
    if hasattr(modifier, "properties"):
        return getattr(modifier.properties.inputs, identifier).value
    return modifier.get(identifier)


def set_input(modifier: bpy.types.NodesModifier, name: str, value: Any = None, attribute: str | None = None) -> None:
    """Set an input of a Geometry Nodes modifier, to a value, or to an attribute or vertex group by its name."""
    identifier = _identifier(modifier, name)
    assert identifier is not None, name
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


def input_path(modifier: bpy.types.NodesModifier, name: str) -> str:
    """The path of an input's value from the object, for drivers."""
    identifier = _identifier(modifier, name)
    assert identifier is not None, name
    of_input = f".properties.inputs.{identifier}.value" if hasattr(modifier, "properties") else f'["{identifier}"]'
    return modifier.path_from_id() + of_input


def _identifier(modifier: bpy.types.NodesModifier, name: str) -> str | None:
    for item in modifier.node_group.interface.items_tree:
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.name == name:
            return item.identifier
    return None
