# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of a written rig's bones: the bone and property that each channel of core.bone_channels keys."""

from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import actions
from ...core.bone_channels import BoneChannels, bone_channels
from .rig_bones import RigBones, rest_matrices

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition

_PROPERTIES = {
    "location": "location",
    "rotation": "rotation_quaternion",
    "scale": "scale",
    "child_rotation": "rotation_quaternion",
    "joint_location": "location",
    "joint_rotation": "rotation_quaternion",
}


def rig_channels(armature_object: bpy.types.Object, bones: RigBones, decomposition: "Decomposition") -> BoneChannels:
    """The channels of ``decomposition`` for the bones at their stored rest matrices."""
    rest = rest_matrices(armature_object, bones.deform)
    return bone_channels(decomposition, rest, bones.tree(armature_object))


def write_motion(
    armature_object: bpy.types.Object, bones: RigBones, decomposition: "Decomposition", times: np.ndarray
) -> None:
    """Key the bones at ``times`` (F,) with linear interpolation."""
    channels = rig_channels(armature_object, bones, decomposition)
    moving = channels.moving()
    values = [(*keyed_on(bones, name), moving[name]) for name in moving]
    if channels.child_scale is not None and channels.scale is not None:
        values.append((bones.deform, "scale", np.broadcast_to(channels.child_scale, channels.scale.shape)))
    container = actions.curve_container(armature_object)
    for names, property_name, values_of_all in values:
        for index, name in enumerate(names):
            actions.write_channels(container, channel_path(name, property_name), values_of_all[:, index], times, name)


def keyed_on(bones: RigBones, channel: str) -> tuple[tuple[str, ...], str]:
    """The bones, in order, and their property that a channel of core.bone_channels.BoneChannels keys."""
    if channel in ("joint_location", "joint_rotation"):
        owners = bones.controls
    elif bones.mechanism and channel != "child_rotation":
        owners = bones.mechanism
    else:
        owners = bones.deform
    return owners, _PROPERTIES[channel]


def channel_path(bone_name: str, property_name: str) -> str:
    """The data path of a pose bone's property."""
    return f"{actions.bone_path(bone_name)}.{property_name}"
