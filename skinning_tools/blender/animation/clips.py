# SPDX-License-Identifier: GPL-3.0-or-later
"""The clips of an armature: its actions, each with its own frames, and playing one without changing the user's.

A clip is an action, in Blender 4.4 and newer one of its slots, with keys for pose bones of the armature. It plays
alone, without NLA, from its first to its last key or over its manual frame range.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import bpy

from ..actions import bone_of, slot_curves, strip_slot
from ..clip_tracks import track_strips
from ..data_blocks import is_alive
from ..preconditions import unmet
from .kept_values import animated_values_kept

# On an action of made poses, which is no motion of the character.
MADE_POSES = "skinning_made_poses"
# On an action of a solve: the earlier one, of which it is a copy with new keys.
EARLIER = "skinning_earlier_action"
# Beside it: the name that the earlier one had then, if it has a fake user from the solve alone, and not from the user.
EARLIER_NAME = "skinning_earlier_name"
# Endings that solves append to its name.
_ENDINGS = re.compile(r"(_solved|_helpers)+(\.\d+)?$")
# Keys this close to a whole frame are on it.
_ON_FRAME = 1e-3
# How a data-block plays its action, beside the action itself.
_PLAYING = "action_blend_type", "action_extrapolation", "action_influence", "use_nla"
_CHANNELS = (
    ("location", (0.0, 0.0, 0.0)),
    ("rotation_quaternion", (1.0, 0.0, 0.0, 0.0)),
    ("rotation_euler", (0.0, 0.0, 0.0)),
    ("rotation_axis_angle", (0.0, 0.0, 1.0, 0.0)),
    ("scale", (1.0, 1.0, 1.0)),
)


@dataclass(frozen=True)
class Clip:
    """An action of an armature. slot: the handle of the slot that is meant; 0 in Blender before 4.4. numbers: its
    frames; bones: the pose bones that have keys."""

    action: bpy.types.Action
    slot: int
    numbers: range
    bones: frozenset[str]

    @property
    def name(self) -> str:
        return self.action.name


def clips_of(armature: bpy.types.Object, step: int = 1) -> list[Clip]:
    """All clips of the armature in the file, by name, but for made poses. Actions that only other armatures use are
    theirs; of those that solves have copied, only the copies count, unless the armature plays the earlier ones."""
    every = (clip_of(armature, action, step) for action in bpy.data.actions if MADE_POSES not in action)
    users = _armatures_by_action()
    found = [
        clip
        for clip in every
        if clip is not None and (armature in users.get(clip.action, [armature]) or _is_twin(armature, users, clip))
    ]
    earlier = [clip.action.get(EARLIER) for clip in found]
    return [clip for clip in found if clip.action not in earlier or armature in users.get(clip.action, [])]


def without_endings(name: str) -> str:
    """The name of the action from which solves have made the one of that name."""
    return _ENDINGS.sub("", name)


def earlier_actions(action: bpy.types.Action | None) -> list[bpy.types.Action]:
    """The actions that solves have replaced by this one and kept in the file, the latest first, but for those that the
    user has renamed since, and for all before one that the user has kept."""
    seen: list[bpy.types.Action] = []
    found: list[bpy.types.Action] = []
    while action is not None and (name := action.get(EARLIER_NAME)):
        action = action.get(EARLIER)
        if not isinstance(action, bpy.types.Action) or action in seen:
            break
        seen.append(action)
        if action.name == name:
            found.append(action)
    return found


def clip_of(armature: bpy.types.Object, action: bpy.types.Action, step: int = 1, slot: int = 0) -> Clip | None:
    """The action as a clip of the armature; None if it has no keys for its bones, or more for bones of others. slot:
    the handle of the only slot that counts; 0 for all."""
    best: Clip | None = None
    for handle, curves in _curves_by_slot(armature, action):
        if slot not in (0, handle):
            continue
        named = {name for curve in curves if (name := bone_of(curve.data_path)) is not None}
        own = frozenset(name for name in named if name in armature.pose.bones)
        if 2 * len(own) < len(named) or not own or (best is not None and len(own) <= len(best.bones)):
            continue
        best = Clip(action, handle, _numbers(action, curves, step), own)
    return best


def _curves_by_slot(armature: bpy.types.Object, action: bpy.types.Action) -> Iterator[tuple[int, list]]:
    """Handles of slots, those meant for the armature first, and their curves."""
    if not hasattr(action, "slots"):
        yield 0, list(action.fcurves)
        return
    own = f"OB{armature.name}"
    fitting = [slot for slot in action.slots if slot.target_id_type in ("OBJECT", "UNSPECIFIED")]
    for slot in sorted(fitting, key=lambda slot: slot.identifier != own):
        yield slot.handle, slot_curves(action, slot)


def _numbers(action: bpy.types.Action, curves: Sequence, step: int) -> range:
    if action.use_frame_range:
        start, end = action.frame_start, action.frame_end
    else:
        ranges = [tuple(curve.range()) for curve in curves]
        start, end = min(pair[0] for pair in ranges), max(pair[1] for pair in ranges)
    first, last = math.ceil(start - _ON_FRAME), math.floor(end + _ON_FRAME)
    # Keys between two frames alone: the nearest frame shows them best.
    return range(first, last + 1, step) if first <= last else range(round(start), round(start) + 1)


def _armatures_by_action() -> dict[bpy.types.Action, list[bpy.types.Object]]:
    """The armature objects that use each action, now or in their NLA."""
    users: dict[bpy.types.Action, list[bpy.types.Object]] = {}
    for ob in bpy.data.objects:
        if ob.type != "ARMATURE" or ob.animation_data is None:
            continue
        strips = (strip.action for track in ob.animation_data.nla_tracks for strip in track.strips)
        for action in {ob.animation_data.action, *strips} - {None}:
            users.setdefault(action, []).append(ob)
    return users


def _is_twin(armature: bpy.types.Object, users: dict, clip: Clip) -> bool:
    """Whether an armature with the same bones' data uses the clip."""
    return any(other.data == armature.data for other in users[clip.action])


def strip_clips(armature: bpy.types.Object, step: int = 1) -> tuple[list[Clip], list[str]]:
    """The actions of the armature's NLA strips, muted or not, each over the strip's part of it; and the names of strips
    that do not stand alone, as they are mixed with others."""
    found: dict[tuple, Clip] = {}
    mixed = []
    animation = armature.animation_data
    for track in animation.nla_tracks if animation is not None else ():
        for strip in track.strips:
            if strip.type != "CLIP" or strip.action is None:
                continue
            if strip.blend_type != "REPLACE":
                mixed.append(strip.name)
                continue
            clip = clip_of(armature, strip.action, slot=strip_slot(strip))
            if clip is None:
                continue
            first = math.ceil(strip.action_frame_start - _ON_FRAME)
            last = max(first, math.floor(strip.action_frame_end + _ON_FRAME))
            numbers = range(first, last + 1, step)
            found[clip.action, clip.slot, numbers] = Clip(clip.action, clip.slot, numbers, clip.bones)
    return list(found.values()), mixed


@dataclass(frozen=True)
class Companion:
    """What another data-block plays during a clip."""

    owner: bpy.types.ID
    action: bpy.types.Action
    slot: int


def companions_of(armature: bpy.types.Object, clip: Clip, others: Sequence[bpy.types.ID]) -> list[Companion]:
    """What ``others`` play during the clip, those that have something for it.

    The clip itself if the data-block now has the same action and slot as the armature; else the slot of the same action
    that is meant for it; else the action in its NLA track that is named like the clip, or like the clip's track.
    """
    found = []
    animation = armature.animation_data
    tracks = {clip.name}
    if animation is not None:
        tracks |= {
            track.name for track in animation.nla_tracks if any(strip.action == clip.action for strip in track.strips)
        }
    for owner in others:
        own = owner.animation_data
        if own is None:
            continue
        if animation is not None and own.action is not None and _plays_alike(own, animation):
            found.append(Companion(owner, clip.action, clip.slot))
            continue
        slot = _slot_for(owner, clip)
        if slot:
            found.append(Companion(owner, clip.action, slot))
            continue
        strips = track_strips(owner, tracks)
        if strips:
            found.append(Companion(owner, strips[0].action, strip_slot(strips[0])))
    return found


def _plays_alike(first: bpy.types.AnimData, second: bpy.types.AnimData) -> bool:
    slots = [getattr(each, "action_slot", None) for each in (first, second)]
    return first.action == second.action and slots[0] == slots[1]


def _slot_for(owner: bpy.types.ID, clip: Clip) -> int:
    """The handle of the slot of the clip's action that is meant for the data-block; 0 without one."""
    last = getattr(owner.animation_data, "last_slot_identifier", "")
    for slot in getattr(clip.action, "slots", ()):
        meant = slot.name_display == owner.name or slot.identifier == last
        if slot.handle != clip.slot and slot.target_id_type == owner.id_type and meant:
            return int(slot.handle)
    return 0


@contextmanager
def playing(
    armature: bpy.types.Object, clip: Clip | None, companions: Sequence[Companion] = (), reset: Sequence[str] = ()
) -> Iterator[None]:
    """Context in which the armature plays the clip, None for no action at all, and ``companions`` what they have for
    it; all as before at the end. The user sees it if the body yields to Blender.

    reset: bones without keys in the clip that must not keep what another clip left in them; they have no transform.
    """
    with ExitStack() as undo:
        # Blender plays an action again, also over an unkeyed pose, once it is assigned; of a copy nobody sees that.
        if bpy.context.view_layer.objects.get(armature.name) == armature:
            owners = [armature, *(each.owner for each in companions)]
            undo.enter_context(animated_values_kept(bpy.context, owners))
        undo.enter_context(_channels_kept(armature))
        undo.enter_context(playing_alone(armature, clip.action if clip else None, clip.slot if clip else 0))
        for each in companions:
            undo.enter_context(playing_alone(each.owner, each.action, each.slot))
        for name in reset:
            if clip is None or name not in clip.bones:
                for channel, rest in _CHANNELS:
                    setattr(armature.pose.bones[name], channel, rest)
        yield


@contextmanager
def _channels_kept(armature: bpy.types.Object) -> Iterator[None]:
    """Restore the transform channels of all pose bones."""
    kept = {name: _read(armature, name, len(rest)) for name, rest in _CHANNELS}
    try:
        yield
    finally:
        if is_alive(armature):
            for name, values in kept.items():
                if len(values) == len(armature.pose.bones) * len(dict(_CHANNELS)[name]):
                    armature.pose.bones.foreach_set(name, values)


def _read(armature: bpy.types.Object, name: str, width: int) -> list[float]:
    values = [0.0] * (len(armature.pose.bones) * width)
    armature.pose.bones.foreach_get(name, values)
    return values


@contextmanager
def playing_alone(owner: bpy.types.ID, action: bpy.types.Action | None = None, slot: int = 0) -> Iterator[None]:
    """Context in which the data-block plays that action alone, or what is assigned inside; it has its own again
    afterwards. slot: the handle, 0 for the first that fits."""
    if action is not None and not is_alive(action):
        raise unmet("REMOVED", object="action of a clip")
    had = owner.animation_data is not None
    animation = owner.animation_data or owner.animation_data_create()
    before = {name: getattr(animation, name) for name in _PLAYING}
    own, own_slot = animation.action, getattr(animation, "action_slot", None)
    last = getattr(animation, "last_slot_identifier", None)
    try:
        animation.use_nla = False
        animation.action = action
        if slot and action is not None:
            animation.action_slot = next(each for each in action.slots if each.handle == slot)
        animation.action_blend_type, animation.action_influence = "REPLACE", 1.0
        yield
    finally:
        if is_alive(owner):
            _restore(owner, had, before, own, own_slot, last)


def _restore(owner: bpy.types.ID, had: bool, before: dict, own: Any, own_slot: Any, last: str | None) -> None:
    animation = owner.animation_data
    if animation is None:
        return
    animation.action = own if own is not None and is_alive(own) else None
    if hasattr(animation, "action_slot"):
        if animation.action is not None and animation.action_slot != own_slot:
            animation.action_slot = own_slot
        animation.last_slot_identifier = last
    for name, value in before.items():
        setattr(animation, name, value)
    if not had:
        owner.animation_data_clear()
