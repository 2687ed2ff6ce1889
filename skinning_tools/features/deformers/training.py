# SPDX-License-Identifier: GPL-3.0-or-later
"""Save Training Set: poses of the rig as an action, and the shape of the mesh in each as a point cache.

Learned deformers in engines are trained from such pairs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.clips import MADE_POSES
from ...blender.data_blocks import temporary_copy
from ...blender.figures import Figure, Result
from ...blender.point_cache import CACHE, point_cache
from ...blender.pose_keys import key_transforms
from ...blender.written_files import claim_named
from ...core.errors import BadScene
from ...core.geometry import transform_points
from ...core.quaternions import from_matrices
from .settings import TrainingSettings
from .subject import check_bakeable, poses_of, subject_of

_ENDING = ".pc2"
# The first frame is the rest pose.
_FIRST = 1


@dataclass(frozen=True)
class TrainingSet(Result):
    """What was saved. poses: beside the rest pose; shrunk: how many were made milder."""

    object_name: str
    armature: str
    action: str
    what: str
    poses: int
    vertex_count: int
    shrunk: int
    path: Path
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.object_name),
            Figure("Armature", self.armature, line=""),
            Figure("Poses", self.poses),
            Figure("Vertices", self.vertex_count),
            Figure("Effect", self.what, line=f"with {self.what}"),
            Figure("Action", self.action, line=f'in the action "{self.action}"'),
            Figure("File", str(self.path), line=f"and in {self.path}"),
            Figure("Made milder", self.shrunk, line="", if_any=True),
        ]


def save_training_set(
    context: bpy.types.Context, active: bpy.types.Object | None, filepath: str = "", **given: Any
) -> background.Steps:
    """Generator: make poses by the TrainingSettings ``given``, and save them as a new action, which nothing plays yet,
    and the mesh with its deformers in each as a PC2 file, in its object space; returns a TrainingSet, yields (fraction,
    stage).

    Action and file begin with the rest pose, at frame 1. Raises SkinningError, and then leaves nothing.
    """
    from ...core.imitation.skeleton import posed

    begin, settings = time.perf_counter(), TrainingSettings(**given)
    target = claim_named(filepath, CACHE, _ENDING)
    teacher, count = check_bakeable(context, active), settings.pose_count
    subject = subject_of(teacher, count)
    mesh, armature, names = subject.mesh, subject.armature, subject.names
    _check_free(armature, names)
    posing = poses_of(context, subject, count, settings.seed)
    poses = yield from background.part_of(posing, 0.0, 0.95)
    still = np.tile(np.eye(4)[:3], (1, len(names), 1, 1))
    motion = np.concatenate([still, posed(poses.skeleton, poses.turns)])
    back = np.linalg.inv(poses.to_armature)
    owner = {"mesh": mesh.name, "armature": armature.name, "seed": settings.seed}
    with point_cache(target, owner, len(subject.place), count + 1) as write:
        for shape in (poses.still, *poses.frames):
            write(transform_points(shape[subject.place], back))
    # Last, since nothing after it fails.
    action = _write_action(context, armature, f"{mesh.name}_training", names, motion)
    return TrainingSet(
        mesh.name,
        armature.name,
        action.name,
        teacher.what,
        count,
        len(subject.place),
        poses.shrunk,
        target.path,
        poses.notes,
        time.perf_counter() - begin,
    )


def _check_free(armature: bpy.types.Object, names: Sequence[str]) -> None:
    """Raises BadScene if keys of deforming bones would not pose them as the poses are made."""
    animation = armature.animation_data
    driven = [curve.data_path for curve in animation.drivers] if animation is not None else []
    moved = dict.fromkeys(bone.name for name in names for bone in _with_parents(armature.data.bones[name]))
    for name in moved:
        constraint = next((each for each in armature.pose.bones[name].constraints if _acts(each)), None)
        what = f'the constraint "{constraint.name}"' if constraint is not None else ""
        if any(path.startswith(actions.bone_path(name)) for path in driven):
            what = "a driver"
        if not armature.data.bones[name].use_inherit_rotation and armature.data.bones[name].parent is not None:
            what = "the missing Inherit Rotation"
        if what:
            raise BadScene(
                f'An action cannot pose the deforming bones of "{armature.name}" alone: {what} of the bone "{name}" '
                "also decides. Use the skeleton as it is exported, without controls"
            )


def _acts(constraint: bpy.types.Constraint) -> bool:
    """Whether a constraint moves its bone from a made pose, which is within the limits of rotations."""
    limit = constraint.type == "LIMIT_ROTATION" and constraint.owner_space == "LOCAL"
    return constraint.enabled and constraint.influence > 0 and not limit


def _with_parents(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    return [bone, *bone.parent_recursive]


def _write_action(
    context: bpy.types.Context, armature: bpy.types.Object, name: str, names: Sequence[str], motion: np.ndarray
) -> bpy.types.Action:
    """An action with the motion (F, P, 3, 4) of the bones from rest; their other parents follow those above."""
    with temporary_copy(armature) as copy:
        copy.animation_data_clear()
        action = actions.new_action(copy, name)
        action.use_fake_user = True
        action[MADE_POSES] = True
        container = actions.curve_container(copy)
        assert container is not None
        times = actions.key_times(context.scene, _FIRST + np.arange(len(motion), dtype=np.float64))
        for each, basis in _local(armature, names, motion).items():
            ones = np.ones((len(basis), 3))
            key_transforms(copy, container, each, basis[:, :3, 3], from_matrices(basis[:, :3, :3]), ones, times)
        if hasattr(action, "slots"):
            action.slots[0].name_display = armature.name
    return action


def _local(armature: bpy.types.Object, names: Sequence[str], motion: np.ndarray) -> dict[str, np.ndarray]:
    """(F, 4, 4) by name, parents first: the bones, and those above them, each against its parent."""
    concerned = {bone for name in names for bone in _with_parents(armature.data.bones[name])}
    full = np.tile(np.eye(4), (*motion.shape[:2], 1, 1))
    full[..., :3, :] = motion
    given = dict(zip(names, full.swapaxes(0, 1), strict=True))
    moved: dict[str, np.ndarray] = {}
    found: dict[str, np.ndarray] = {}
    for bone in sorted(concerned, key=lambda each: len(each.parent_recursive)):
        above = moved[bone.parent.name] if bone.parent is not None else np.eye(4)
        moved[bone.name] = given.get(bone.name, np.broadcast_to(above, full[:, 0].shape))
        rest = np.array(bone.matrix_local, dtype=np.float64)
        found[bone.name] = np.linalg.inv(rest) @ np.linalg.inv(above) @ moved[bone.name] @ rest
    return found
