# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips of a data-block: actions on muted NLA tracks, from which Blender's exporters take them, and of which one is the
active action."""

from collections.abc import Sequence

import bpy


def players(rig: bpy.types.Object, meshes: Sequence[bpy.types.Object]) -> list[bpy.types.ID]:
    """The data-blocks that play the clips of a rig: the rig itself and its meshes' shape keys, where animated."""
    owners = rig, *(ob.data.shape_keys for ob in meshes)
    return [owner for owner in owners if owner is not None and owner.animation_data is not None]


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


def play_clip(rig: bpy.types.Object, meshes: Sequence[bpy.types.Object], name: str) -> None:
    """Make the actions on the tracks called ``name`` the active ones of the rig and its meshes' shape keys."""
    for owner in players(rig, meshes):
        for strip in track_strips(owner, {name})[:1]:
            owner.animation_data.action = strip.action
            if hasattr(strip, "action_slot"):
                owner.animation_data.action_slot = strip.action_slot


def track_strips(owner: bpy.types.ID, names: set[str]) -> list[bpy.types.NlaStrip]:
    """The strips with an action on the tracks called ``names``."""
    tracks = owner.animation_data.nla_tracks if owner.animation_data is not None else ()
    return [strip for track in tracks if track.name in names for strip in track.strips if strip.action is not None]
