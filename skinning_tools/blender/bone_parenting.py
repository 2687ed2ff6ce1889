# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as children of bones."""

import bpy
import numpy as np
from mathutils import Matrix


def rest_bone(armature: bpy.types.Object, bone: bpy.types.Bone | None) -> np.ndarray:
    """(4, 4) what a bone is to its child objects in the rest pose, in the world.

    That is its tail, or with Relative Parenting, and where ``bone`` is None, the armature.
    """
    world = np.array(armature.matrix_world, dtype=np.float64)
    if bone is None or bone.use_relative_parent:
        return world
    rest = np.array(bone.matrix_local, dtype=np.float64)
    rest[:3, 3] += rest[:3, 1] * bone.length
    return world @ rest


def parent_to_bone(
    object: bpy.types.Object, armature: bpy.types.Object, bone: bpy.types.Bone | None, world: np.ndarray
) -> None:
    """Parent the object to the bone, or the armature itself where that is None, so that it stands at ``world`` (4, 4)
    in the rest pose. Its own channels stay."""
    object.parent, object.parent_type = armature, "OBJECT" if bone is None else "BONE"
    object.parent_bone = "" if bone is None else bone.name
    basis = np.array(object.matrix_basis, dtype=np.float64)
    inverse = np.linalg.solve(rest_bone(armature, bone), np.array(world, dtype=np.float64)) @ np.linalg.inv(basis)
    object.matrix_parent_inverse = Matrix(inverse.tolist())
