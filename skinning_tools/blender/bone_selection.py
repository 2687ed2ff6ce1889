# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones that the user means: those that are selected, or named in a text."""

import bpy

from ..core.errors import BadScene


def selectable(armature: bpy.types.Object):
    """What has the selection of an armature object's bones, in their order: it moved to pose bones in Blender 5.0."""
    return armature.pose.bones if "select" in bpy.types.PoseBone.bl_rna.properties else armature.data.bones


def selected_bones(armature: bpy.types.Object) -> list[str]:
    """Names of the bones that are selected in Pose Mode; bones that are hidden do not count."""
    return [owner.name for owner in selectable(armature) if owner.select and not owner.hide]


def named_bones(armature: bpy.types.Object, text: str) -> list[str]:
    """The bones that ``text`` names, separated by commas; the selected ones where it is empty. Raises BadScene."""
    names = [name.strip() for name in text.split(",") if name.strip()] or selected_bones(armature)
    missing = [name for name in names if name not in armature.data.bones]
    if missing:
        raise BadScene(f'The armature "{armature.name}" has no bone "{missing[0]}"')
    return list(dict.fromkeys(names))
