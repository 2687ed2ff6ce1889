# SPDX-License-Identifier: GPL-3.0-or-later
"""The sliders of a face as actions: for engines that read poses from a timeline or from clips, and as pose assets."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.actions import curve_container, new_action, property_path, write_channels
from ...blender.animation.clips import playing_alone
from ...blender.animation.kept_values import animated_values_kept
from ...blender.clip_tracks import keep_on_track
from ...blender.data_blocks import with_ending
from ...blender.figures import Figure, Result
from .sliders import face_rig

NEUTRAL = "Neutral"
# On the actions made here: of which kind they are, and of which armature.
MARK = "skinning_slider_poses"
_GROUP = "Sliders"


@dataclass(frozen=True)
class Poses(Result):
    """What was made. actions: their names."""

    name: str
    actions: tuple[str, ...]
    pose_count: int

    def figures(self) -> list[Figure]:
        return [Figure("Object", self.name), Figure("Poses", self.pose_count), Figure("Actions", len(self.actions))]


def add_poses(context: bpy.types.Context, active: bpy.types.Object | None, kind: str) -> Poses:
    """Make actions of ``kind`` (settings.POSE_KINDS), each slider at 1 in one pose; earlier ones of it are replaced.

    The armature goes on playing what it played: those for engines are in muted tracks of it. Raises BadScene.
    """
    armature, names = face_rig(context, active)
    # New tracks, and the action that is assigned again, would put back a pose that is not keyed.
    with animated_values_kept(context, [armature]):
        made = _made(armature, names, kind)
    # And the neutral pose.
    return Poses(armature.name, tuple(action.name for action in made), len(names) + 1)


def _made(armature: bpy.types.Object, names: Sequence[str], kind: str) -> list[bpy.types.Action]:
    """The new actions, on the tracks that they need."""
    mark = f"{kind} {armature.name}"
    _remove_earlier(armature, mark)
    values = np.concatenate([np.zeros((1, len(names))), np.eye(len(names))])
    titles = [_free_title(NEUTRAL, names), *names]
    # So that the tracks stay.
    armature.animation_data_create()
    made = []
    with playing_alone(armature):
        if kind == "TIMELINE":
            action = _pose_action(armature, with_ending(armature.name, "poses"), mark, names, values)
            for frame, title in enumerate(titles):
                action.pose_markers.new(title).frame = frame
            keep_on_track(armature, action.name)
            return [action]
        for title, row in zip(titles, values, strict=True):
            asset = kind == "ASSETS"
            name = with_ending(title, "pose") if asset else title
            action = _pose_action(armature, name, mark, names, row[None], asset and row.any())
            if asset:
                action.asset_mark()
                action.asset_data.description = f"{title}, a slider of {armature.name}"
            else:
                # The track has the plain name, where another face's action has taken the action's.
                keep_on_track(armature, title)
            made.append(action)
    return made


def _pose_action(
    armature: bpy.types.Object, name: str, mark: str, names: Sequence[str], values: np.ndarray, only_set: bool = False
) -> bpy.types.Action:
    """An action that sets the sliders to ``values`` (F, S) from frame 0. only_set: those that are not at 0."""
    action = new_action(armature, name)
    action[MARK] = mark
    action.use_fake_user = True
    container = curve_container(armature)
    for slider, column in zip(names, values.T, strict=True):
        if not only_set or column.any():
            write_channels(container, property_path(slider), column[:, None], np.arange(len(column)), _GROUP)
    return action


def _remove_earlier(armature: bpy.types.Object, mark: str) -> None:
    earlier = [action for action in bpy.data.actions if action.get(MARK) == mark and action.library is None]
    tracks = armature.animation_data.nla_tracks if armature.animation_data is not None else []
    for track in [track for track in tracks if any(strip.action in earlier for strip in track.strips)]:
        tracks.remove(track)
    bpy.data.batch_remove(earlier)


def _free_title(title: str, names: Sequence[str]) -> str:
    """A title for the neutral that no slider has."""
    number = 1
    while title in names:
        title, number = f"{NEUTRAL}.{number:03}", number + 1
    return title
