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


def leave_clip(rig: bpy.types.Object, mesh: bpy.types.Object) -> None:
    """Let nothing play, with all bones at rest and no shape key on, as a new clip begins."""
    for owner in players(rig, [mesh]):
        owner.animation_data.action = None
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    keys = mesh.data.shape_keys
    for block in keys.key_blocks if keys is not None else ():
        block.value = 0.0


def put_on_track(rig: bpy.types.Object, mesh: bpy.types.Object, name: str) -> None:
    """Call the active action of the rig like its clip, and keep it on the track of that name, in place of what played
    there on the rig and on the mesh's shape keys."""
    for owner in players(rig, [mesh]):
        tracks = owner.animation_data.nla_tracks
        for track in [track for track in tracks if track.name == name]:
            tracks.remove(track)
    earlier, action = bpy.data.actions.get(name), rig.animation_data.action
    if earlier is not None and earlier != action:
        earlier.name = f"{name}_before"
    action.name = name
    keep_on_track(rig, name)


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
