# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of a mesh as arrays."""

from collections.abc import Iterable

import bpy
import numpy as np

# By data type: the property for foreach_get and foreach_set, its number type, and the shape of one value.
_KINDS = {
    "BOOLEAN": ("value", np.dtype(bool), ()),
    "INT": ("value", np.dtype(np.int32), ()),
    "FLOAT": ("value", np.dtype(np.float32), ()),
    "FLOAT2": ("vector", np.dtype(np.float32), (2,)),
    "FLOAT_VECTOR": ("vector", np.dtype(np.float32), (3,)),
    "FLOAT_COLOR": ("color", np.dtype(np.float32), (4,)),
    "FLOAT4X4": ("value", np.dtype(np.float32), (4, 4)),
}


def has_attribute(mesh: bpy.types.Mesh, name: str, data_type: str, domain: str = "POINT") -> bool:
    """Whether the mesh has an attribute of that name and kind."""
    attribute = mesh.attributes.get(name)
    return attribute is not None and (attribute.domain, attribute.data_type) == (domain, data_type)


def read_attribute(mesh: bpy.types.Mesh, name: str, into: np.ndarray | None = None) -> np.ndarray:
    """The values (N, …) of an existing attribute, written to the contiguous array ``into`` if given."""
    attribute = mesh.attributes[name]
    values_name, dtype, shape = _KINDS[attribute.data_type]
    values = np.empty((len(attribute.data), *shape), dtype) if into is None else into
    attribute.data.foreach_get(values_name, values.ravel())
    return values


def write_attribute(mesh: bpy.types.Mesh, name: str, data_type: str, values: np.ndarray, domain: str = "POINT") -> str:
    """Store ``values`` (N, …) in an attribute. Makes the attribute if necessary, and replaces one of another kind.

    Returns the attribute's name: a new one is numbered where a vertex group has the name.
    """
    if not has_attribute(mesh, name, data_type, domain):
        remove_attributes(mesh, (name,))
        name = _new_attribute(mesh, name, data_type, domain)
    values_name, dtype, _ = _KINDS[data_type]
    # Looked up again by name: making an attribute invalidates references to the others.
    mesh.attributes[name].data.foreach_set(values_name, np.ascontiguousarray(values, dtype).ravel())
    return name


def _new_attribute(mesh: bpy.types.Mesh, name: str, data_type: str, domain: str) -> str:
    for number in range(1000):
        numbered = f"{name}.{number:03}" if number else name
        attribute = mesh.attributes.new(numbered, data_type, domain)
        # Before 5.0, Blender makes none where a vertex group has the name; later, it numbers the attribute itself.
        if attribute is not None:
            return attribute.name
    raise RuntimeError(f"no attribute {name!r} can be made on {mesh.name!r}")


def remove_attributes(mesh: bpy.types.Mesh, names: Iterable[str]) -> None:
    """Remove the attributes that the mesh has."""
    for name in names:
        # By name each time: removing an attribute invalidates references to the others.
        if name in mesh.attributes:
            mesh.attributes.remove(mesh.attributes[name])
