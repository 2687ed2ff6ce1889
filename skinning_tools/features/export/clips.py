# SPDX-License-Identifier: GPL-3.0-or-later
"""The clips of a character that one file holds side by side: its actions on muted NLA tracks, and the active one."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import bpy

from ...blender.animation.clips import Clip, Companion, clip_of, companions_of, playing
from ...blender.animation.used_data import dependencies
from ...blender.clip_tracks import track_strips
from ...core.errors import BadScene


@dataclass(frozen=True, eq=False)
class FileClip:
    """name: in the file; clip: the armature's part; companions: what else plays during it, such as shape keys."""

    name: str
    clip: Clip
    companions: Sequence[Companion]


def file_clips(armature: bpy.types.Object, meshes: Sequence[bpy.types.Object]) -> list[FileClip]:
    """The clips to write; none unless there are several, and the armature plays an action alone."""
    animation = armature.animation_data
    if animation is None or animation.action is None:
        return []
    tracks = [(track, [strip for strip in track.strips if not strip.mute]) for track in animation.nla_tracks]
    if any(strips and not track.mute for track, strips in tracks):
        return []
    found: dict[bpy.types.Action, FileClip] = {}
    others = [each for each in dependencies(*meshes) if each != armature and getattr(each, "animation_data", None)]
    single = [(track.name, strips[0].action) for track, strips in tracks if len(strips) == 1]
    for name, action in (*single, (animation.action.name, animation.action)):
        clip = clip_of(armature, action) if action is not None and action not in found else None
        if clip is not None:
            found[action] = FileClip(name, clip, companions_of(armature, clip, others))
    return list(found.values()) if len(found) > 1 else []


@contextmanager
def played(armature: bpy.types.Object, each: FileClip) -> Iterator[None]:
    """Context in which the armature and what follows it play the clip; bones without keys in it are at rest."""
    with playing(armature, each.clip, each.companions, _bones(armature)):
        yield


def _bones(armature: bpy.types.Object) -> list[str]:
    return [bone.name for bone in armature.pose.bones]


@contextmanager
def strips_in_turn(armature: bpy.types.Object, clips: Sequence[FileClip], start: int) -> Iterator[None]:
    """Context in which strips play the clips one after the other from the frame ``start`` on, each named after its
    clip: from strips at one time, the FBX exporter would take the shape keys of the last for all."""
    owners = dict.fromkeys([armature, *(each.owner for clip in clips for each in clip.companions)])
    with ExitStack() as undo:
        undo.enter_context(playing(armature, None, reset=_bones(armature)))
        for owner in owners:
            animation = owner.animation_data
            undo.callback(_assign, owner, animation.action, getattr(animation, "action_slot", None))
            animation.action = None
            undo.callback(setattr, animation, "use_nla", animation.use_nla)
            animation.use_nla = True
            for strip in [strip for track in animation.nla_tracks for strip in track.strips]:
                # Names of strips are unique in a data-block, and those in the file have to be the clips' own.
                undo.callback(setattr, strip, "name", strip.name)
                strip.name = f"{strip.name} before"
        for each in clips:
            numbers = each.clip.numbers
            for player in (Companion(armature, each.clip.action, each.clip.slot), *each.companions):
                undo.enter_context(_strip(player, each.name, numbers, start))
            start += numbers[-1] - numbers[0] + 2
        yield


def _assign(owner: bpy.types.ID, action: bpy.types.Action | None, slot: Any) -> None:
    owner.animation_data.action = action
    if slot is not None:
        owner.animation_data.action_slot = slot


@contextmanager
def _strip(player: Companion, name: str, numbers: range, start: int) -> Iterator[None]:
    """Context with a strip, on a track of its own, that plays the frames ``numbers`` of the action from ``start`` on,
    and before and after nothing."""
    tracks = player.owner.animation_data.nla_tracks
    track = tracks.new()
    try:
        strip = track.strips.new(name, start, player.action)
        if player.slot:
            strip.action_slot = next(slot for slot in player.action.slots if slot.handle == player.slot)
        strip.action_frame_start, strip.action_frame_end = numbers[0], numbers[-1]
        strip.frame_start, strip.frame_end = start, start + max(numbers[-1] - numbers[0], 1)
        strip.extrapolation, strip.name = "NOTHING", name
        yield
    finally:
        tracks.remove(track)


def play_read(rig: bpy.types.Object, meshes: Sequence[bpy.types.Object], name: str) -> float:
    """Let what an importer has read play the clip of that name; returns the frame at which it begins there. Raises
    BadScene if it is missing."""
    begin = None
    for owner in [rig, *(ob.data.shape_keys for ob in meshes if ob.data.shape_keys is not None)]:
        animation = owner.animation_data
        found = _read_action(owner, name) if animation is not None else None
        if found is None:
            continue
        action, slot = found
        animation.action = action
        if slot is not None:
            animation.action_slot = slot
        for track in animation.nla_tracks:
            track.mute = True
        begin = action.frame_range[0] if owner == rig else begin
    if begin is None:
        raise BadScene(f'Blender\'s importer does not find the clip "{name}" in the file')
    return float(begin)


def _read_action(owner: bpy.types.ID, name: str) -> tuple[bpy.types.Action, Any] | None:
    """The action, and its slot if it has any, that the importer has put on a track of that name (glTF), or called
    "Owner|Clip" (FBX)."""
    strips = track_strips(owner, {name})
    if strips:
        return strips[0].action, getattr(strips[0], "action_slot", None)
    form = re.compile(rf"{re.escape(owner.name)}\|{re.escape(name)}(\.\d{{3}})?")
    action = next((each for each in bpy.data.actions if form.fullmatch(each.name)), None)
    return None if action is None else (action, next(iter(getattr(action, "slots", ())), None))
