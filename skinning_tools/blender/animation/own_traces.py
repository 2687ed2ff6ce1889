# SPDX-License-Identifier: GPL-3.0-or-later
"""What the extension keeps on objects and meshes, taken off copies for which it no longer holds."""

import bpy

from ..attributes import remove_attributes
from ..center_records import remove_centers
from ..records import RESERVED


def remove_from_mesh(mesh: bpy.types.Mesh) -> None:
    """Take attributes and notes off a mesh that is another thing than what it was copied from."""
    remove_centers(mesh)
    own = [each.name for each in mesh.attributes if each.name.removeprefix(".").startswith(RESERVED)]
    remove_attributes(mesh, own)
    remove_notes(mesh)


def remove_notes(owner: bpy.types.ID) -> None:
    """Take custom properties and what panels remember off an object or a mesh."""
    for name in [each.identifier for each in owner.bl_rna.properties if each.identifier.startswith(RESERVED)]:
        owner.property_unset(name)
    for key in [key for key in tuple(owner.keys()) if key.startswith(RESERVED)]:
        del owner[key]
