# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes on an exported file: what of the character it does not have, and where it does not play like the scene."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender.animation.clips import clip_of
from ...blender.error_display import shows_colors
from ...blender.lengths import length_text
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_modifier, bone_names
from ...blender.vertex_groups import read_weights
from ...blender.wording import counted, listed, vertices_text
from .comparison import Comparison
from .engines import FORMATS, Engine, Format

# Weights that the glTF exporter leaves out.
_TRACE = 1e-4
# The part of the diagonal from which a distance at the frames means that something is missing. USD loses a third of it.
_WRONG = 1e-3
# The part of the diagonal from which a distance half-way between frames is worth a note.
_FAR = 5e-3


def distance_text(scene: bpy.types.Scene, value: float) -> str:
    """A distance to two digits, rounded up, and not less than a micrometer, below which there is no unit."""
    value = max(value, 1e-6 / scene.unit_settings.scale_length)
    step = 10.0 ** (np.floor(np.log10(value)) - 1)
    value = float(np.ceil(value / step - 1e-6) * step)
    return length_text(scene, value, adaptive=True)


def _clips_left_out(armature: bpy.types.Object) -> list[str]:
    """The names of the muted tracks whose actions the armature does not play now."""
    animation = armature.animation_data
    tracks = animation.nla_tracks if animation is not None else ()
    return [
        track.name
        for track in tracks
        if track.mute and any(strip.action not in (None, animation.action) for strip in track.strips)
    ]


def _remedy_for_clips(armature: bpy.types.Object, all_clips: bool) -> str:
    """What to do where a file that can hold several clips has one."""
    tracks = armature.animation_data.nla_tracks
    strips = [strip for track in tracks for strip in track.strips if track.mute and strip.action is not None]
    if not all_clips:
        return "switch All Clips on"
    if not any(clip_of(armature, strip.action) for strip in strips):
        # Such as the poses of a face's sliders.
        return "use Blender's own exporter with the animation mode NLA Tracks: their actions move sliders, not bones"
    if armature.animation_data.action is None:
        return "choose one of them in the Action Editor"
    if any(not track.mute and not strip.mute for track in tracks for strip in track.strips):
        return "mute the other NLA tracks"
    return "bake shape keys with drivers to keyframes from 0 to 1"


def notes_on(
    armature: bpy.types.Object,
    meshes: Sequence[bpy.types.Object],
    engine: Engine,
    file_format: Format,
    all_clips: bool,
    with_clips: bool,
) -> list[str]:
    """What the character has that the file or the engine does not play."""
    notes = []
    left_out = [] if with_clips else _clips_left_out(armature)
    if left_out:
        if file_format.clips:
            remedy = _remedy_for_clips(armature, all_clips)
        else:
            remedy = f"{file_format.label} holds one animation: choose glTF or FBX"
        notes.append(
            f"the file has the present animation alone, without the clips on muted NLA tracks: {listed(left_out)}. "
            f"For all of them, {remedy}"
        )
    for ob in meshes:
        label = object_label(ob)
        weights = read_weights(ob, bone_names(ob, armature))[1]
        over = int(((weights > _TRACE).sum(axis=1) > engine.influences).sum())
        if over:
            notes.append(
                f"{vertices_text(over)} of {label} with more than {engine.influences} influences, of which "
                f"{engine.label} plays the largest: solve for that many, or use Limit Total of the Weights menu"
            )
        lost = [each.name for each in ob.modifiers if each.show_viewport and each != armature_modifier(ob)]
        if lost:
            notes.append(f"modifiers of {label} are not in the file: {', '.join(lost)}")
        if shows_colors(ob):
            notes.append(f"the colors that {label} shows are in the file: switch Show Error and the Weight View off")
    return notes


def notes_on_comparison(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    compared: Comparison,
    engine: Engine,
    file_format: Format,
) -> list[str]:
    notes = []
    if compared.largest > _WRONG * compared.diagonal:
        if file_format == FORMATS["GLTF"] and armature.matrix_world.is_negative:
            notes.append(
                f"{object_label(armature)} is mirrored, which glTF files play but Blender's importer does not: this "
                "cannot show whether the file is right. Scales above 0 avoid it"
            )
        else:
            notes.append("the file does not play as the scene does: the manual's page on engines has the reasons")
    if compared.missing:
        notes.append(f"{vertices_text(compared.missing)} missing in the file")
    if engine.apart and compared.sheared:
        notes.append(
            f"{counted(len(compared.sheared), 'bone')} with shear, as Affine bones have it; an engine that keeps scale "
            "apart, such as Unreal, cannot play that: convert with Scaled bones"
        )
    if compared.half_way > max(_FAR * compared.diagonal, 2 * compared.largest):
        distance = distance_text(context.scene, compared.half_way)
        if file_format == FORMATS["GLTF"]:
            notes.append(
                f"half-way between two frames it is up to {distance} away: the motion is fast for the frame rate. A "
                "higher frame rate avoids it"
            )
        else:
            notes.append(
                f"half-way between two frames it is up to {distance} away: the motion is fast for the frame rate, or "
                "Scaled or Affine bones pass through zero scale. glTF or Rigid bones avoid that"
            )
    return notes
