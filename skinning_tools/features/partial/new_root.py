# SPDX-License-Identifier: GPL-3.0-or-later
"""Make Root: another bone of a skeleton carries all others, and everything moves as before.

On the way from the new root to the old one, each bone hangs from its former child, about the joint that they had. The
motion M of all bones from rest stays. A bone that only rotated about its joint against its parent does so against its
former child, too. The channels of all other bones depend on the motion of their parents alone, and stay as they are.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import actions, background
from ...blender.animation.clips import Clip, clips_of
from ...blender.armatures import check_armature, lock_locations, rest_matrices
from ...blender.bone_parenting import parent_to_bone, rest_bone
from ...blender.conversions import result_of
from ...blender.figures import Figure, Result
from ...blender.joint_motion import played_motion
from ...blender.joint_records import has_note, note_joints
from ...blender.pose_keys import key_transforms
from ...blender.preconditions import armature_label, check_posed, unmet
from ...blender.rotation_limits import MARGIN, limit_of, limit_rotations, remove_limit
from ...core import quaternions
from ...core.affine_chain import rigid_channels
from ...core.errors import BadScene
from .bone_keys import transform_paths
from .kept_pose import containers_of, curves_kept, pose_kept
from .keyable_bones import check_keyable
from .parts import armature_meant
from .root_notes import bendy_notes, endless_notes, is_endless, mixed_notes, reference_notes
from .root_way import Way

# A linear part that is farther than this from a rotation scales.
_NO_SCALE = 1e-4


@dataclass(frozen=True)
class Rerooted(Result):
    """path: the bones from the new root to the old one; notes: for the user."""

    armature_name: str
    path: tuple[str, ...]
    action_names: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float | None = None

    def figures(self) -> list[Figure]:
        return [
            Figure("Armature", self.armature_name),
            Figure("Root", self.path[0]),
            Figure("Reparented", list(self.path[1:])),
            Figure("Actions", list(self.action_names), if_any=True),
        ]


def path_to_root(armature: bpy.types.Object, name: str = "") -> list[str]:
    """The bones from the one of that name, by default the active one, to the root that it hangs from. Bones above all
    joints, such as a root that stands still, do not count. Cheap enough for a panel. Raises BadScene."""
    active = armature.data.bones.active
    bone = armature.data.bones.get(name) if name else active
    if bone is None:
        missing = f'has no bone "{name}"' if name else "has no active bone"
        raise BadScene(f'The armature "{armature.name}" {missing}. Select the bone that is to carry all others')
    path = [bone, *bone.parent_recursive]
    while len(path) > 1 and not (path[-1].use_deform or has_note(armature.pose.bones[path[-1].name])):
        path.pop()
    if len(path) == 1:
        raise BadScene(f'The bone "{bone.name}" of "{armature.name}" is a root already. Select one that hangs from it')
    return [each.name for each in path]


def check_reroot(context: bpy.types.Context, active: bpy.types.Object | None, armature: str = "") -> None:
    """For the panel: raise BadScene if the active bone cannot become the root."""
    found = armature_meant(context, active, armature)
    path_to_root(found)
    check_armature(found)
    check_posed(found)


def make_root(
    context: bpy.types.Context, active: bpy.types.Object | None, armature: str = "", bone: str = ""
) -> background.Steps[Rerooted]:
    """Generator: let a bone carry the bone that it hangs from, and so on up to the root; returns Rerooted, yields
    (fraction, stage).

    In all actions of the armature, the bones on the way have keys in every frame then. Raises SkinningError, and has
    changed nothing then.
    """
    begin, rig = time.perf_counter(), armature_meant(context, active, armature)
    way = Way.of(rig, path_to_root(rig, bone))
    # What keys none of these bones goes on doing so, over what moves them.
    clips = [_whole(context.scene, clip, way.names) for clip in clips_of(rig) if clip.bones & set(way.names)]
    _check(rig, way, clips)
    mixed, endless = mixed_notes(rig, way.names), [clip for clip in clips if is_endless(clip, way.names)]
    moments = [(clip, at) for clip in clips for at in actions.key_times(context.scene, np.array(clip.numbers))]
    reading = played_motion(context, rig, way.moving, moments)
    motion, notes = yield from background.part_of(reading, 0.0, 0.9)
    pose = np.array([rig.pose.bones[name].matrix for name in way.moving], dtype=np.float64)
    motion = np.concatenate([motion, (pose @ np.linalg.inv(rest_matrices(rig, way.moving)))[None]])
    _check_rigid(rig, motion)
    yield 0.9, "Keying the bones"
    way = way.holding(rig, motion)
    attached = [(ob, rest_bone(rig, rig.data.bones[ob.parent_bone]) @ _offset(ob)) for ob in _attached(rig, way.names)]
    limited = [name for name, below in zip(way.names[1:], way.names, strict=False) if limit_of(rig.pose.bones[below])]
    bones = [*way.names, *way.disconnected]
    with curves_kept(clips, bones), pose_kept(rig, bones, [ob for ob, _ in attached]), way.turned(context, rig):
        channels = way.channels(motion, rest_matrices(rig, way.names))
        _key(context.scene, rig, way, clips, channels)
        for ob, world in attached:
            parent_to_bone(ob, rig, rig.data.bones[ob.parent_bone], world)
        _finish(rig, way, clips, limited, channels)
    told = *endless_notes(endless), *mixed, *bendy_notes(rig, way.names), *reference_notes(rig, way.names)
    seconds = time.perf_counter() - begin
    return Rerooted(rig.name, way.names, tuple(clip.name for clip in clips), (*notes, *told), seconds)


def _check(rig: bpy.types.Object, way: Way, clips: Sequence[Clip]) -> None:
    """Raises BadScene if the bones or their actions cannot be changed, or if other things move the bones."""
    check_armature(rig)
    check_posed(rig)
    check_keyable(rig, way.names, but=limit_of)
    for name in way.names:
        bone = rig.data.bones[name]
        if not (bone.use_inherit_rotation and bone.inherit_scale == "FULL" and bone.use_local_location):
            raise BadScene(
                f'The bone "{name}" of "{rig.name}" does not inherit all of its parent\'s motion, so it cannot be '
                "reversed. In Properties > Bone > Relations, turn on Inherit Rotation and Local Location, and set "
                "Inherit Scale to Full"
            )
    for clip in clips:
        if clip.action.library is not None:
            work = "the keys of its bones cannot be changed"
            raise unmet("LINKED_ACTION", action=clip.name, owner=armature_label(rig), work=work)
        others = sorted(ob.name for ob in bpy.data.objects if ob != rig and ob.type == "ARMATURE" and _plays(ob, clip))
        if others:
            raise BadScene(
                f'The action "{clip.name}" moves "{others[0]}", too, whose bones stay. Make a copy of the action for '
                f'"{rig.name}" (the number beside its name)'
            )


def _plays(ob: bpy.types.Object, clip: Clip) -> bool:
    """Whether the object plays the clip, itself or in its NLA; other slots of its action are other motions."""
    animation = ob.animation_data
    if animation is None:
        return False
    slot = getattr(animation, "action_slot", None)
    strips = [(strip.action, actions.strip_slot(strip)) for strip in actions.own_strips(ob)]
    return (clip.action, clip.slot) in [(animation.action, slot.handle if slot is not None else 0), *strips]


def _whole(scene: bpy.types.Scene, clip: Clip, names: Sequence[str]) -> Clip:
    """The clip with the scene's frames of all its keys, also those beyond its manual frame range; if the bones
    ``names`` go on beyond them, with all frames of the scene."""
    ends = [end for container in containers_of(clip) for curve in container.fcurves for end in curve.range()]
    frames = np.array([clip.numbers[0], clip.numbers[-1], *ends]) / actions.time_stretch(scene)
    if is_endless(clip, names):
        frames = np.append(frames, [scene.frame_start, scene.frame_end])
    return replace(clip, numbers=range(math.floor(frames.min()), math.ceil(frames.max()) + 1))


def _check_rigid(rig: bpy.types.Object, motion: np.ndarray) -> None:
    """motion (F, P, 4, 4)"""
    linear = motion[..., :3, :3]
    if np.abs(linear.swapaxes(-1, -2) @ linear - np.eye(3)).max() > _NO_SCALE:
        raise BadScene(
            f'Bones of "{rig.name}" from the new root to the old one are scaled, so that they cannot be reversed. '
            "Clear their scale, or choose another bone"
        )


def _rows(clips: Sequence[Clip]) -> list[slice]:
    """The rows of each clip among the frames of all, one clip after the other, and of the present pose, the last."""
    ends = np.cumsum([0, *(len(clip.numbers) for clip in clips), 1]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def _key(scene: bpy.types.Scene, rig: bpy.types.Object, way: Way, clips: Sequence[Clip], channels: np.ndarray) -> None:
    """Pose and key the bones by their ``channels`` (F, n, 4, 4), frame after frame of the ``clips``, then the present
    pose. Connected bones have had no location, whatever their curves say."""
    gone = {path for name in way.names for path in transform_paths(name)}
    gone |= {f"{actions.bone_path(name)}.location" for name in way.disconnected}
    location, rotation = rigid_channels(channels[..., :3, :])
    scale = np.ones_like(location)
    for clip, rows in zip(clips, _rows(clips), strict=False):
        times = actions.key_times(scene, np.array(clip.numbers))
        for container in containers_of(clip):
            actions.remove_curves_of(container, gone.__contains__)
        container = containers_of(clip)[0]
        for index, name in enumerate(way.names):
            own = location[rows, index], rotation[rows, index], scale[rows, index]
            key_transforms(rig, container, name, *own, times)
    for name, basis in zip(way.names, channels[-1], strict=True):
        rig.pose.bones[name].matrix_basis = Matrix(basis.tolist())
    for name in way.disconnected:
        rig.pose.bones[name].location = (0.0, 0.0, 0.0)


def _finish(
    rig: bpy.types.Object, way: Way, clips: Sequence[Clip], limited: Sequence[str], channels: np.ndarray
) -> None:
    """Locks, limits and notes on joints, which go with the joints."""
    bones = [rig.pose.bones[name] for name in way.names]
    lock_locations(rig, dict.fromkeys(way.names, False))
    # Those of the user.
    locks = [tuple(bone.lock_location) for bone in bones]
    for bone, lock in zip(bones, [locks[-1], *locks[:-1]], strict=True):
        bone.lock_location = lock
    lock_locations(rig, dict.fromkeys([*way.disconnected, *way.only_turning], True))
    for bone in bones:
        remove_limit(bone)
    turns = quaternions.from_matrices(channels[..., :3, :3])
    result = result_of(rig)
    margin = MARGIN if result is None else result.figures.get("limit_margin", MARGIN)
    limit_rotations(rig, {name: turns[:, way.names.index(name)] for name in limited}, margin, _rows(clips))
    note_joints(rig, [bone.name for bone in rig.pose.bones if has_note(bone)], way.names)


def _attached(rig: bpy.types.Object, names: Sequence[str]) -> list[bpy.types.Object]:
    return [ob for ob in rig.children if ob.parent_type == "BONE" and ob.parent_bone in names]


def _offset(ob: bpy.types.Object) -> np.ndarray:
    return np.array(ob.matrix_parent_inverse @ ob.matrix_basis, dtype=np.float64)
