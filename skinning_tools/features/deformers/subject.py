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
from ...blender.joint_motion import moments_of, played_motion
from ...blender.preconditions import check_type, object_label, unmet
from ...blender.seams import sewn_places
from ...blender.skeletons import skeleton_of
from ...blender.skin_reader import rest_positions
from .joint_ranges import joint_ranges
from .made_poses import made_poses
from .posed_rig import check_memory, posed_rig
from .teacher import Teacher, teacher_of

if TYPE_CHECKING:
    from ...core.imitation.skeleton import Skeleton

# Frames that are looked at, of all actions together.
_MOST_FRAMES = 60


@dataclass(frozen=True, eq=False)
class Subject:
    """names: of the P deforming bones; weights: theirs. The sides of a seam are one place, of W:
    places (W,): a vertex of each; place (N,): of each vertex."""

    teacher: Teacher
    names: tuple[str, ...]
    weights: BoneWeights
    places: np.ndarray
    place: np.ndarray

    @property
    def mesh(self) -> bpy.types.Object:
        return self.teacher.mesh

    @property
    def armature(self) -> bpy.types.Object:
        return self.teacher.armature

    @property
    def influences(self) -> tuple[np.ndarray, np.ndarray]:
        """Bones and weights (W, K) of the places."""
        return self.weights.bones[self.places], self.weights.weights[self.places]

    @property
    def notes(self) -> tuple[str, ...]:
        """For the user, who may see the mesh torn in the viewport."""
        if len(self.places) == len(self.place):
            return ()
        return (
            f"{object_label(self.mesh)} is split along seams, whose sides count as one vertex, so that no modifier "
            "tears it open there",
        )


@dataclass(frozen=True, eq=False)
class Poses:
    """Of the subject, in the armature's space. skeleton: with joints where the skin has them; rest, still (W, 3): at
    rest without and with the deformers; turns (F, P, 4): of the bones against their parents; frames (F, W, 3): with the
    deformers; to_armature (4, 4): from the mesh's space. shrunk: how many were made milder; notes: for the user."""

    skeleton: "Skeleton"
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
    if not np.ptp(rest_positions(mesh.data), axis=0).any():
        raise unmet("NO_SIZE", object=mesh)
    everyone = np.arange(len(weights.bones))
    places, place = (everyone, everyone) if teacher.by_index else sewn_places(mesh.data, weights)
    return Subject(teacher, tuple(names), weights, places, place)


def poses_of(context: bpy.types.Context, subject: Subject, pose_count: int, seed: int) -> "background.Steps[Poses]":
    """Generator: ``pose_count`` random poses of the subject."""
    from ...core.imitation.joined_limbs import joined_by_skin

    armature, names = subject.armature, subject.names
    looking = played_motion(context, armature, names, moments_of(armature, _MOST_FRAMES))
    motion, omitted = yield from background.part_of(looking, 0.0, 0.15)
    motion = motion[np.isfinite(motion).all(axis=(1, 2, 3)), :, :3]
    with posed_rig(context, subject.teacher, names, seams=(subject.places, subject.place)) as rig:
        rest = rig.in_armature(rest_positions(subject.mesh.data)[subject.places])
        skin = rest, *subject.influences
        skeleton = joined_by_skin(skeleton_of(armature, names), *skin, motion)
        ranges, notes = joint_ranges(armature, names, skeleton, skin, motion)
        posing = made_poses(rig, skeleton, ranges, motion, pose_count, seed, subject.influences)
        still, turns, frames, shrunk = yield from background.part_of(posing, 0.15, 1.0, "Posing")
        notes = (*omitted, *notes, *subject.notes)
        return Poses(skeleton, rest, still, turns, frames, rig.to_armature, shrunk, notes)
