# SPDX-License-Identifier: GPL-3.0-or-later
"""What Make Root cannot carry over to bones with other axes: motion without an end, mixed strips, bends, references."""

from collections.abc import Collection, Sequence

import bpy

from ...blender import actions
from ...blender.animation.clips import Clip, clip_of
from ...blender.helper_bones.references import find_references
from ...blender.wording import listed
from .kept_pose import containers_of


def is_endless(clip: Clip, names: Collection[str]) -> bool:
    """Whether bones ``names`` go on before the first key of the clip or after the last, as by a Cycles modifier."""
    curves = (curve for container in containers_of(clip) for curve in container.fcurves)
    own = [curve for curve in curves if actions.bone_of(curve.data_path) in names]
    return any(
        curve.extrapolation == "LINEAR" or any(not modifier.mute for modifier in curve.modifiers) for curve in own
    )


def endless_notes(clips: Sequence[Clip]) -> list[str]:
    """A note on the ``clips`` that were endless, each over the frames that have keys now."""
    told = [f"{clip.name} ({clip.numbers[0]} to {clip.numbers[-1]})" for clip in clips]
    if not told:
        return []
    return [
        "curves with modifiers or linear extrapolation were baked over the scene's frames, beyond which the reversed "
        f"bones stand still now: {listed(told)}"
    ]


def mixed_notes(armature: bpy.types.Object, names: Collection[str]) -> list[str]:
    """A note on NLA strips that are mixed with others where they move the bones ``names``, which have not been reversed
    yet."""
    animation = armature.animation_data
    strips = actions.playing_strips(animation) if animation is not None else []
    clips = [clip_of(armature, strip.action, slot=actions.strip_slot(strip)) for strip in strips]
    moving = [(strip, clip.bones & set(names)) for strip, clip in zip(strips, clips, strict=True) if clip is not None]
    active = any(actions.bone_of(curve.data_path) in names for curve in actions.existing_curves(armature))
    several = sum(bool(bones) for _, bones in moving) + active > 1
    found = [
        strip.name for strip, bones in moving if bones and (_blends(strip) or (several and len(bones) < len(names)))
    ]
    if not found:
        return []
    return [
        f"NLA strips that are mixed with others may move otherwise: {listed(found)}. If they do, undo, and bake them "
        "into one action first (Pose > Animation > Bake Action, with Visual Keying)"
    ]


def reference_notes(armature: bpy.types.Object, names: Sequence[str]) -> list[str]:
    """A note on what refers to the bones ``names``, which have other axes."""
    found = find_references(armature, names)
    owners = [bone or ob.name for ob, bone, _ in found.constraints] + [block.name for block, _ in found.drivers]
    told = listed(sorted(set(owners)))
    return [f"constraints or drivers that refer to the reversed bones may move otherwise: {told}"] if owners else []


def bendy_notes(armature: bpy.types.Object, names: Sequence[str]) -> list[str]:
    """A note on bendy bones among ``names`` and next to them, whose ends are others."""
    bones = [armature.data.bones[name] for name in names]
    near = {bone.name for each in bones for bone in (each, *each.children) if bone.bbone_segments > 1}
    return [f"bendy bones may bend otherwise: {listed(sorted(near))}"] if near else []


def _blends(strip: bpy.types.NlaStrip) -> bool:
    """Whether a strip does not just replace what is below."""
    fades = strip.blend_in or strip.blend_out or strip.use_auto_blend or strip.use_animated_influence
    return strip.blend_type != "REPLACE" or bool(fades or len(strip.modifiers))
