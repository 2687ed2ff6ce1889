# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips of a data-block: actions on muted NLA tracks, from which Blender's exporters take them, and of which one is the
active action."""

import bpy


def keep_on_track(owner: bpy.types.ID, name: str) -> None:
    """Put the active action of ``owner``, with its slot, on a new muted NLA track called ``name``."""
    animation = owner.animation_data
    action = animation.action
    track = animation.nla_tracks.new()
    track.name = name
    strip = track.strips.new(name, round(action.frame_range[0]), action)
    if hasattr(action, "slots"):
        strip.action_slot = animation.action_slot
    # Blender makes room for whole frames only.
    strip.frame_start, strip.frame_end = action.frame_range
    track.mute = True


def play_track(owner: bpy.types.ID, name: str) -> bool:
    """Make the action on the track called ``name`` the active one of ``owner``; False if there is no such track."""
    animation = owner.animation_data
    strips = track_strips(owner, {name})
    if not strips:
        return False
    animation.action = strips[0].action
    if hasattr(strips[0], "action_slot"):
        animation.action_slot = strips[0].action_slot
    return True


def track_strips(owner: bpy.types.ID, names: set[str]) -> list[bpy.types.NlaStrip]:
    """The strips with an action on the tracks called ``names``."""
    tracks = owner.animation_data.nla_tracks if owner.animation_data is not None else ()
    return [strip for track in tracks if track.name in names for strip in track.strips if strip.action is not None]
