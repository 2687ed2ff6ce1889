# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing the pose that an EigenSkin's example was stored with."""

import numpy as np
from mathutils import Matrix, Quaternion

from ...core import quaternions
from ...core.errors import BadScene
from .examples import local_rotations
from .stored_pose import StoredPose, stored_pose


def apply_pose(context, armature, item) -> list[str]:
    """Pose the armature as the example has it; returns the joints that do not come to be so.

    Those are moved by something else: constraints, drivers, properties of the rig. Bones that the example does not
    know go to rest. Raises BadScene, BadExamples.
    """
    if armature.library is not None:
        raise BadScene(f'The armature "{armature.name}" is linked from another file, so it cannot be posed')
    if armature.data.pose_position == "REST":
        raise BadScene(
            f'The armature "{armature.name}" shows its rest position. Choose Pose Position in its data properties'
        )
    pose = stored_pose(item)
    bases = _bases_of_channels(pose) or _bases_of_joints(armature, item.mesh, pose)
    for bone in armature.pose.bones:
        bone.matrix_basis = bases.get(bone.name, Matrix.Identity(4))
    context.view_layer.update()
    return _strayed(context, armature, pose)


def _bases_of_channels(pose: StoredPose) -> dict[str, Matrix]:
    """What each bone that is not at rest was set to."""
    return {name: Matrix(np.reshape(values, (4, 4)).tolist()) for name, values in pose.channels.items()}


def _bases_of_joints(armature, mesh, pose: StoredPose) -> dict[str, Matrix]:
    """What to set the joints without constraints to, so that they turn and move as in the pose."""
    rotations = {
        name: Quaternion(rotation).to_matrix().to_4x4()
        for name, rotation in zip(pose.joints, pose.rotations, strict=True)
    }
    wanted = _pose_matrices(armature, mesh, pose) if mesh is not None else {}
    found, bases = {}, {}
    # Parents come first.
    for bone in armature.data.bones:
        name = bone.name
        if name not in rotations:
            continue
        parent = {}
        if bone.parent is not None:
            parent = {
                "parent_matrix": found.get(bone.parent.name, bone.parent.matrix_local),
                "parent_matrix_local": bone.parent.matrix_local,
            }
        basis = rotations[name]
        if name in wanted:
            basis = bone.convert_local_to_pose(wanted[name], bone.matrix_local, invert=True, **parent)
        found[name] = bone.convert_local_to_pose(basis, bone.matrix_local, **parent)
        if not any(constraint.enabled for constraint in armature.pose.bones[name].constraints):
            bases[name] = basis
    return bases


def _pose_matrices(armature, mesh, pose: StoredPose) -> dict[str, Matrix]:
    """Of the deforming bones, in the armature's space."""
    to_armature = armature.matrix_world.inverted() @ mesh.matrix_world
    back = to_armature.inverted()
    return {
        name: to_armature @ Matrix([*matrix, (0, 0, 0, 1)]) @ back @ armature.data.bones[name].matrix_local
        for name, matrix in zip(pose.bones, pose.matrices.tolist(), strict=True)
        if name in armature.data.bones
    }


def _strayed(context, armature, pose: StoredPose) -> list[str]:
    from ...core.eigenskin import rotation_angles
    from ...core.eigenskin.pose_space import SAME_ROTATION

    present = [row for row, name in enumerate(pose.joints) if name in armature.pose.bones]
    names = [pose.joints[row] for row in present]
    evaluated = armature.evaluated_get(context.evaluated_depsgraph_get())
    turned = quaternions.product(quaternions.conjugate(pose.rotations[present]), local_rotations(evaluated, names))
    return [name for name, angle in zip(names, rotation_angles(turned), strict=True) if angle > SAME_ROTATION]
