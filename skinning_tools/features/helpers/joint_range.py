# SPDX-License-Identifier: GPL-3.0-or-later
"""How far joints move: between the limits of their bones, or else within the armature's actions."""

import bpy
import numpy as np

from ...blender import background
from ...blender.helper_bones.link_rig import Joint
from ...blender.helper_bones.records import TWIST, find_helpers
from ...blender.joint_motion import Moment, moments_of, played_motion, rotation_limits, spread

# Largest number of frames to sample for a joint's range.
_MOST_FRAMES = 500


def limited_range(armature: bpy.types.Object, joint: Joint) -> float | None:
    """The range within the limits of a joint's end bone; None without limits."""
    from ...core.binding.links import range_of_limits

    limits = rotation_limits(armature.pose.bones[joint.end], locks_suffice=False)
    if limits is None:
        return None
    lowest, highest = np.where(np.isnan(limits), [-np.pi, np.pi], limits).T
    if joint.kind == TWIST:
        # Only Y counts.
        lowest, highest = lowest * [0, 1, 0], highest * [0, 1, 0]
    return range_of_limits(lowest, highest)


def animated_ranges(
    context: bpy.types.Context, armature: bpy.types.Object, joints: list[Joint]
) -> background.Steps[tuple[dict[Joint, float], tuple]]:
    """Generator: the range of each joint over the armature's actions, or else over what moves it without any, {} where
    nothing does; and notes on what Blender left out."""
    moments = moments_of(armature, _MOST_FRAMES) or _without_actions(context.scene, armature)
    if not moments:
        return {}, ()
    names = list(dict.fromkeys(name for joint in joints for name in (joint.start, joint.end)))
    looking = played_motion(context, armature, names, moments)
    motion, notes = yield from background.part_of(looking, 0.1, 0.5)
    moved = dict(zip(names, motion.swapaxes(0, 1), strict=True))
    rest = {name: np.array(armature.data.bones[name].matrix_local, dtype=np.float64) for name in names}
    return {
        joint: _range_between(joint, moved[joint.start], moved[joint.end], rest[joint.start]) for joint in joints
    }, notes


def _range_between(joint: Joint, start: np.ndarray, end: np.ndarray, rest: np.ndarray) -> float:
    """The range of the turns between two bones' matrices (F, 4, 4) from rest to pose."""
    from ...core import quaternions
    from ...core.binding.links import range_of_turns, swing_and_twist
    from ...core.rotations import polar_decomposition

    usable = np.isfinite(start).all(axis=(1, 2)) & np.isfinite(end).all(axis=(1, 2))
    turns = [polar_decomposition(matrices[usable, :3, :3])[0] for matrices in (start, end)]
    relative = quaternions.from_matrices(turns[0].swapaxes(1, 2) @ turns[1])
    return range_of_turns(swing_and_twist(relative, rest[:3, 1])[1] if joint.kind == TWIST else relative)


def _without_actions(scene: bpy.types.Scene, armature: bpy.types.Object) -> list[Moment]:
    """The frames of the scene where drivers, tracks or constraints move the armature."""
    animation = armature.animation_data
    if (animation is not None and (animation.nla_tracks or animation.drivers)) or _is_constrained(armature):
        return [(None, number) for number in spread(range(scene.frame_start, scene.frame_end + 1), _MOST_FRAMES)]
    return []


def _is_constrained(armature: bpy.types.Object) -> bool:
    own = {name for helper in find_helpers(armature) for name in helper.bones}
    return any(len(bone.constraints) for bone in armature.pose.bones if bone.name not in own)
