# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose that is stored with an EigenSkin's example, also for bones that are new since."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from mathutils import Matrix

from ...core import quaternions

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
    from ...core.eigenskin import BadExamples, rotation_angles
    from ...core.eigenskin.pose_space import SAME_ROTATION

    for name, angle in zip(pose.joints, rotation_angles(pose.rotations), strict=True):
        if name not in armature.data.bones and angle > SAME_ROTATION:
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
