# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as children of bones."""

import bpy
import numpy as np
from mathutils import Matrix


def rest_bone(armature: bpy.types.Object, bone: bpy.types.Bone | None) -> np.ndarray:
    """(4, 4) the parent matrix that a bone gives its child objects in the rest pose, in world space.

    It is at the bone's tail, or the armature's matrix with Relative Parenting or if ``bone`` is None.
    """
    world = np.array(armature.matrix_world, dtype=np.float64)
    if bone is None or bone.use_relative_parent:
        return world
    rest = np.array(bone.matrix_local, dtype=np.float64)
    rest[:3, 3] += rest[:3, 1] * bone.length
    return world @ rest


def parent_to_bone(
    ob: bpy.types.Object, armature: bpy.types.Object, bone: bpy.types.Bone | None, world: np.ndarray
) -> None:
    """Parent the object to the bone, or to the armature itself if that is None, so that its rest-pose world matrix is
    ``world`` (4, 4). Its own channels stay."""
    ob.parent, ob.parent_type = armature, "OBJECT" if bone is None else "BONE"
    ob.parent_bone = "" if bone is None else bone.name
    basis = np.array(ob.matrix_basis, dtype=np.float64)
    inverse = np.linalg.solve(rest_bone(armature, bone), np.array(world, dtype=np.float64)) @ np.linalg.inv(basis)
    ob.matrix_parent_inverse = Matrix(inverse.tolist())
