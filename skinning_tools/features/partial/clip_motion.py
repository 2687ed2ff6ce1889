# SPDX-License-Identifier: GPL-3.0-or-later
"""New motion of an armature in several clips: a copy of each clip's action, with keys for bones that a solve adds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...blender import actions
from ...blender.animation.clips import Clip, clip_of, playing
from ...blender.armatures import NewBone
from ...blender.wording import counted
from .added_bones import add_new_bones
from .bone_keys import WantedPoses
from .motion_action import apply_motion, new_action, remove_action
from .readings import RigMotion


@dataclass(frozen=True, eq=False)
class ClipPoses:
    """The ``wanted`` motion in one clip, and the present one of all bones."""

    clip: Clip
    wanted: WantedPoses
    motion: RigMotion


def in_each(clips: Sequence[Clip], wanted: WantedPoses, motion: RigMotion) -> list[ClipPoses]:
    """The parts of motion that is that of all ``clips``, one after the other."""
    found, start = [], 0
    for clip in clips:
        part = slice(start, start + len(clip.numbers))
        start = part.stop
        own = replace(
            motion,
            matrices=motion.matrices[part],
            pose=motion.pose[part],
            basis=motion.basis[part],
            to_armature=motion.to_armature[part],
        )
        found.append(ClipPoses(clip, replace(wanted, matrices=wanted.matrices[part]), own))
    return found


@contextmanager
def keyed_clips(
    copy: bpy.types.Object, armature: bpy.types.Object, keyed: Sequence[ClipPoses], ending: str
) -> Iterator[dict[Clip | None, Clip]]:
    """What the ``copy`` of an armature, with the bones to key, plays in each clip: a new action, which is removed if
    the body raises."""
    clips: dict[Clip | None, Clip] = {}
    made: list[bpy.types.Action] = []
    try:
        for each in keyed:
            clip, times = each.clip, np.array(each.clip.numbers, float)
            with playing(armature, clip):
                action, _ = new_action(copy, armature, each.wanted, each.motion, times, None, ending)
            made.append(action)
            found = clip_of(copy, action)
            assert found is not None
            clips[clip] = replace(found, numbers=clip.numbers)
        yield clips
    except BaseException:
        for action in made:
            remove_action(action)
        raise


def apply_clips(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    added: Sequence[NewBone],
    clips: dict[Clip | None, Clip],
    own: bpy.types.Action | None = None,
) -> list[str]:
    """Add the bones, and assign the new action ``own``, or that for the armature's present one, if there is one; the
    others stay in the file. Strips of its tracks play the new actions, too. Returns notes."""
    present = armature.animation_data.action if armature.animation_data is not None else None
    replaced = clip_of(armature, present) if own is not None and present is not None else None
    # Two strips may play different frames of one action, which then has two copies.
    new = [(old, clip) for old, clip in clips.items() if old is not None and clip.action != old.action]
    own = own or next((clip.action for old, clip in new if old.action == present), None)
    for _, clip in new:
        clip.action.use_fake_user = clip.action != own
    if own is not None:
        apply_motion(context, armature, added, own)
    else:
        add_new_bones(context, armature, added)
    notes = []
    if new:
        names = ", ".join(f'"{clip.action.name}"' for _, clip in new[:3])
        new_action = counted(len(new), "new action")
        notes.append(f"keys of the helpers in {new_action}: {names}{' and others' if len(new) > 3 else ''}")
    copied = clip_of(armature, own) if replaced is not None and own is not None else None
    if replaced is not None and copied is not None:
        new.append((replaced, copied))
    if _let_strips_play(armature, new):
        notes.append(f'the tracks of "{armature.name}" play the new actions in place of the earlier ones')
    return notes


def _let_strips_play(armature: bpy.types.Object, new: Sequence[tuple[Clip, Clip]]) -> int:
    """Let the strips of earlier clips play the new ones, of several that which has most of a strip's frames; returns
    how many do. Strips that are mixed with others stay, as do the earlier actions in the file."""
    count = 0
    for strip in actions.own_strips(armature):
        if strip.blend_type != "REPLACE":
            continue
        played = strip.action, actions.strip_slot(strip)
        fitting = {_common_frames(strip, old.numbers): clip for old, clip in new if (old.action, old.slot) == played}
        if not fitting:
            continue
        if strip.action.library is None:
            strip.action.use_fake_user = True
        clip = fitting[max(fitting)]
        actions.set_strip_action(strip, clip.action, clip.slot)
        count += 1
    return count


def _common_frames(strip: bpy.types.NlaStrip, numbers: range) -> float:
    return min(numbers[-1], strip.action_frame_end) - max(numbers[0], strip.action_frame_start)
