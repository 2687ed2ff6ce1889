# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of a written rig's bones: the bone and property that each channel of core.bone_channels keys."""

from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.armatures import rest_matrices
from ...core.bone_channels import BoneChannels, bone_channels
from .rig_bones import RigBones

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


# The fraction of the time to write motion after which its channels are known.
_FACTORED = 0.8


def rig_channels(
    armature_object: bpy.types.Object, bones: RigBones, decomposition: "Decomposition"
) -> background.Steps[BoneChannels]:
    """Generator: the channels of ``decomposition`` for the bones at their stored rest matrices."""
    rest, tree = rest_matrices(armature_object, bones.deform), bones.tree(armature_object)
    return background.run_in_worker(lambda _: bone_channels(decomposition, rest, tree))


def write_motion(
    armature_object: bpy.types.Object, bones: RigBones, decomposition: "Decomposition", times: np.ndarray
) -> background.Steps[None]:
    """Generator: key the bones at ``times`` (F,) with linear interpolation. Yields (fraction, stage)."""
    factoring = rig_channels(armature_object, bones, decomposition)
    channels = yield from background.part_of(factoring, 0.0, _FACTORED)
    moving = channels.moving()
    values = [(*keyed_on(bones, name), moving[name]) for name in moving]
    if channels.child_scale is not None and channels.scale is not None:
        values.append((bones.deform, "scale", np.broadcast_to(channels.child_scale, channels.scale.shape)))
    container = actions.curve_container(armature_object)
    for number, (names, property_name, values_of_all) in enumerate(values):
        for index, name in enumerate(names):
            actions.write_channels(container, channel_path(name, property_name), values_of_all[:, index], times, name)
            yield _FACTORED + (1.0 - _FACTORED) * (number + index / len(names)) / len(values), ""


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
