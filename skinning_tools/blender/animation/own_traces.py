# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes the extension's data from copies of objects and meshes that it no longer describes."""

import bpy

from ..attributes import remove_attributes
from ..center_records import remove_centers
from ..records import RESERVED


def remove_from_mesh(mesh: bpy.types.Mesh) -> None:
    """Remove the extension's attributes and notes from a mesh that differs from its original."""
    remove_centers(mesh)
    own = [each.name for each in mesh.attributes if each.name.removeprefix(".").startswith(RESERVED)]
    remove_attributes(mesh, own)
    remove_notes(mesh)


def remove_notes(owner: bpy.types.ID) -> None:
    """Remove the extension's custom properties and panel settings from an object or a mesh."""
    for name in [each.identifier for each in owner.bl_rna.properties if each.identifier.startswith(RESERVED)]:
        owner.property_unset(name)
    for key in [key for key in tuple(owner.keys()) if key.startswith(RESERVED)]:
        del owner[key]
