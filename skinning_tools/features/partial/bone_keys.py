# SPDX-License-Identifier: GPL-3.0-or-later
"""Keyframes for given poses of an armature's bones, independent of the motion of their parents."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import actions
from ...blender.pose_keys import key_transforms
from ...core import affine_chain
from .readings import RigMotion

_TRANSFORM_PATHS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
# Linear parts closer than this to a rotation count as one: matrices are in single precision.
_NO_SCALE = 2e-5
# Relative to a bone's matrix: shear above this is reported.
_NO_SHEAR = 1e-3


@dataclass(frozen=True, eq=False)
class WantedPoses:
    """bones: names. matrices (F, P, 4, 4): their poses in the armature's space. jointed (P,) bool: the bones whose
    heads follow their parents, whatever the matrices say. chains: for a bone that is the only child of a parent at the
    same place, the name of that parent, which is keyed instead; both are keyed if the bone ``shears``."""

    bones: tuple[str, ...]
    matrices: np.ndarray
    jointed: np.ndarray
    chains: dict[str, str]
    shears: bool


def transform_paths(name: str) -> list[str]:
    """The data paths of a pose bone's channels."""
    return [f"{actions.bone_path(name)}.{path}" for path in _TRANSFORM_PATHS]


def write_poses(
    armature: bpy.types.Object,
    container: "bpy.types.Action | bpy.types.ActionChannelbag",
    wanted: WantedPoses,
    motion: RigMotion,
    times: np.ndarray,
    extents: np.ndarray | None = None,
) -> tuple[dict[str, np.ndarray], float]:
    """Key the bones of ``wanted`` in ``container`` (see ``actions.curve_container``) at ``times``.

    motion: the present RigMotion of all bones: bones without new keys keep their channels and move with their parents.
    extents (P, 3): how far each bone's vertices reach along its axes, for chains.
    Returns the poses (F, 4, 4) that the keys give the keyed bones, by name, and the largest shear, as a fraction, that
    bones without a chain lost.
    """
    bones = armature.data.bones
    keyed = {name: index for index, name in enumerate(wanted.bones)}
    upper = {parent: name for name, parent in wanted.chains.items()}
    # Arrays (F, 4, 4); None if a chain has no parent.
    poses: dict[str, Any] = {}
    place, sheared = motion.place, 0.0
    changed: set[str] = set()
    for bone in _parents_first(bones):
        name = bone.name
        parent = poses.get(bone.parent.name) if bone.parent is not None else None
        if name in upper:
            # A chain's parent is posed with its child, but must come before it.
            changed.add(name)
            index = keyed[upper[name]]
            if wanted.shears:
                poses[name] = _key_chain(armature, container, bone, wanted, index, parent, times, extents)
            else:
                poses[name], lost = _key_bone(armature, container, bone, wanted, index, parent, times)
                _key_rest(armature, container, wanted.bones[index], times)
                sheared = max(sheared, lost)
        elif name in wanted.chains:
            changed.add(name)
            poses[name] = wanted.matrices[:, keyed[name]] if wanted.shears else parent
        elif name in keyed:
            changed.add(name)
            index = keyed[name]
            poses[name], lost = _key_bone(armature, container, bone, wanted, index, parent, times)
            sheared = max(sheared, lost)
        elif bone.parent is not None and bone.parent.name in changed and name in place:
            changed.add(name)
            poses[name] = _composed(bone, motion.basis[:, place[name]], parent)
        elif name in place:
            poses[name] = motion.pose[:, place[name]]
        else:
            poses[name] = _composed(bone, np.broadcast_to(np.eye(4), (len(times), 4, 4)), parent)
    made = {*wanted.bones, *wanted.chains.values()} - (set(wanted.chains) if wanted.shears else set())
    return {name: poses[name] for name in made}, sheared


def _parents_first(bones: bpy.types.bpy_prop_collection) -> Iterator[bpy.types.Bone]:
    waiting = [bone for bone in bones if bone.parent is None]
    while waiting:
        bone = waiting.pop()
        yield bone
        waiting += bone.children


def _key_bone(
    armature: bpy.types.Object,
    container: "bpy.types.Action | bpy.types.ActionChannelbag",
    bone: bpy.types.Bone,
    wanted: WantedPoses,
    index: int,
    parent: np.ndarray | None,
    times: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Key one bone; returns its poses (F, 4, 4) with these keys, and the lost shear."""
    basis = local_poses(bone, wanted.matrices[:, index], parent)
    if wanted.jointed[index]:
        basis[:, :3, 3] = 0.0
    linear = basis[:, :3, :3]
    rigid = np.abs(linear.swapaxes(1, 2) @ linear - np.eye(3)).max() < _NO_SCALE and np.linalg.det(linear).min() > 0
    matrices = basis[:, None, :3]
    if rigid:
        location, rotation = affine_chain.rigid_channels(matrices)
        scale = np.ones_like(location)
    else:
        location, rotation, scale = affine_chain.scaled_channels(matrices)
    key_transforms(armature, container, bone.name, location[:, 0], rotation[:, 0], scale[:, 0], times)
    made = np.tile(np.eye(4), (len(times), 1, 1))
    made[:, :3, :3] = _rotations(rotation[:, 0]) * scale[:, 0, None]
    made[:, :3, 3] = location[:, 0]
    size = np.maximum(np.abs(linear).max(axis=(1, 2)), 1e-9)
    lost = float((np.abs(made[:, :3, :3] - linear).max(axis=(1, 2)) / size).max())
    return _composed(bone, made, parent), lost if lost > _NO_SHEAR else 0.0


def _key_rest(
    armature: bpy.types.Object, container: "bpy.types.Action | bpy.types.ActionChannelbag", name: str, times: np.ndarray
) -> None:
    still = np.zeros((len(times), 3))
    key_transforms(armature, container, name, still, np.tile([1.0, 0.0, 0.0, 0.0], (len(times), 1)), still + 1.0, times)


def _key_chain(
    armature: bpy.types.Object,
    container: "bpy.types.Action | bpy.types.ActionChannelbag",
    bone: bpy.types.Bone,
    wanted: WantedPoses,
    index: int,
    parent: np.ndarray | None,
    times: np.ndarray,
    extents: np.ndarray | None,
) -> np.ndarray:
    """Key a chain of two bones, of which ``bone`` is the parent, to the affine poses of its child; returns its own
    poses."""
    basis = local_poses(bone, wanted.matrices[:, index], parent)
    if wanted.jointed[index]:
        basis[:, :3, 3] = 0.0
    chain = affine_chain.split(basis[:, None, :3], None if extents is None else extents[index][None])
    key_transforms(armature, container, bone.name, chain.location[:, 0], chain.rotation[:, 0], chain.scale[:, 0], times)
    still = np.zeros_like(chain.location[:, 0])
    child_scale = np.broadcast_to(chain.child_scale[0], still.shape)
    key_transforms(armature, container, wanted.bones[index], still, chain.child_rotation[:, 0], child_scale, times)
    made = np.tile(np.eye(4), (len(times), 1, 1))
    made[:, :3, :3] = _rotations(chain.rotation[:, 0]) * chain.scale[:, 0, None]
    made[:, :3, 3] = chain.location[:, 0]
    return _composed(bone, made, parent)


def _rotations(quaternions: np.ndarray) -> np.ndarray:
    from ...core.quaternions import to_matrices

    return to_matrices(quaternions)


def _rest(bone: bpy.types.Bone) -> np.ndarray:
    return np.array(bone.matrix_local, dtype=np.float64)


def _frame_of(bone: bpy.types.Bone, parent: np.ndarray | None) -> np.ndarray | None:
    """(F, 4, 4), or (4, 4) for all frames: the matrix that a bone's channels are relative to, with its parent's poses
    ``parent`` (or None); None if there is no single such matrix."""
    if not bone.use_local_location:
        return None
    if parent is None:
        return _rest(bone)
    if bone.use_inherit_rotation and bone.inherit_scale == "FULL":
        return parent @ np.linalg.solve(_rest(bone.parent), _rest(bone))
    return None


def local_poses(bone: bpy.types.Bone, poses: np.ndarray, parent: np.ndarray | None) -> np.ndarray:
    """The bone's channels (F, 4, 4) for its ``poses`` (F, 4, 4), with its parent's poses ``parent`` (or None)."""
    frame = _frame_of(bone, parent)
    return _converted(bone, poses, parent, invert=True) if frame is None else np.linalg.inv(frame) @ poses


def _composed(bone: bpy.types.Bone, basis: np.ndarray, parent: np.ndarray | None) -> np.ndarray:
    """The inverse of ``local_poses``."""
    frame = _frame_of(bone, parent)
    return _converted(bone, basis, parent, invert=False) if frame is None else frame @ basis


def _converted(bone: bpy.types.Bone, matrices: np.ndarray, parent: np.ndarray | None, *, invert: bool) -> np.ndarray:
    """Convert by Blender, frame by frame, for a bone that does not inherit everything from its parent."""
    parents: list[dict[str, Any]] = [{}] * len(matrices)
    if parent is not None:
        above = bone.parent.matrix_local
        parents = [{"parent_matrix": Matrix(each.tolist()), "parent_matrix_local": above} for each in parent]
    return np.array([
        bone.convert_local_to_pose(Matrix(matrix.tolist()), bone.matrix_local, **of_parent, invert=invert)
        for matrix, of_parent in zip(matrices, parents, strict=True)
    ], dtype=np.float64)  # fmt: skip
