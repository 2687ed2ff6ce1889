# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones that the user has selected, or named in a text."""

import bpy

from .preconditions import check_bones


def selectable(armature: bpy.types.Object) -> bpy.types.bpy_prop_collection:
    """The bones or pose bones that store the selection, and what Pose Mode hides, in order: both moved to pose bones in
    Blender 5.0."""
    return armature.pose.bones if "select" in bpy.types.PoseBone.bl_rna.properties else armature.data.bones


def selected_bones(armature: bpy.types.Object) -> list[str]:
    """Names of the bones selected in Pose Mode, without hidden ones."""
    return [owner.name for owner in selectable(armature) if owner.select and not owner.hide]


def named_bones(armature: bpy.types.Object, text: str) -> list[str]:
    """The bones that ``text`` names, separated by commas; the selected bones if it is empty. Raises BadScene."""
    names = [name.strip() for name in text.split(",") if name.strip()] or selected_bones(armature)
    check_bones(armature, names)
    return list(dict.fromkeys(names))
