# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose of an example: reading it, completing it for bones that were added later, and posing the armature."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix, Quaternion

from ...blender.bodies import to_mesh
from ...blender.helper_bones.records import HALF, find_helpers
from ...blender.preconditions import armature_label, check_movable, check_posed, unmet
from ...core import quaternions
from ...core.errors import BadScene
from .settings import SkinningEigenskinExample

if TYPE_CHECKING:
    from ...core.eigenskin import Rig


@dataclass(frozen=True, eq=False)
class StoredPose:
    """The pose of an example: rotations (J, 4) of its joints, matrices (P, 3, 4) of its bones in the mesh's space.

    channels: the basis matrix of each bone that was not at rest, 16 numbers, row by row; empty if unknown.
    """

    joints: tuple[str, ...]
    rotations: np.ndarray
    bones: tuple[str, ...]
    matrices: np.ndarray
    channels: dict[str, list[float]]


def stored_pose(item: SkinningEigenskinExample) -> StoredPose:
    """The stored pose. Raises BadExamples if the data is missing or damaged."""
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


def is_stored(item: SkinningEigenskinExample) -> bool:
    return item.storage is not None and item.uid in item.storage and item.uid in item.storage.attributes


def check_posed_bones(item: SkinningEigenskinExample, pose: StoredPose, rig: "Rig", armature: bpy.types.Object) -> None:
    """Raise BadExamples if the example poses a bone that the armature no longer has."""
    from ...core.eigenskin import BadExamples, is_turned

    for name, turned in zip(pose.joints, is_turned(pose.rotations), strict=True):
        if turned and name not in armature.data.bones:
            new = [other for other in rig.joint_names if other not in pose.joints]
            renamed = f' If "{new[0]}" is that bone, rename it back.' if new else " Rename the bone back."
            raise BadExamples(
                f'The example "{item.name}" poses the bone "{name}", which the armature no longer has.{renamed} '
                "Otherwise disable the example"
            )


@dataclass(frozen=True, eq=False)
class HalfBone:
    """A half-rotation helper: the bones on either side, and what ``core.eigenskin.half_matrices`` needs."""

    start: str
    end: str
    place: np.ndarray
    stretch: np.ndarray


def half_bones(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> dict[str, HalfBone]:
    """The half-rotation helpers of an armature, by name."""
    found = [helper for helper in find_helpers(armature, (HALF,)) if helper.start and helper.end]
    ends = {helper.skin[0]: (helper.start, helper.end) for helper in found}
    return {name: HalfBone(*pair, *joint_place(mesh_object, armature, pair[1])) for name, pair in ends.items()}


def joint_place(mesh_object: bpy.types.Object, armature: bpy.types.Object, end: str) -> tuple[np.ndarray, np.ndarray]:
    """Where the joint of a bone is at rest, (3,) in the mesh object's space, and what leads from that space to the
    armature's, but for its origin, (3, 3)."""
    from_armature = to_mesh(mesh_object, armature)
    place = from_armature[:3, :3] @ armature.data.bones[end].head_local + from_armature[:3, 3]
    return place, np.linalg.inv(from_armature[:3, :3])


def for_bones(
    item: SkinningEigenskinExample,
    pose: StoredPose,
    joints: Sequence[str],
    deforming: Sequence[str],
    armature: bpy.types.Object,
    halves: dict[str, HalfBone],
) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (J, 4) of ``joints`` and matrices (P, 3, 4) of ``deforming`` in an example's pose.

    A bone that the example does not have follows its parent and its stored channels. Those of ``halves`` follow the
    bones on either side, even where they are stored: a mirrored example may have been made without them. Raises
    BadExamples.
    """
    from ...core.eigenskin import half_matrices

    rotations = dict(zip(pose.joints, pose.rotations, strict=True))
    matrices = dict(zip(pose.bones, pose.matrices, strict=True))
    for name in joints:
        if name not in rotations:
            basis = Matrix(_channel(pose, name).tolist())
            rotations[name] = quaternions.normalized(np.array(basis.to_quaternion(), dtype=np.float64))
    for name in deforming:
        if name not in matrices and name not in halves:
            matrices[name] = _matrix_by_parents(item, pose, armature, name)
    for name, half in halves.items():
        if name not in deforming:
            continue
        start, end = (
            matrices[side] if side in matrices else _matrix_by_parents(item, pose, armature, side)
            for side in (half.start, half.end)
        )
        matrices[name] = half_matrices(start, end, half.place, half.stretch)
    return np.array([rotations[name] for name in joints]), np.array([matrices[name] for name in deforming])


def _matrix_by_parents(
    item: SkinningEigenskinExample, pose: StoredPose, armature: bpy.types.Object, name: str
) -> np.ndarray:
    """(3, 4) in the mesh object's space, from the nearest ancestor whose matrix is known. Raises BadExamples."""
    from ...core.eigenskin import BadExamples

    chain = [armature.data.bones[name]]
    while chain[-1] is not None and chain[-1].name not in pose.bones:
        chain.append(chain[-1].parent)
    ancestor = chain.pop()
    if ancestor is None:
        raise BadExamples(
            f'The example "{item.name}" does not know the bone "{name}", which was added, renamed or given weights '
            "since, nor a parent of it. Undo that change, or add the example again"
        )
    from_armature = to_mesh(item.mesh, armature)
    matrix = np.vstack([pose.matrices[pose.bones.index(ancestor.name)], (0, 0, 0, 1)])
    for bone in reversed(chain):
        rest = from_armature @ np.array(bone.matrix_local, dtype=np.float64)
        matrix = matrix @ rest @ _channel(pose, bone.name) @ np.linalg.inv(rest)
    return matrix[:3]


def _channel(pose: StoredPose, name: str) -> np.ndarray:
    """(4, 4) the basis matrix of a bone, the identity if it was at rest."""
    return np.reshape(pose.channels.get(name, np.eye(4)), (4, 4))


def local_rotations(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(J, 4) of the bones ``names`` of an evaluated armature, as in ``current_pose``."""
    rotations = np.empty((len(names), 4))
    for index, name in enumerate(names):
        bone = armature.pose.bones.get(name)
        if bone is None:
            raise unmet("BONE_GONE", armature=armature, bone=name)
        local = armature.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        rotations[index] = local.to_quaternion()
    return quaternions.normalized(rotations)


def apply_pose(context: bpy.types.Context, armature: bpy.types.Object, item: SkinningEigenskinExample) -> list[str]:
    """Pose the armature as in the example, and return the names of joints that do not reach that pose.

    Constraints, drivers or properties of the rig move these joints. Bones that the example does not have are put at
    rest. Raises BadScene, BadExamples.
    """
    check_movable(armature, armature_label(armature), "it cannot be posed")
    check_posed(armature)
    pose = stored_pose(item)
    bases = _bases_of_channels(pose) or _bases_of_joints(armature, item.mesh, pose)
    for bone in armature.pose.bones:
        bone.matrix_basis = bases.get(bone.name, Matrix.Identity(4))
    context.view_layer.update()
    return _strayed(context, armature, pose)


def turn_joint(context: bpy.types.Context, armature: bpy.types.Object, joint: str, rotation: np.ndarray) -> None:
    """Put the armature at rest, but for one joint's rotation (4,). Raises BadScene if something else moves the bone."""
    from ...core.eigenskin import is_turned

    check_movable(armature, armature_label(armature), "it cannot be posed")
    check_posed(armature)
    for bone in armature.pose.bones:
        bone.matrix_basis = Matrix.Identity(4)
    armature.pose.bones[joint].matrix_basis = Quaternion(rotation).to_matrix().to_4x4()
    context.view_layer.update()
    evaluated = armature.evaluated_get(context.evaluated_depsgraph_get())
    between = quaternions.product(quaternions.conjugate(rotation), local_rotations(evaluated, [joint])[0])
    if is_turned(between):
        raise BadScene(
            f'The bone "{joint}" cannot be posed by itself: constraints, drivers or an action move it. Pose its '
            "controls instead"
        )


def _bases_of_channels(pose: StoredPose) -> dict[str, Matrix]:
    """The basis matrices of the bones that are not at rest."""
    return {name: Matrix(np.reshape(values, (4, 4)).tolist()) for name, values in pose.channels.items()}


def _bases_of_joints(armature: bpy.types.Object, mesh: bpy.types.Object, pose: StoredPose) -> dict[str, Matrix]:
    """The basis matrices with which joints without constraints have the rotations and matrices of the pose."""
    rotations = {
        name: Quaternion(rotation).to_matrix().to_4x4()
        for name, rotation in zip(pose.joints, pose.rotations, strict=True)
    }
    wanted = _pose_matrices(armature, mesh, pose) if mesh is not None else {}
    found: dict[str, Matrix] = {}
    bases: dict[str, Matrix] = {}
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


def _pose_matrices(armature: bpy.types.Object, mesh: bpy.types.Object, pose: StoredPose) -> dict[str, Matrix]:
    """The matrices of the deforming bones in the armature's space."""
    to_armature = armature.matrix_world.inverted() @ mesh.matrix_world
    back = to_armature.inverted()
    return {
        name: to_armature @ Matrix([*matrix, (0, 0, 0, 1)]) @ back @ armature.data.bones[name].matrix_local
        for name, matrix in zip(pose.bones, pose.matrices.tolist(), strict=True)
        if name in armature.data.bones
    }


def _strayed(context: bpy.types.Context, armature: bpy.types.Object, pose: StoredPose) -> list[str]:
    from ...core.eigenskin import is_turned

    present = [row for row, name in enumerate(pose.joints) if name in armature.pose.bones]
    names = [pose.joints[row] for row in present]
    evaluated = armature.evaluated_get(context.evaluated_depsgraph_get())
    between = quaternions.product(quaternions.conjugate(pose.rotations[present]), local_rotations(evaluated, names))
    return [name for name, strayed in zip(names, is_turned(between), strict=True) if strayed]
