# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose of an EigenSkin's example: how it is stored, what it is for bones that are new since, and showing it."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from mathutils import Matrix, Quaternion

from ...core import quaternions
from ...core.errors import BadScene

if TYPE_CHECKING:
    from ...core.eigenskin import Rig


@dataclass(frozen=True, eq=False)
class StoredPose:
    """The pose of an example: rotations (J, 4) of its joints, matrices (P, 3, 4) of its bones in the mesh's space, and
    what each bone that was not at rest had been set to, 16 numbers, row by row (empty where that is not known)."""

    joints: tuple[str, ...]
    rotations: np.ndarray
    bones: tuple[str, ...]
    matrices: np.ndarray
    channels: dict[str, list[float]]


def stored_pose(item) -> StoredPose:
    """Raises BadExamples where the example's data is not there, or somebody has changed it to what is none."""
    from ...core.eigenskin import BadExamples

    if not is_stored(item):
        raise BadExamples(f'The example "{item.name}" has lost its shape. Remove the example, and add it again')
    stored = item.storage[item.uid]
    try:
        pose = StoredPose(
            tuple(json.loads(stored["joints"])),
            np.array(stored["rotations"], dtype=np.float64).reshape(-1, 4),
            tuple(json.loads(stored["bones"])),
            np.array(stored["matrices"], dtype=np.float64).reshape(-1, 3, 4),
            dict(json.loads(stored["channels"])),
        )
    except (KeyError, TypeError, ValueError):
        pose = None
    if pose is None or (len(pose.joints), len(pose.bones)) != (len(pose.rotations), len(pose.matrices)):
        raise BadExamples(f'The example "{item.name}" has lost its pose. Remove the example, and add it again')
    return pose


def is_stored(item) -> bool:
    return item.storage is not None and item.uid in item.storage and item.uid in item.storage.attributes


def check_posed_bones(item, pose: StoredPose, rig: "Rig", armature) -> None:
    """Raises BadExamples where the example poses a bone that is gone."""
    from ...core.eigenskin import BadExamples, is_turned

    for name, turned in zip(pose.joints, is_turned(pose.rotations), strict=True):
        if turned and name not in armature.data.bones:
            new = [other for other in rig.joint_names if other not in pose.joints]
            renamed = f' If "{new[0]}" is that bone, rename it back.' if new else " Rename the bone back."
            raise BadExamples(
                f'The example "{item.name}" poses the bone "{name}", which the armature has no more.{renamed} '
                "Otherwise disable the example"
            )


def for_bones(item, pose: StoredPose, joints, deforming, armature) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (J, 4) of ``joints`` and matrices (P, 3, 4) of ``deforming`` in an example's pose.

    Those that it does not know are where their parents take them, and what they were set to. Raises BadExamples.
    """
    rotations = dict(zip(pose.joints, pose.rotations, strict=True))
    matrices = dict(zip(pose.bones, pose.matrices, strict=True))
    for name in joints:
        if name not in rotations:
            basis = Matrix(_channel(pose, name).tolist())
            rotations[name] = quaternions.normalized(np.array(basis.to_quaternion(), dtype=np.float64))
    for name in deforming:
        if name not in matrices:
            matrices[name] = _matrix_by_parents(item, pose, armature, name)
    return np.array([rotations[name] for name in joints]), np.array([matrices[name] for name in deforming])


def _matrix_by_parents(item, pose: StoredPose, armature, name: str) -> np.ndarray:
    """(3, 4) in the mesh object's space, from the nearest ancestor whose matrix is known. Raises BadExamples."""
    from ...core.eigenskin import BadExamples

    chain = [armature.data.bones[name]]
    while chain[-1] is not None and chain[-1].name not in pose.bones:
        chain.append(chain[-1].parent)
    ancestor = chain.pop()
    if ancestor is None:
        raise BadExamples(
            f'The example "{item.name}" does not know the bone "{name}", which was added, renamed or given weights '
            "since, nor a parent of it. Change that back, or add the example again"
        )
    to_mesh = np.array(item.mesh.matrix_world.inverted() @ armature.matrix_world, dtype=np.float64)
    matrix = np.vstack([pose.matrices[pose.bones.index(ancestor.name)], (0, 0, 0, 1)])
    for bone in reversed(chain):
        rest = to_mesh @ np.array(bone.matrix_local, dtype=np.float64)
        matrix = matrix @ rest @ _channel(pose, bone.name) @ np.linalg.inv(rest)
    return matrix[:3]


def _channel(pose: StoredPose, name: str) -> np.ndarray:
    """(4, 4) what a bone was set to."""
    return np.reshape(pose.channels.get(name, np.eye(4)), (4, 4))


def local_rotations(armature, names) -> np.ndarray:
    """(J, 4) of the bones ``names`` of an evaluated armature, as in ``current_pose``."""
    rotations = np.empty((len(names), 4))
    for index, name in enumerate(names):
        bone = armature.pose.bones.get(name)
        if bone is None:
            raise BadScene(f'The armature "{armature.name}" has no bone "{name}" any more. Start again')
        local = armature.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        rotations[index] = local.to_quaternion()
    return quaternions.normalized(rotations)


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
    from ...core.eigenskin import is_turned

    present = [row for row, name in enumerate(pose.joints) if name in armature.pose.bones]
    names = [pose.joints[row] for row in present]
    evaluated = armature.evaluated_get(context.evaluated_depsgraph_get())
    between = quaternions.product(quaternions.conjugate(pose.rotations[present]), local_rotations(evaluated, names))
    return [name for name, strayed in zip(names, is_turned(between), strict=True) if strayed]
