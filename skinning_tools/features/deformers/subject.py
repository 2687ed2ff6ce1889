# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake and a training set begin with: the mesh with its deformers, its skeleton, and both in random poses."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import deforming_bones
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.character import mesh_meant
from ...blender.preconditions import check_type, unmet
from ...blender.skeletons import skeleton_of
from ...blender.skin_reader import rest_positions
from .joint_ranges import joint_ranges
from .made_poses import made_poses
from .posed_rig import check_memory, posed_rig
from .teacher import Teacher, teacher_of

if TYPE_CHECKING:
    from ...core.imitation.skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class Subject:
    """names: of the P deforming bones of the ``skeleton``; weights: theirs."""

    teacher: Teacher
    names: tuple[str, ...]
    skeleton: "Skeleton"
    weights: BoneWeights

    @property
    def mesh(self) -> bpy.types.Object:
        return self.teacher.mesh

    @property
    def armature(self) -> bpy.types.Object:
        return self.teacher.armature


@dataclass(frozen=True, eq=False)
class Poses:
    """Of the subject, in the armature's space. rest, still (N, 3): at rest without and with the deformers; turns (F, P,
    4): of the bones against their parents; frames (F, N, 3): with the deformers; to_armature (4, 4): from the mesh's
    space. shrunk: how many were made milder; notes: for the user."""

    rest: np.ndarray
    still: np.ndarray
    turns: np.ndarray
    frames: np.ndarray
    to_armature: np.ndarray
    shrunk: int
    notes: tuple[str, ...]


def check_bakeable(context: bpy.types.Context, active: bpy.types.Object | None) -> Teacher:
    """What can be baked for the active object. Raises SkinningError if nothing can. Cheap enough for a panel."""
    mesh = mesh_meant(context, active)
    check_type(mesh, "Select the mesh that an armature deforms")
    assert mesh is not None
    return teacher_of(context, mesh)


def subject_of(teacher: Teacher, pose_count: int) -> Subject:
    """Raises SkinningError if no bones deform the mesh, or if memory does not suffice for so many poses."""
    mesh, armature = teacher.mesh, teacher.armature
    names = deforming_bones(armature)
    if not names:
        raise unmet("NO_DEFORMING_BONE", armature=armature)
    check_memory(mesh, pose_count)
    weights = read_bone_weights(mesh, armature, names)
    if not weights.bound.any():
        raise unmet("NO_GROUP_OF_A_BONE", object=mesh, armature=armature)
    return Subject(teacher, tuple(names), skeleton_of(armature, names), weights)


def poses_of(context: bpy.types.Context, subject: Subject, pose_count: int, seed: int) -> "background.Steps[Poses]":
    """Generator: ``pose_count`` random poses of the subject."""
    names, skeleton, weights = subject.names, subject.skeleton, subject.weights
    with posed_rig(context, subject.teacher, names) as rig:
        rest = rig.in_armature(rest_positions(subject.mesh.data))
        skin = rest, weights.bones, weights.weights
        looking = joint_ranges(context, subject.armature, names, skeleton, skin, rig.mesh)
        ranges, played, notes = yield from background.part_of(looking, 0.0, 0.15)
        posing = made_poses(rig, skeleton, ranges, played, pose_count, seed, weights)
        still, turns, frames, shrunk = yield from background.part_of(posing, 0.15, 1.0, "Posing")
        return Poses(rest, still, turns, frames, rig.to_armature, shrunk, notes)
