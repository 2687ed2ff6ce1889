# SPDX-License-Identifier: GPL-3.0-or-later
"""How far joints move: between the limits of their bones, or else within the armature's animation."""

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.helper_bones.link_rig import Joint
from ...blender.helper_bones.records import TWIST, find_helpers
from ...blender.temporary_scene import evaluate_frame, temporary_scene

# Largest number of frames to sample for a joint's range.
_MOST_FRAMES = 500


def limited_range(armature: bpy.types.Object, joint: Joint) -> float | None:
    """The range within the limits of a joint's end bone, of a Limit Rotation constraint or else of IK; None without
    limits."""
    from ...core.binding.links import range_of_limits

    bone = armature.pose.bones[joint.end]
    ranges = next((found for found in map(_constraint_limits, bone.constraints) if found), None) or _ik_limits(bone)
    if ranges is None:
        return None
    lowest, highest = np.array(ranges).T
    if joint.kind == TWIST:
        # Only Y counts.
        lowest, highest = lowest * [0, 1, 0], highest * [0, 1, 0]
    return range_of_limits(lowest, highest)


def _constraint_limits(constraint: bpy.types.LimitRotationConstraint) -> list[tuple[float, float]] | None:
    """The limits (least, most) by axis."""
    if constraint.type != "LIMIT_ROTATION" or not constraint.enabled or constraint.influence == 0:
        return None
    if constraint.owner_space != "LOCAL" or not any(getattr(constraint, f"use_limit_{axis}") for axis in "xyz"):
        return None
    return [
        (getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}"))
        if getattr(constraint, f"use_limit_{axis}")
        else (-np.pi, np.pi)
        for axis in "xyz"
    ]


def _ik_limits(bone: bpy.types.PoseBone) -> list[tuple[float, float]] | None:
    if not any(getattr(bone, f"use_ik_limit_{axis}") for axis in "xyz"):
        return None
    ranges = []
    for axis in "xyz":
        locked, limited = getattr(bone, f"lock_ik_{axis}"), getattr(bone, f"use_ik_limit_{axis}")
        limits = (getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}")) if limited else (-np.pi, np.pi)
        ranges.append((0.0, 0.0) if locked else limits)
    return ranges


def animated_ranges(
    context: bpy.types.Context, armature: bpy.types.Object, joints: list[Joint]
) -> background.Steps[tuple[dict[Joint, float], tuple]]:
    """Generator: the range of each joint over the armature's animation, {} without one; and notes on what Blender left
    out."""
    frames = _frames(context.scene, armature)
    if not frames:
        return {}, ()
    omissions = Omissions(context, [], frames, [armature])
    names = list(dict.fromkeys(name for joint in joints for name in (joint.start, joint.end)))
    poses = []
    with temporary_scene(context.scene, [armature]) as scene:
        hidden = armature.hide_viewport
        armature.hide_viewport = False
        try:
            for done, frame in enumerate(frames):
                depsgraph = evaluate_frame(scene, frame)
                evaluated = armature.evaluated_get(depsgraph)
                poses.append([np.array(evaluated.pose.bones[name].matrix) for name in names])
                yield 0.1 + 0.4 * done / len(frames), "Looking for the joints' range"
            omissions.look_at_drivers(depsgraph)
        finally:
            armature.hide_viewport = hidden
    rest = np.array([np.array(armature.data.bones[name].matrix_local) for name in names], dtype=np.float64)
    moved = np.array(poses, dtype=np.float64) @ np.linalg.inv(rest)
    order = {name: index for index, name in enumerate(names)}
    ranges = {
        joint: _range_between(joint, moved[:, order[joint.start]], moved[:, order[joint.end]], rest[order[joint.start]])
        for joint in joints
    }
    return ranges, texts_of(omissions.finish())


def _range_between(joint: Joint, start: np.ndarray, end: np.ndarray, rest: np.ndarray) -> float:
    """The range of the turns between two bones' matrices (F, 4, 4) from rest to pose."""
    from ...core import quaternions
    from ...core.binding.links import range_of_turns, swing_and_twist
    from ...core.rotations import polar_decomposition

    usable = np.isfinite(start).all(axis=(1, 2)) & np.isfinite(end).all(axis=(1, 2))
    turns = [polar_decomposition(matrices[usable, :3, :3])[0] for matrices in (start, end)]
    relative = quaternions.from_matrices(turns[0].swapaxes(1, 2) @ turns[1])
    return range_of_turns(swing_and_twist(relative, rest[:3, 1])[1] if joint.kind == TWIST else relative)


def _frames(scene: bpy.types.Scene, armature: bpy.types.Object) -> list[int]:
    """Frames at which an armature that is animated is looked at: its action's, else the scene's; none where nothing
    moves it."""
    animation = armature.animation_data
    if animation is not None and animation.action is not None:
        first, last = animation.action.frame_range
    elif (animation is not None and (animation.nla_tracks or animation.drivers)) or _is_constrained(armature):
        first, last = scene.frame_start, scene.frame_end
    else:
        return []
    number = int(last) - int(first) + 1
    return np.unique(np.linspace(int(first), int(last), max(min(number, _MOST_FRAMES), 1)).round()).astype(int).tolist()


def _is_constrained(armature: bpy.types.Object) -> bool:
    own = {name for helper in find_helpers(armature) for name in helper.bones}
    return any(len(bone.constraints) for bone in armature.pose.bones if bone.name not in own)
