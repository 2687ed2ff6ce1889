# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of a mesh as arrays."""

from collections.abc import Iterable

import numpy as np

# By data type: the property to read and write at once, its numbers, and the shape of one value.
_KINDS = {
    "BOOLEAN": ("value", np.dtype(bool), ()),
    "INT": ("value", np.dtype(np.int32), ()),
    "FLOAT": ("value", np.dtype(np.float32), ()),
    "FLOAT_VECTOR": ("vector", np.dtype(np.float32), (3,)),
    "FLOAT4X4": ("value", np.dtype(np.float32), (4, 4)),
}


def has_attribute(mesh, name: str, data_type: str, domain: str = "POINT") -> bool:
    """Whether the mesh has an attribute of that name and kind."""
    attribute = mesh.attributes.get(name)
    return attribute is not None and (attribute.domain, attribute.data_type) == (domain, data_type)


def read_attribute(mesh, name: str) -> np.ndarray:
    """The values (N, …) of an attribute that the mesh has."""
    attribute = mesh.attributes[name]
    values_name, dtype, shape = _KINDS[attribute.data_type]
    values = np.empty((len(attribute.data), *shape), dtype)
    attribute.data.foreach_get(values_name, values.ravel())
    return values


def write_attribute(mesh, name: str, data_type: str, values, domain: str = "POINT") -> None:
    """Store ``values`` (N, …) in an attribute, which is made where the mesh has none of that name."""
    if name not in mesh.attributes:
        mesh.attributes.new(name, data_type, domain)
    values_name, dtype, _ = _KINDS[data_type]
    # Anew by its name: making one moves the others.
    mesh.attributes[name].data.foreach_set(values_name, np.ascontiguousarray(values, dtype).ravel())


def remove_attributes(mesh, names: Iterable[str]) -> None:
    """Take those of the attributes off the mesh that it has."""
    for name in names:
        # By its name each time: removing one moves the others.
        if name in mesh.attributes:
            mesh.attributes.remove(mesh.attributes[name])
