# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits with the range in which bones turn in their animation: Limit Rotation constraints, and the same for IK."""

import math
from collections.abc import Mapping, Sequence

import bpy
import numpy as np
from mathutils import Quaternion

from ..core import quaternions

# The name of the constraints.
ROTATION_LIMIT = "Range of Motion"
# On a pose bone that has been given one, which tells it from a constraint of that name that the user has made.
_LIMITED = "skinning_rotation_limit"
MARGIN = math.radians(5.0)

# Orders of Euler angles, the usual one first. About the middle axis of an order, angles are good up to a right angle.
_ORDERS = ("XYZ", "XZY", "YXZ")
_GOOD, _USABLE = math.radians(60.0), math.radians(80.0)


def limit_rotations(
    armature: bpy.types.Object,
    turns: Mapping[str, np.ndarray],
    margin: float,
    clips: Sequence[slice] = (slice(None),),
) -> list[str]:
    """Limit the bones' own rotations to the ranges of ``turns``, quaternions (F, 4) by the name of the bone, and
    ``margin`` radians more at both ends. A bone that was limited so before has new limits. Inverse kinematics, which
    ignore constraints, get the same about axes without limits of the user's.

    clips: the frames of each clip. Between the last frame of one and the first of the next, nothing plays.

    Returns the names of the bones that turn too far to be limited. The armature may be in no scene.
    """
    free = []
    for name, rotations in turns.items():
        bone = armature.pose.bones[name]
        remove_limit(bone)
        order, angles = _angles(np.concatenate([_with_middles(rotations[clip]) for clip in clips]))
        if not order:
            free.append(name)
            continue
        bone[_LIMITED] = True
        constraint = bone.constraints.new("LIMIT_ROTATION")
        constraint.name, constraint.owner_space = ROTATION_LIMIT, "LOCAL"
        constraint.euler_order, constraint.use_transform_limit = order, True
        for axis, own in zip("xyz", angles.T, strict=True):
            low, high = own.min() - margin, own.max() + margin
            setattr(constraint, f"use_limit_{axis}", bool(high - low < 2 * math.pi))
            setattr(constraint, f"min_{axis}", low)
            setattr(constraint, f"max_{axis}", high)
            if not getattr(bone, f"use_ik_limit_{axis}"):
                for end, value in zip(("min", "max"), _for_ik(constraint, axis), strict=True):
                    setattr(bone, f"ik_{end}_{axis}", value)
                setattr(bone, f"use_ik_limit_{axis}", getattr(constraint, f"use_limit_{axis}"))
    return free


def remove_limits(armature: bpy.types.Object) -> list[str]:
    """Remove the limits of ``limit_rotations``; returns the names of the bones that had them."""
    return [bone.name for bone in armature.pose.bones if remove_limit(bone)]


def limit_of(bone: bpy.types.PoseBone) -> bpy.types.Constraint | None:
    """The bone's constraint of ``limit_rotations``."""
    found = bone.constraints.get(ROTATION_LIMIT) if _LIMITED in bone else None
    return found if found is not None and found.type == "LIMIT_ROTATION" else None


def freed(armature: bpy.types.Object) -> set[str]:
    """The names of the bones that had a limit of ``limit_rotations`` which the user has deleted."""
    return {bone.name for bone in armature.pose.bones if _LIMITED in bone and limit_of(bone) is None}


def remove_limit(bone: bpy.types.PoseBone) -> bool:
    """Remove the bone's limit of ``limit_rotations``; returns whether it had one."""
    found = limit_of(bone)
    if found is not None:
        for axis in "xyz":
            present = getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}")
            # Other ranges are the user's.
            if np.allclose(present, _for_ik(found, axis), atol=1e-6):
                setattr(bone, f"use_ik_limit_{axis}", False)
        bone.constraints.remove(found)
        del bone[_LIMITED]
    return found is not None


def _for_ik(constraint: bpy.types.Constraint, axis: str) -> tuple[float, float]:
    """The range of an axis as inverse kinematics may have it: no farther than a half turn, and with the rest pose."""
    low, high = getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}")
    return max(-math.pi, min(low, 0.0)), min(math.pi, max(high, 0.0))


def _with_middles(rotations: np.ndarray) -> np.ndarray:
    """(2 F − 1, 4) the rotations and, after each, the one halfway to the next, as between two keys."""
    rotations = quaternions.normalized(rotations)
    return np.concatenate([rotations, quaternions.halfway(rotations[:-1], rotations[1:])])


def _angles(rotations: np.ndarray) -> tuple[str, np.ndarray]:
    """The order in which the middle angle of the rotations stays smallest, "" if none serves, and the angles (F, 3)
    about x, y and z, as Blender's constraint sees them."""
    found = {}
    for order in _ORDERS:
        angles = np.array([Quaternion(each).to_euler(order) for each in rotations])
        found[order] = angles, np.abs(angles[:, "XYZ".index(order[1])]).max()
        if found[order][1] <= _GOOD:
            return order, angles
    order = min(found, key=lambda each: found[each][1])
    return (order if found[order][1] <= _USABLE else ""), found[order][0]
