# SPDX-License-Identifier: GPL-3.0-or-later
"""New motion of an armature in several clips: a copy of each clip's action, with keys for bones that a solve adds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import bpy
import numpy as np

from ...blender.animation.clips import Clip, clip_of, playing
from ...blender.armatures import NewBone
from ...blender.wording import counted
from .added_bones import add_new_bones
from .bone_keys import WantedPoses
from .parts import Parts
from .steps import Reading, adding, apply_motion, armature_copy, new_action, remove_action


@contextmanager
def new_clips(
    context: bpy.types.Context,
    parts: Parts,
    added: Sequence[NewBone],
    wanted: WantedPoses,
    reading: Reading,
    ending: str,
) -> Iterator[tuple[bpy.types.Object, dict[Clip | None, Clip]]]:
    """A copy of the armature with the bones ``added``, in no scene and removed at the end, and what it plays in each
    clip: the ``wanted`` motion in a new action for a used one, else the clip itself. The new actions are removed if the
    body raises."""
    chosen, motion = reading.chosen, reading.motion
    made: list[bpy.types.Action] = []
    with armature_copy(parts.armature, adding(context, added)) as copy:
        try:
            start = 0
            clips: dict[Clip | None, Clip] = {clip: clip for clip in chosen.others}
            for clip in chosen.used:
                part = slice(start, start + len(clip.numbers))
                start = part.stop
                own = replace(
                    motion,
                    matrices=motion.matrices[part],
                    pose=motion.pose[part],
                    basis=motion.basis[part],
                    to_armature=motion.to_armature[part],
                )
                poses = replace(wanted, matrices=wanted.matrices[part])
                with playing(parts.armature, clip):
                    action, _ = new_action(
                        copy, parts.armature, poses, own, np.array(clip.numbers, float), None, ending
                    )
                made.append(action)
                found = clip_of(copy, action)
                assert found is not None
                clips[clip] = replace(found, numbers=clip.numbers)
            yield copy, clips
        except BaseException:
            for action in made:
                remove_action(action)
            raise


def apply_clips(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    added: Sequence[NewBone],
    clips: dict[Clip | None, Clip],
) -> list[str]:
    """Add the bones, and assign the new action for the armature's present one, if there is one; the others stay in the
    file. Returns a note."""
    present = armature.animation_data.action if armature.animation_data is not None else None
    # Two strips may play different frames of one action, which then has two copies.
    new = [(old.action, clip.action) for old, clip in clips.items() if old is not None and clip.action != old.action]
    own = next((action for old, action in new if old == present), None)
    for _, action in new:
        action.use_fake_user = action != own
    if own is not None:
        apply_motion(context, armature, added, own)
    else:
        add_new_bones(context, armature, added)
    names = ", ".join(f'"{action.name}"' for _, action in new[:3])
    return [f"keys of the helpers in {counted(len(new), 'new action')}: {names}{' and others' if len(new) > 3 else ''}"]
