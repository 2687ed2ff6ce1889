# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove Helper Bones: remove the bones that Add Helper Bones added, and give their weights to the rig's bones."""

import bpy

from ...blender.armatures import check_armature, deformed_meshes
from ...blender.helper_bones.records import SOLVED, find_helpers
from ...blender.helper_bones.removal import Removed, remove_helpers
from ...blender.preconditions import armature_label, unmet
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from .outcome import FIGURES_PROPERTY
from .parts import armature_meant


def rig_with_helpers(context: bpy.types.Context, active: bpy.types.Object | None, name: str = "") -> bpy.types.Object:
    """The armature whose helper bones are to be removed, chosen by ``armature_meant``.

    Cheap enough for a panel. Raises BadScene if it has none, or if they cannot be removed.
    """
    armature = armature_meant(context, active, name)
    if not find_helpers(armature, (SOLVED,)):
        raise BadScene(f'The armature "{armature.name}" has no bones made by Add Helper Bones')
    check_armature(armature)
    action = armature.animation_data.action if armature.animation_data else None
    if action is not None and action.library is not None:
        work = "the keyframes of its helper bones cannot be removed"
        raise unmet("LINKED_ACTION", action=action.name, owner=armature_label(armature), work=work)
    return armature


def remove_helper_bones(context: bpy.types.Context, active: bpy.types.Object | None, armature: str = "") -> Removed:
    """Remove all helper bones that solves added to an armature. Raises SkinningError, and then changes nothing."""
    rig = rig_with_helpers(context, active, armature)
    removed = remove_helpers(context, rig, find_helpers(rig, (SOLVED,)), _meshes(rig, active))
    for ob in removed.meshes:
        if FIGURES_PROPERTY in ob:
            del ob[FIGURES_PROPERTY]
    return removed


def _meshes(rig: bpy.types.Object, active: bpy.types.Object | None) -> list:
    """The meshes that the armature deforms; if there is none, the active mesh, which solves accept as well."""
    meshes = deformed_meshes(rig)
    if active is not None and active.type == "MESH" and armature_of(active) is None:
        meshes += [active] if active.data not in [ob.data for ob in meshes] else []
    return meshes
