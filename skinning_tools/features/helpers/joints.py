# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature and the bones whose joints get helpers."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender.armatures import check_armature
from ...blender.bone_selection import named_bones
from ...blender.character import armature_at
from ...blender.helper_bones.records import bone_record, deforming_parent
from ...blender.preconditions import armature_label, unmet


def helped_armature(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The armature for the active object, which may be a mesh that it deforms.

    Cheap enough for a panel. Raises BadScene as ``check_armature``.
    """
    armature = armature_at(active)
    check_armature(armature)
    return armature


def unit_scale(armature: bpy.types.Object) -> float:
    """The length in the scene of a unit of the armature's space. Raises BadScene where it is 0."""
    scale = np.linalg.norm(np.array(armature.matrix_world, dtype=np.float64)[:3, :3], axis=0).mean()
    if scale == 0:
        raise unmet("NO_SCALE", object=armature_label(armature))
    return float(scale)


def end_bone(armature: bpy.types.Object, name: str) -> str:
    """The deforming child of a bone that is most in line with it; "" if there is none."""
    bones = armature.data.bones
    axis = bones[name].tail_local - bones[name].head_local
    children = [
        bone
        for bone in bones[name].children_recursive
        if bone.use_deform and bone_record(bone) is None and deforming_parent(armature, bone.name) == name
    ]
    # A child at the bone's own head, such as a second one beside it, is not at its end.
    placed = [bone for bone in children if (bone.head_local - bones[name].head_local).dot(axis) > 0.5 * axis.dot(axis)]
    best = max(placed, key=lambda bone: (bone.tail_local - bone.head_local).normalized().dot(axis), default=None)
    return best.name if best is not None else ""


def mirrored_names(armature: bpy.types.Object, names: Sequence[str]) -> list[str]:
    """The ``names`` and their existing counterparts on the other side, each once."""
    flipped = (bpy.utils.flip_name(name) for name in names)
    return list(dict.fromkeys([*names, *(name for name in flipped if name in armature.data.bones)]))


def bones_to_clear(armature: bpy.types.Object, text: str, everything: bool, mirror: bool) -> list[str] | None:
    """The bones whose helpers to remove, by ``named_bones``, with ``mirror`` also those of the other side.

    None with ``everything``, for all helpers. Raises BadScene.
    """
    if everything:
        return None
    names = named_bones(armature, text)
    return mirrored_names(armature, names) if mirror else names
