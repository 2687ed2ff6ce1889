# SPDX-License-Identifier: GPL-3.0-or-later
"""All or nothing: the keys, channels, locks and limits of bones are put back where a block fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import bpy

from ...blender import actions
from ...blender.animation.clips import Clip
from ...blender.records import RESERVED
from ...blender.rotation_limits import limit_of, remove_limit
from .motion_action import armature_copy

_CHANNELS = "matrix_basis", "lock_location"
_IK_LIMITS = [f"{kind}_{axis}" for kind in ("ik_min", "ik_max", "use_ik_limit") for axis in "xyz"]


def containers_of(clip: Clip) -> list:
    """The containers of the clip's curves."""
    return dict(actions.containers_by_slot(clip.action))[clip.slot]


@contextmanager
def curves_kept(clips: Sequence[Clip], names: Sequence[str]) -> Iterator[None]:
    """The curves of the bones ``names`` are as they were if the block raises."""
    copies = {clip.action: clip.action.copy() for clip in clips}
    paths = actions.bone_paths(names)
    try:
        yield
    except BaseException:
        for clip in clips:
            kept = dict(actions.containers_by_slot(copies[clip.action]))[clip.slot]
            for container, before in zip(containers_of(clip), kept, strict=True):
                actions.remove_curves_of(container, lambda path: path.startswith(paths))
                for curve in [each for each in before.fcurves if each.data_path.startswith(paths)]:
                    actions.copy_curve(container, curve, curve.data_path, actions.bone_of(curve.data_path) or "")
        raise
    finally:
        for copy in copies.values():
            bpy.data.actions.remove(copy)


@contextmanager
def pose_kept(armature: bpy.types.Object, names: Sequence[str], attached: Sequence[bpy.types.Object]) -> Iterator[None]:
    """The channels, locks, limits of rotation and records of the bones ``names``, and the places of objects
    ``attached`` to them, are as they were if the block raises."""
    inverses = {ob: ob.matrix_parent_inverse.copy() for ob in attached}
    with armature_copy(armature, None) as copy:
        try:
            yield
        except BaseException:
            for name in names:
                _put_back(armature.pose.bones[name], copy.pose.bones[name])
            for ob, inverse in inverses.items():
                ob.matrix_parent_inverse = inverse
            raise


def _put_back(bone: bpy.types.PoseBone, before: bpy.types.PoseBone) -> None:
    remove_limit(bone)
    limit = limit_of(before)
    if limit is not None:
        bone.constraints.copy(limit)
        bone.constraints.move(len(bone.constraints) - 1, list(before.constraints).index(limit))
    for name in (*_CHANNELS, *_IK_LIMITS):
        setattr(bone, name, getattr(before, name))
    for key in [key for key in bone.keys() if key.startswith(RESERVED)]:  # noqa: SIM118
        del bone[key]
    for key in [key for key in before.keys() if key.startswith(RESERVED)]:  # noqa: SIM118
        bone[key] = before[key]
