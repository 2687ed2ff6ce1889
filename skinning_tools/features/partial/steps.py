# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that the solves for an existing rig share: reading and measuring."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.frame_range import moving_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.measure import ErrorMeter
from ...blender.preconditions import check_vertex_group, object_label, unmet
from ...blender.vertex_groups import read_weights
from ...core.animation import Animation
from .chosen_clips import Chosen, chosen_clips
from .clip_errors import ClipErrors, measure_clips
from .clips import Added, check_moving, read_clips
from .notes import besides_notes, scene_notes
from .parts import Parts
from .readings import RigMotion, measured, plain_copy, read_motion, read_target
from .settings import HelperSettings, PartialSettings, WeightSettings


@dataclass(frozen=True, eq=False)
class Reading:
    """animation: of the target, in the mesh object's space; motion: the RigMotion; weights: the present ones;
    omissions: what Blender left out; notes: the omissions and further notes for the user; chosen: the clips, whose
    frames are one after the other if any are used."""

    animation: Animation
    motion: RigMotion
    weights: BoneWeights
    omissions: tuple[str, ...]
    notes: tuple[str, ...]
    chosen: Chosen

    def importance(self, rest: np.ndarray) -> np.ndarray | None:
        """(F,) how much each frame counts; None if all count alike."""
        from ...core.decomposition.clip_importance import clip_errors, importance_of

        lengths = self.chosen.lengths
        if len(lengths) < 2:
            return None
        poses = len(self.animation.frames) - sum(lengths)
        lengths += [poses] if poses else []
        weights = self.weights
        errors = clip_errors(self.animation.frames, rest, self.motion.matrices, weights.bones, weights.weights, lengths)
        return importance_of(errors, lengths)


def read_parts(
    context: bpy.types.Context,
    parts: Parts,
    settings: PartialSettings,
    names: Sequence[str],
    weights: BoneWeights | None = None,
    shapes: Sequence[str] = (),
) -> background.Steps:
    """Generator: read everything that a solve needs from the scene. shapes: the shape keys that it solves for."""
    chosen = Chosen((), (), {}, False, ())
    if isinstance(settings, (WeightSettings, HelperSettings)):
        choosing = chosen_clips(context, parts, settings)
        try:
            chosen = yield from background.part_of(choosing, 0.0, 0.05, "Looking at the actions")
        except ReferenceError as error:
            raise unmet("REMOVED", object="mesh, its armature or an action") from error
    if chosen.used:
        poses = getattr(settings, "random_poses", 0) if chosen.follows else 0
        # Keyed helper bones have no motion beyond the actions; weights for one action alone need no more poses.
        unlike = settings.driven if isinstance(settings, HelperSettings) else len(chosen.used) > 1
        poses = poses if unlike else 0
        reading = yield from background.part_of(read_actions(context, parts, chosen, names, poses), 0.05, 0.4)
        check_moving(parts, chosen, reading.animation.frames)
        return reading
    frames = settings.frame_start, settings.frame_end, settings.frame_step
    numbers = moving_range(context.scene, *frames, object_label(parts.target))
    # Before the mesh's own Armature modifier is turned off temporarily.
    omissions = Omissions(context, [parts.target], numbers, [parts.armature], same_vertices=True)
    target = read_target(context, parts, frames, omissions)
    animation = yield from background.part_of(target, 0.05, 0.25, "Reading the target")
    with plain_copy(parts) as probe:
        moving = read_motion(context, probe, parts.armature, names, animation.frame_numbers, omissions)
        motion = yield from background.part_of(moving, 0.25, 0.4, "Reading the armature")
    weights = weights or read_bone_weights(parts.mesh, parts.armature)
    left_out = texts_of(omissions.finish())
    notes = (*left_out, *scene_notes(context, parts, animation.frame_numbers, shapes))
    return Reading(animation, motion, weights, left_out, notes, chosen)


def read_actions(
    context: bpy.types.Context, parts: Parts, chosen: Chosen, names: Sequence[str], poses: int = 0
) -> background.Steps[Reading]:
    """Generator: read the used clips, then so many random ``poses`` mixed of their frames."""
    numbers = [number for clip in chosen.used for number in clip.numbers]
    span = range(min(numbers), max(numbers) + 1)
    omissions = Omissions(context, [parts.target], span, [parts.armature], same_vertices=True)
    with plain_copy(parts) as probe, omissions.blamed():
        reading = read_clips(context, parts, chosen, probe, names, omissions, poses)
        animation, motion = yield from background.part_of(reading, 0.0, 1.0, "Reading the actions")
    left_out = texts_of(omissions.finish())
    notes = (*left_out, *besides_notes(parts), *chosen.notes)
    weights = read_bone_weights(parts.mesh, parts.armature)
    return Reading(animation, motion, weights, left_out, notes, chosen)


def locked_by_group(mesh: bpy.types.Object, group: str) -> np.ndarray:
    """(N,) bool: the vertices in the vertex group ``group``; none if ``group`` is "". Raises BadSettings."""
    if not group:
        return np.zeros(len(mesh.data.vertices), bool)
    check_vertex_group(mesh, group)
    return np.asarray(read_weights(mesh, [group])[1].any(axis=1))


def error_of(
    probe: bpy.types.Object,
    parts: Parts,
    reading: Reading,
    start: float,
    end: float,
    *,
    armature: bpy.types.Object | None = None,
    wanted: bool = True,
) -> background.Steps[Any]:
    """Generator: the ErrorMeter of ``probe`` against the target; None unless ``wanted``."""
    if not wanted:
        return None
    measuring = measured(probe, armature or parts.armature, reading.animation)
    return (yield from background.part_of(measuring, start, end, "Measuring"))


def errors_of(
    context: bpy.types.Context,
    parts: Parts,
    reading: Reading,
    before: bpy.types.Object | None,
    after: bpy.types.Object,
    armature: bpy.types.Object | None = None,
    added: Added = (),
) -> background.Steps[tuple[ClipErrors, ErrorMeter | None, ErrorMeter]]:
    """Generator: the errors of the clips, and the meters of what the solve has counted, of the objects ``before`` (None
    if no bone moved the mesh) and ``after``. armature: that of ``after``; added: see ``Player``."""
    meter_before: ErrorMeter | None = None
    meter: ErrorMeter | None = None
    errors, end = ClipErrors(), 0.9 if reading.chosen.others else 1.0
    if not reading.chosen.used:
        middle = (0.7 + end) / 2
        wanted = before is not None
        meter_before = yield from error_of(before or after, parts, reading, 0.7, middle, wanted=wanted)
        meter = yield from error_of(after, parts, reading, middle, end, armature=armature)
    if reading.chosen.used or reading.chosen.others:
        measuring = measure_clips(context, parts, reading.chosen, before, after, added)
        start = 0.7 if reading.chosen.used else end
        clips = yield from background.part_of(measuring, start, 1.0, "Measuring the actions")
        errors, meter_before, meter = clips.errors, meter_before or clips.before, meter or clips.after
    assert meter is not None
    return errors, meter_before, meter
