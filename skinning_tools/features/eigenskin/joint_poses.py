# SPDX-License-Identifier: GPL-3.0-or-later
"""Pose joints through their range, one at a time, so that a simulation or a sculptor can add the correct shapes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Euler, Matrix, Quaternion

from ...blender import actions
from ...blender.animation.simulations import ShortCache, short_caches_behind
from ...blender.data_blocks import joined_name
from ...blender.preconditions import (
    armature_label,
    check_armature_mode,
    check_bones,
    check_movable,
    check_not_tweaked,
    unmet,
)
from ...blender.records import read_record, write_record
from ...blender.wording import counted
from ...core.errors import BadScene
from .settings import PoseRange

ENDING = "example poses"

# On the action: its _Markers.
_RECORD = "skinning_example_poses"

_AXES = "XYZ"
_NEARLY_REST = math.radians(0.25)
_ROTATION_PATHS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}


@dataclass(frozen=True)
class PosedJoints:
    """What was keyed. kept_action: name of the armature's former action, "" for none. short: simulations that end
    before the last pose."""

    armature_name: str
    pose_count: int
    bone_count: int
    first: int
    last: int
    skipped: tuple[str, ...]
    kept_action: str
    short: tuple[ShortCache, ...] = ()

    def summary(self) -> str:
        """The result in one line."""
        bones = counted(self.bone_count, "bone")
        text = (
            f"{self.armature_name}: {counted(self.pose_count, 'pose')} of {bones} at frames {self.first} to {self.last}"
        )
        if self.skipped:
            text += f"; {', '.join(self.skipped)}: locked or without a range"
        if self.kept_action:
            text += f'; the action "{self.kept_action}" is kept in the file'
        for cache in self.short:
            text += (
                f'; the simulation "{cache.name}" of "{cache.object_name}" ends at frame {cache.end}. '
                f"{cache.advice(self.last)}"
            )
        return text


@dataclass(frozen=True)
class _Markers:
    """The markers made with an action. names: separated by line breaks."""

    names: str
    frames: tuple[int, ...]


@dataclass(frozen=True)
class _Turn:
    """A joint at a frame. vector: its rotation vector in radians. label: the pose's name for its marker, "" on the way
    between poses."""

    frame: int
    vector: tuple[float, float, float]
    label: str


def pose_joints(
    context: bpy.types.Context, armature: bpy.types.Object, bone_names: Sequence[str], given: PoseRange
) -> PosedJoints:
    """Key the bones through their range in a new action, one joint at a time with the others at rest, and mark the
    poses on the timeline.

    The armature's former action stays in the file with a fake user. An action made by this function is replaced,
    together with its markers. Raises BadScene, BadSettings.
    """
    given.check()
    _check(armature, bone_names)
    scene = context.scene
    turns = _planned(armature, bone_names, given)
    skipped = tuple(name for name, found in turns.items() if not found)
    turns = {name: found for name, found in turns.items() if found}
    if not turns:
        raise BadScene(f"No bone can turn: {', '.join(skipped)} locked, or without a range. Widen the range")
    frame = _last_frame(turns)
    assert frame is not None
    kept = _put_aside(scene, armature)
    action = actions.new_action(armature, f"{armature.name} {ENDING}")
    container = actions.curve_container(armature)
    times = actions.key_times(scene, np.array([given.frame_start], dtype=np.float64))
    for bone in armature.pose.bones:
        _key_rest(container, bone, times, bone.name in turns)
    for name, found in turns.items():
        frames = np.array([turn.frame for turn in found], dtype=np.float64)
        path, values = _rotation_values(armature.pose.bones[name], found)
        actions.write_channels(container, path, values, actions.key_times(scene, frames), name)
    markers = [
        (joined_name(name, f" {turn.label}"), turn.frame)
        for name, found in turns.items()
        for turn in found
        if turn.label
    ]
    for name, place in markers:
        scene.timeline_markers.new(name, frame=place)
    names, places = zip(*markers, strict=True)
    write_record(action, _RECORD, _Markers("\n".join(names), places))
    short = tuple(short_caches_behind(context.view_layer, armature, frame))
    return PosedJoints(armature.name, len(markers), len(turns), given.frame_start, frame, skipped, kept, short)


def planned_poses(armature: bpy.types.Object, bone_names: Sequence[str], given: PoseRange) -> tuple[int, int]:
    """The number of poses that ``pose_joints`` would key for these bones, and the last frame.

    Raises BadScene, BadSettings.
    """
    given.check()
    _check(armature, bone_names)
    turns = _planned(armature, bone_names, given)
    return sum(bool(turn.label) for found in turns.values() for turn in found), _last_frame(turns) or given.frame_start


def _planned(armature: bpy.types.Object, bone_names: Sequence[str], given: PoseRange) -> dict[str, list[_Turn]]:
    """The turns of each bone, one bone after the other. A bone that cannot turn has none."""
    turns, frame = {}, given.frame_start
    for name in bone_names:
        turns[name] = list(_turns(armature.pose.bones[name], given, frame))
        frame = turns[name][-1].frame if turns[name] else frame
    return turns


def _last_frame(turns: dict[str, list[_Turn]]) -> int | None:
    """The last keyed frame, or None if no bone turns."""
    return max((found[-1].frame for found in turns.values() if found), default=None)


def _check(armature: bpy.types.Object, bone_names: Sequence[str]) -> None:
    check_movable(armature, armature_label(armature), "it cannot be animated")
    check_armature_mode(armature)
    check_not_tweaked(armature.animation_data, armature_label(armature))
    if not bone_names:
        raise unmet("NO_BONE_SELECTED", armature=armature, remedy="Select the bones to pose in Pose Mode")
    check_bones(armature, bone_names)


def pose_angles(low: float, high: float, steps: int) -> list[float]:
    """Angles from low to high, without rest: even steps on each side of rest, or over the range if it excludes rest."""
    if low > _NEARLY_REST or high < -_NEARLY_REST:
        return np.linspace(low, high, steps).tolist() if steps > 1 else [max(low, high, key=abs)]
    shares = np.arange(1, steps + 1) / steps
    below = (low * shares[::-1]).tolist() if low < -_NEARLY_REST else []
    return below + ((high * shares).tolist() if high > _NEARLY_REST else [])


def angle_range(bone: bpy.types.PoseBone, axis: int, given: PoseRange) -> tuple[float, float]:
    """The smallest and the largest angle, radians, of a pose bone about one of its axes.

    With ``use_limits`` these are the bone's own limits, if it has any: a Limit Rotation constraint's, or else IK
    limits.
    """
    letter = _AXES[axis].lower()
    if given.use_limits:
        for constraint in bone.constraints:
            active = constraint.type == "LIMIT_ROTATION" and constraint.enabled and constraint.influence > 0
            if active and getattr(constraint, f"use_limit_{letter}"):
                return getattr(constraint, f"min_{letter}"), getattr(constraint, f"max_{letter}")
        if getattr(bone, f"lock_ik_{letter}"):
            return 0.0, 0.0
        if getattr(bone, f"use_ik_limit_{letter}"):
            return getattr(bone, f"ik_min_{letter}"), getattr(bone, f"ik_max_{letter}")
    return -given.angle_max if given.sampling == "BALL" else given.angle_min, given.angle_max


def _turns(bone: bpy.types.PoseBone, given: PoseRange, start: int) -> Iterator[_Turn]:
    """The joint's way from rest through its poses back to rest: once for each axis, or once over the ball."""
    frame = start
    for poses, pace in _ways(bone, given):
        if frame == start:
            yield _Turn(frame, (0.0, 0.0, 0.0), "")
        here = np.zeros(3)
        for label, there in [*poses, ("", np.zeros(3))]:
            parts = max(1, math.ceil(np.linalg.norm(there - here) / pace - 1e-6))
            for part in range(1, parts + 1):
                frame += given.frames_per_pose
                share = part / parts
                reached = label if part == parts and not given.hold_frames else ""
                yield _Turn(frame, tuple((1 - share) * here + share * there), reached)
            if label and given.hold_frames:
                frame += given.hold_frames
                yield _Turn(frame, tuple(there), label)
            here = there


def _ways(bone: bpy.types.PoseBone, given: PoseRange) -> Iterator[tuple[list[tuple[str, np.ndarray]], float]]:
    """The poses to go through between rest and rest, labels and rotation vectors (3,), and how far to go from frame to
    frame that is keyed: no farther on the way to the first pose than from pose to pose, or a simulation would be
    thrown."""
    axes = [axis for axis in range(3) if given.axes[axis] and not bone.lock_rotation[axis]]
    if given.sampling == "BALL":
        turns = _ball_turns(bone, axes, given)
        if len(turns):
            poses = [(f"ball {number}", turn) for number, turn in enumerate(turns, start=1)]
            yield poses, np.linalg.norm(turns, axis=1).max() / given.steps
            return
    for axis in axes:
        angles = pose_angles(*angle_range(bone, axis, given), given.steps)
        if angles:
            poses = [(f"{_AXES[axis]} {round(math.degrees(angle)):+d}°", angle * np.eye(3)[axis]) for angle in angles]
            yield poses, max(map(abs, angles)) / given.steps


def _ball_turns(bone: bpy.types.PoseBone, axes: Sequence[int], given: PoseRange) -> np.ndarray:
    """(M, 3) rotation vectors over the range of a pose bone; none where it turns about fewer than two axes."""
    from ...core.eigenskin import shell_turns

    lowest, highest = np.zeros(3), np.zeros(3)
    for axis in axes:
        low, high = angle_range(bone, axis, given)
        lowest[axis], highest[axis] = min(low, 0.0), max(high, 0.0)
    reach = np.maximum(-lowest, highest)
    if np.count_nonzero(reach > _NEARLY_REST) < 2:
        return np.zeros((0, 3))
    return shell_turns(given.count, lowest, highest)


def _rotation_values(bone: bpy.types.PoseBone, turns: list[_Turn]) -> tuple[str, np.ndarray]:
    """The property that turns a pose bone, and its values (F, D)."""
    path = bone.path_from_id(_rotation_property(bone))
    vectors = np.array([turn.vector for turn in turns])
    angles = np.linalg.norm(vectors, axis=1, keepdims=True)
    axes = vectors / np.maximum(angles, 1e-12)
    if bone.rotation_mode == "QUATERNION":
        return path, np.concatenate([np.cos(angles / 2), np.sin(angles / 2) * axes], axis=1)
    if bone.rotation_mode == "AXIS_ANGLE":
        # Blender interpolates angle and axis: the axis stays through rest, and does not flip.
        for row in range(1, len(axes)):
            if not angles[row]:
                axes[row] = axes[row - 1]
            elif axes[row] @ axes[row - 1] < 0:
                axes[row], angles[row] = -axes[row], -angles[row]
        return path, np.concatenate([angles, axes], axis=1)
    values, previous = [], Euler((0, 0, 0), bone.rotation_mode)
    for vector, angle, axis in zip(vectors, angles, axes, strict=True):
        # About a single axis the order does not matter, and the angle may be more than half a turn.
        if np.count_nonzero(vector) <= 1:
            previous = Euler(vector, bone.rotation_mode)
        else:
            previous = Quaternion(axis, float(angle[0])).to_euler(bone.rotation_mode, previous)
        values.append(tuple(previous))
    return path, np.array(values)


def _rotation_property(bone: bpy.types.PoseBone) -> str:
    return _ROTATION_PATHS.get(bone.rotation_mode, "rotation_euler")


def _key_rest(
    container: "bpy.types.Action | bpy.types.ActionChannelbag", bone: bpy.types.PoseBone, times: np.ndarray, turns: bool
) -> None:
    """Put a pose bone at rest, and key the channels that were not at rest: without keys, they would stay posed."""
    posed = {name: tuple(getattr(bone, name)) for name in ("location", _rotation_property(bone), "scale")}
    bone.matrix_basis = Matrix.Identity(4)
    for name, values in posed.items():
        rest = tuple(getattr(bone, name))
        if values != rest and not (turns and name.startswith("rotation")):
            actions.write_channels(container, bone.path_from_id(name), np.array([rest]), times, bone.name)


def _put_aside(scene: bpy.types.Scene, armature: bpy.types.Object) -> str:
    """Unlink the armature's action, and return its name, or "" if no action is kept."""
    animation = armature.animation_data
    action = animation.action if animation else None
    if action is None:
        return ""
    record = read_record(action, _RECORD, _Markers)
    if record is None:
        action.use_fake_user = True
        return action.name
    own = set(zip(record.names.split("\n"), record.frames, strict=False))
    for marker in list(scene.timeline_markers):
        if (marker.name, marker.frame) in own:
            scene.timeline_markers.remove(marker)
    animation.action = None
    if action.users:
        return action.name
    bpy.data.actions.remove(action)
    return ""
