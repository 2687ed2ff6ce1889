# SPDX-License-Identifier: GPL-3.0-or-later
"""The modifiers that show an EigenSkin's corrected normals, as other features meet them."""

import bpy

# On their node groups.
NORMALS_PROPERTY = "skinning_eigenskin_normals"


def is_normals_modifier(modifier: bpy.types.Modifier) -> bool:
    """Whether it is one of the two, which add vertices above the Armature modifier and remove them below it."""
    return modifier.type == "NODES" and modifier.node_group is not None and NORMALS_PROPERTY in modifier.node_group
