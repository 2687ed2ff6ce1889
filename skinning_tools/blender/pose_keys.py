# SPDX-License-Identifier: GPL-3.0-or-later
"""Keyframes of a pose bone's location, rotation and scale, whatever its rotation mode."""

import bpy
import numpy as np
from mathutils import Quaternion

from . import actions

_ROTATION_PATHS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}


def key_transforms(
    armature: bpy.types.Object,
    container: "bpy.types.Action | bpy.types.ActionChannelbag",
    name: str,
    location: np.ndarray,
    rotation: np.ndarray,
    scale: np.ndarray,
    times: np.ndarray,
) -> None:
    """Key a pose bone's channels: location and scale (F, 3), rotation (F, 4) in the bone's own rotation mode."""
    bone = armature.pose.bones[name]
    path, values = rotation_values(bone.rotation_mode, rotation)
    prefix = actions.bone_path(name)
    for channel, columns in (("location", location), (path, values), ("scale", scale)):
        actions.write_channels(container, f"{prefix}.{channel}", columns, times, name)


def rotation_values(mode: str, rotation: np.ndarray) -> tuple[str, np.ndarray]:
    """The rotation property of a pose bone in its rotation ``mode``, and its values (F, D) for continuous quaternions
    ``rotation`` (F, 4)."""
    path = _ROTATION_PATHS.get(mode, "rotation_euler")
    if mode == "QUATERNION":
        return path, rotation
    if mode == "AXIS_ANGLE":
        length = np.linalg.norm(rotation[:, 1:], axis=1)
        angle = 2.0 * np.arctan2(length, rotation[:, 0])
        axis = np.where(length[:, None] > 1e-9, rotation[:, 1:] / np.maximum(length, 1e-9)[:, None], [0.0, 1.0, 0.0])
        return path, np.column_stack([angle, axis])
    values, before = np.empty((len(rotation), 3)), None
    for row, quaternion in enumerate(rotation):
        turn = Quaternion(quaternion)
        before = turn.to_euler(mode) if before is None else turn.to_euler(mode, before)
        values[row] = before
    return path, values
