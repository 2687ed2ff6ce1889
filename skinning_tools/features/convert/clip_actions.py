# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions of a rig's clips: one for each, kept on muted NLA tracks, of which one plays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy

from ...blender import actions, background
from ...blender.clip_tracks import keep_on_track, play_clip, players
from ...blender.object_transform import is_transform
from ...blender.residual_keys import assign_residual_action, key_residual_values
from .clips import Clip
from .rig_motion import write_motion
from .rig_writer import Rig

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition


def add_clips(
    context: bpy.types.Context, rig: Rig, clips: Sequence[Clip], decomposition: "Decomposition", made: list
) -> background.Steps[None]:
    """Generator: write the motion of all clips but the first, which ``rig`` plays already, and at the end again.
    Yields (fraction, stage).

    The armature stays where the first clip begins. The actions made are appended to ``made``.
    """
    first_time = actions.key_times(context.scene, clips[0].frame_numbers)[0]
    _keep(rig, clips[0].name, rig.action)
    # In the ranges of all clips.
    residual = decomposition.residual and decomposition.residual.from_zero_to_one()[0]
    held = [curve for curve in actions.existing_curves(rig.armature) if is_transform(curve.data_path)]
    for number, clip in enumerate(clips[1:]):
        times = actions.key_times(context.scene, clip.frame_numbers)
        action = actions.new_action(rig.armature, clip.name)
        made.append(action)
        writing = write_motion(rig.armature, rig.bones, clip.part_of(decomposition), times)
        yield from background.part_of(writing, number / (len(clips) - 1), (number + 1) / (len(clips) - 1))
        container = actions.curve_container(rig.armature)
        for curve in held:
            actions.hold_curve(container, curve, times[0], first_time)
        if residual is not None:
            shape_action = assign_residual_action(rig.objects, action, f"{clip.name}_shapes")
            made += [shape_action] if shape_action != action else []
            key_residual_values(rig.object, rig.shape_names, residual.values[clip.rows], times)
        _keep(rig, clip.name, action)
    play_clip(rig.armature, rig.objects, clips[0].name)


def _keep(rig: Rig, name: str, action: bpy.types.Action) -> None:
    """Keep the actions that the rig plays now as the clip ``name``; ``action`` of the armature gets their range."""
    action.use_frame_range = True
    action.frame_start, action.frame_end = action.curve_frame_range
    for owner in players(rig.armature, rig.objects):
        keep_on_track(owner, name)
