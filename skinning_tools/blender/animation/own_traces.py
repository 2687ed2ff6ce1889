# SPDX-License-Identifier: GPL-3.0-or-later
"""What the extension keeps on objects and meshes, taken off copies for which it no longer holds."""

from ..center_records import remove_centers
from ..records import RESERVED


def remove_from_mesh(mesh) -> None:
    """Take attributes and notes off a mesh that is another thing than what it was copied from."""
    remove_centers(mesh)
    # By name: removing one moves the others.
    for name in [each.name for each in mesh.attributes if each.name.removeprefix(".").startswith(RESERVED)]:
        mesh.attributes.remove(mesh.attributes[name])
    remove_notes(mesh)


def remove_notes(owner) -> None:
    """Take custom properties and what panels remember off an object or a mesh."""
    for name in [each.identifier for each in owner.bl_rna.properties if each.identifier.startswith(RESERVED)]:
        owner.property_unset(name)
    for key in [key for key in tuple(owner.keys()) if key.startswith(RESERVED)]:
        del owner[key]
