# SPDX-License-Identifier: GPL-3.0-or-later
"""Posing joints through their range, one at a time, for a simulation or a sculptor to fill in the right shapes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import actions
from ...blender.animation.simulations import ShortCache, short_caches_behind
from ...blender.data_blocks import joined_name
from ...blender.preconditions import check_armature_mode
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
    """What was keyed. kept_action: the armature's action until then, "" for none; short: simulations that stand still
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
        text = f"{self.armature_name}: {self.pose_count} poses of {bones} at frames {self.first} to {self.last}"
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
    """The markers that belong to an action: names, one a line, and frames."""

    names: str
    frames: tuple[int, ...]


@dataclass(frozen=True)
class _Turn:
    """A joint at a frame: degrees of freedom other than ``axis`` are at rest. pose: whether it is one to mark."""

    frame: int
    axis: int
    angle: float
    pose: bool


def pose_joints(context, armature, bone_names, given: PoseRange) -> PosedJoints:
    """Key the bones through their range on a new action, one joint at a time and the others at rest, and mark the poses
    on the timeline.

    The armature's former action stays in the file with a fake user; one that this function made is replaced, with its
    markers. Raises BadScene, BadSettings.
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
    markers = [(_marker_name(name, turn), turn.frame) for name, found in turns.items() for turn in found if turn.pose]
    for name, place in markers:
        scene.timeline_markers.new(name, frame=place)
    names, places = zip(*markers, strict=True)
    write_record(action, _RECORD, _Markers("\n".join(names), places))
    short = tuple(short_caches_behind(context.view_layer, armature, frame))
    return PosedJoints(armature.name, len(markers), len(turns), given.frame_start, frame, skipped, kept, short)


def planned_poses(armature, bone_names, given: PoseRange) -> tuple[int, int]:
    """How many poses ``pose_joints`` would make of these bones, and the last frame that it would key.

    Raises BadScene, BadSettings.
    """
    given.check()
    _check(armature, bone_names)
    turns = _planned(armature, bone_names, given)
    return sum(turn.pose for found in turns.values() for turn in found), _last_frame(turns) or given.frame_start


def _planned(armature, bone_names, given: PoseRange) -> dict[str, list[_Turn]]:
    """Each bone's turns, one bone after the other; none where it cannot turn."""
    turns, frame = {}, given.frame_start
    for name in bone_names:
        turns[name] = list(_turns(armature.pose.bones[name], given, frame))
        frame = turns[name][-1].frame if turns[name] else frame
    return turns


def _last_frame(turns: dict[str, list[_Turn]]) -> int | None:
    """None where nothing turns."""
    return max((found[-1].frame for found in turns.values() if found), default=None)


def _check(armature, bone_names) -> None:
    if armature.library is not None:
        raise BadScene(
            f'The armature "{armature.name}" is linked from another file, so it cannot be animated. '
            "Make a library override, or make it local"
        )
    check_armature_mode(armature)
    animation = armature.animation_data
    if animation is not None and animation.use_tweak_mode:
        raise BadScene(f'A strip of "{armature.name}" is being edited. Leave Tweak Mode in the nonlinear animation')
    if not bone_names:
        raise BadScene(f'No bone of "{armature.name}" is selected. Select the bones to pose in Pose Mode')
    missing = [name for name in bone_names if name not in armature.pose.bones]
    if missing:
        raise BadScene(f'The armature "{armature.name}" has no bone "{missing[0]}"')


def pose_angles(low: float, high: float, steps: int) -> list[float]:
    """Angles from low to high without rest: each side of rest in even steps, or where rest is outside, the range."""
    if low > _NEARLY_REST or high < -_NEARLY_REST:
        return np.linspace(low, high, steps).tolist() if steps > 1 else [max(low, high, key=abs)]
    shares = np.arange(1, steps + 1) / steps
    below = (low * shares[::-1]).tolist() if low < -_NEARLY_REST else []
    return below + ((high * shares).tolist() if high > _NEARLY_REST else [])


def angle_range(bone, axis: int, given: PoseRange) -> tuple[float, float]:
    """Radians from and to which a pose bone is to turn about one of its axes.

    Its own limits, where these are wanted and there are any: of a constraint Limit Rotation, else of IK.
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
    return given.angle_min, given.angle_max


def _turns(bone, given: PoseRange, start: int) -> Iterator[_Turn]:
    """The joint's way about each axis, from rest through its poses back to rest."""
    frame = start
    for axis in range(3):
        if not given.axes[axis] or bone.lock_rotation[axis]:
            continue
        poses = pose_angles(*angle_range(bone, axis, given), given.steps)
        if not poses:
            continue
        if frame == start:
            yield _Turn(frame, axis, 0.0, False)
        # No faster on the way to the first pose than from pose to pose, or a simulation would be thrown.
        pace = max(map(abs, poses)) / given.steps
        angle = 0.0
        for target in [*poses, 0.0]:
            parts = max(1, math.ceil(abs(target - angle) / pace - 1e-6))
            for part in range(1, parts + 1):
                frame += given.frames_per_pose
                last = part == parts and target != 0.0
                share = part / parts
                yield _Turn(frame, axis, (1 - share) * angle + share * target, last and not given.hold_frames)
            if target != 0.0 and given.hold_frames:
                frame += given.hold_frames
                yield _Turn(frame, axis, target, True)
            angle = target


def _rotation_values(bone, turns: list[_Turn]) -> tuple[str, np.ndarray]:
    """The property that turns a pose bone, and its values (F, D)."""
    axes, angles = np.eye(3)[[turn.axis for turn in turns]], np.array([turn.angle for turn in turns])[:, None]
    if bone.rotation_mode == "QUATERNION":
        values = np.concatenate([np.cos(angles / 2), np.sin(angles / 2) * axes], axis=1)
    elif bone.rotation_mode == "AXIS_ANGLE":
        values = np.concatenate([angles, axes], axis=1)
    else:
        # About a single axis the order does not matter.
        values = angles * axes
    return bone.path_from_id(_rotation_property(bone)), values


def _rotation_property(bone) -> str:
    return _ROTATION_PATHS.get(bone.rotation_mode, "rotation_euler")


def _key_rest(container, bone, times: np.ndarray, turns: bool) -> None:
    """Put a pose bone at rest, and key there what was not, as another action, or none, would leave it so."""
    posed = {name: tuple(getattr(bone, name)) for name in ("location", _rotation_property(bone), "scale")}
    bone.matrix_basis = Matrix.Identity(4)
    for name, values in posed.items():
        rest = tuple(getattr(bone, name))
        if values != rest and not (turns and name.startswith("rotation")):
            actions.write_channels(container, bone.path_from_id(name), np.array([rest]), times, bone.name)


def _put_aside(scene, armature) -> str:
    """Take the armature's action off it; the name of the action, or "" where there is none to keep."""
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


def _marker_name(bone_name: str, turn: _Turn) -> str:
    return joined_name(bone_name, f" {_AXES[turn.axis]} {round(math.degrees(turn.angle)):+d}°")
