# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that solves add to an existing armature: helpers, and parents that let a bone shear."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender.armatures import NewBone
from ...blender.data_blocks import free_name
from ...blender.helper_bones.bones import make_helper_bones, taken_names
from ...blender.helper_bones.records import PARENT, SKIN, SOLVED, BoneRecord

HELPER_PREFIX, MECHANISM_PREFIX = "HLP-", "MCH-"

_SAME_PLACE = 1e-5


def add_new_bones(context: bpy.types.Context, armature: bpy.types.Object, specs: Sequence[NewBone]) -> None:
    """Add the bones in the given order: deforming helpers, and parents."""
    records = [BoneRecord(SOLVED, 0, SKIN if spec.deforms else PARENT) for spec in specs]
    make_helper_bones(context, armature, list(zip(specs, records, strict=True)))


def chain_parents(armature: bpy.types.Object, names: Sequence[str]) -> dict[str, str]:
    """Map bones to the parent that lets them shear, if they have one: at the same place, not deforming, with one
    child."""
    found = {}
    for name in names:
        bone = armature.data.bones[name]
        parent = bone.parent
        if parent is None or parent.use_deform or len(parent.children) != 1 or bone.use_connect:
            continue
        plain = bone.use_inherit_rotation and bone.inherit_scale == "FULL" and bone.use_local_location
        distance = np.abs(np.array(bone.matrix_local) - np.array(parent.matrix_local)).max()
        if plain and distance <= _SAME_PLACE * max(1.0, np.abs(np.array(bone.head_local)).max()):
            found[name] = parent.name
    return found


def missing_chains(armature: bpy.types.Object, names: Sequence[str]) -> list[NewBone]:
    """The missing parents that would let the bones shear."""
    have = chain_parents(armature, names)
    taken = taken_names(armature, [])
    specs = []
    for name in names:
        if name in have:
            continue
        bone = armature.data.bones[name]
        made = free_name(taken, f"{MECHANISM_PREFIX}{name}")
        matrix = np.array(bone.matrix_local, dtype=np.float64)
        specs.append(NewBone(made, "", matrix, bone.length, False, adopts=name))
    return specs


def moved_otherwise(armature: bpy.types.Object, names: Sequence[str]) -> list[str]:
    """The bones whose location channels would change axes under a new parent at their place."""
    bones = (armature.data.bones[name] for name in names)
    return [
        bone.name
        for bone in bones
        if not (bone.use_local_location and (bone.use_inherit_rotation or bone.parent is None))
    ]
