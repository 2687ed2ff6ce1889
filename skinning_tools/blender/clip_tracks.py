# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips of a data-block: actions on muted NLA tracks, from which Blender's exporters take them, and of which one is the
active action."""

from collections.abc import Sequence

import bpy

from . import actions
from .actions import strip_containers
from .data_blocks import joined_name
from .residual_keys import OFFSET, assign_residual_action, key_no_residuals, key_offset, residual_names


def track_name(name: str) -> str:
    """The name of a clip's track: that of the clip, which may be longer since Blender 5.0, as far as there is room."""
    return joined_name(name, "")


def players(rig: bpy.types.Object, meshes: Sequence[bpy.types.Object]) -> list[bpy.types.ID]:
    """The data-blocks that play the clips of a rig: the rig itself and its meshes' shape keys, where animated."""
    owners = rig, *(ob.data.shape_keys for ob in meshes)
    return [owner for owner in owners if owner is not None and owner.animation_data is not None]


def keep_on_track(owner: bpy.types.ID, name: str) -> None:
    """Put the active action of ``owner``, with its slot, on a new muted NLA track for the clip ``name``."""
    animation = owner.animation_data
    action = animation.action
    track = animation.nla_tracks.new()
    track.name = track_name(name)
    strip = track.strips.new(track.name, round(action.frame_range[0]), action)
    if hasattr(action, "slots"):
        strip.action_slot = animation.action_slot
    # Blender makes room for whole frames only.
    strip.frame_start, strip.frame_end = action.frame_range
    track.mute = True


def leave_clip(rig: bpy.types.Object, mesh: bpy.types.Object) -> None:
    """Let nothing play, as a new clip begins: the bones and shape keys that clips move are at rest. What has played
    stays in the file, and still has the offset of residual shapes, which is turned off here."""
    paths = set()
    for owner in players(rig, [mesh]):
        animation = owner.animation_data
        strips = [strip for track in animation.nla_tracks for strip in track.strips]
        containers = [*actions.existing_containers(owner), *(bag for each in strips for bag in strip_containers(each))]
        for container in containers:
            own = {curve.data_path for curve in container.fcurves}
            key_offset(mesh, container, own)
            paths |= own
        action = animation.action
        if action is not None and action.library is None and all(each.action != action for each in strips):
            action.use_fake_user = True
        animation.action = None
    for bone in rig.pose.bones:
        if any(path.startswith(actions.bone_path(bone.name)) for path in paths):
            bone.matrix_basis.identity()
    keys = mesh.data.shape_keys
    for block in keys.key_blocks if keys is not None else ():
        if block.name == OFFSET or actions.value_path(block.name) in paths:
            block.value = 0.0


def put_on_track(rig: bpy.types.Object, mesh: bpy.types.Object, name: str) -> None:
    """Call the active action of the rig like its clip, and keep it on the track of that name, in place of what played
    there on the rig and on the mesh's shape keys, of which residual shapes are off in this clip."""
    for owner in players(rig, [mesh]):
        tracks = owner.animation_data.nla_tracks
        for track in [track for track in tracks if track.name == track_name(name)]:
            tracks.remove(track)
    earlier, action = bpy.data.actions.get((name, None)), rig.animation_data.action
    if earlier is not None and earlier != action:
        earlier.name = f"{name}_before"
    action.name = name
    keep_on_track(rig, name)
    if residual_names(mesh):
        assign_residual_action([mesh], action, f"{name}_shapes")
        key_no_residuals(mesh, action.frame_range[0])
        keep_on_track(mesh.data.shape_keys, name)


def play_clip(rig: bpy.types.Object, meshes: Sequence[bpy.types.Object], name: str) -> None:
    """Make the actions on the tracks called ``name`` the active ones of the rig and its meshes' shape keys."""
    for owner in players(rig, meshes):
        for strip in track_strips(owner, {name})[:1]:
            owner.animation_data.action = strip.action
            if hasattr(strip, "action_slot"):
                owner.animation_data.action_slot = strip.action_slot


def track_strips(owner: bpy.types.ID, names: set[str]) -> list[bpy.types.NlaStrip]:
    """The strips with an action on the tracks of the clips ``names``."""
    cut = set(map(track_name, names))
    tracks = owner.animation_data.nla_tracks if owner.animation_data is not None else ()
    return [strip for track in tracks if track.name in cut for strip in track.strips if strip.action is not None]
