# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that the solves for an existing rig share: reading, writing new motion, and the figures."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.clips import EARLIER
from ...blender.animation.frame_range import moving_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.armatures import NewBone
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.data_blocks import is_alive
from ...blender.figures import Figure, Result
from ...blender.measure import ErrorMeter
from ...blender.preconditions import check_vertex_group, object_label, unmet
from ...blender.records import write_record
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import read_weights
from ...core.animation import Animation
from .added_bones import add_new_bones
from .bone_keys import WantedPoses, transform_paths, write_poses
from .chosen_clips import Chosen, chosen_clips
from .clip_errors import NO_DIFFERENCE, ClipErrors, measure_clips, worse_text
from .clips import Added, check_moving, read_clips
from .notes import besides_notes, scene_notes
from .parts import Parts
from .readings import RigMotion, measured, plain_copy, read_motion, read_target
from .settings import HelperSettings, PartialSettings, WeightSettings

# The figures of the last solve, a custom property of the mesh object.
FIGURES_PROPERTY = "skinning_partial_solve"

# Endings that earlier solves appended to an action's name.
_ENDINGS = re.compile(r"(_solved|_helpers)+(\.\d+)?$")


@dataclass(frozen=True)
class PartialFigures:
    """The last solve, for the panel. title: the kind of solve; e_rms_before: −1 if unknown; frame_start, frame_end: the
    range read, of several clips the first and last frame of all; warning: "" unless the mesh is farther from its target
    now; omissions: what Blender left out of what was read; clips…: the fields of the ClipErrors; of_free: the share
    that driven helper bones have of the gain of freely moving ones, −1 if they are not driven."""

    title: str
    target: str
    armature: str
    e_rms_before: float
    e_rms: float
    max_error: float
    frame_start: float
    frame_end: float
    warning: str
    omissions: tuple[str, ...]
    clips: tuple[str, ...] = ()
    clips_before: tuple[float, ...] = ()
    clips_after: tuple[float, ...] = ()
    clips_used: tuple[bool, ...] = ()
    of_free: float = -1.0

    def figures(self) -> list[Figure]:
        clips = ClipErrors(self.clips, self.clips_before, self.clips_after, self.clips_used)
        before = Figure("E_RMS before", self.e_rms_before, "{:.4f}")
        of_free = Figure(
            "Gain of free helper bones",
            self.of_free,
            "{:.0%}",
            line=f"{self.of_free:.0%} of the gain of free helper bones",
        )
        return [
            Figure("Armature", self.armature, line=""),
            Figure("Target", self.target, line=""),
            Figure("Frames", [self.frame_start, self.frame_end], "{:g} to {:g}", line=""),
            *([before] if self.e_rms_before >= 0 else []),
            Figure("E_RMS", self.e_rms, "{:.4f}"),
            Figure("Largest error", self.max_error, "{:.4f}"),
            *([of_free] if self.of_free >= 0 else []),
            *clips.figures(),
        ]


@dataclass(frozen=True)
class PartialResult(Result):
    """A finished solve. done: what was done, as text; record: its figures; remarks: further notes for the user."""

    object_name: str
    done: str
    record: PartialFigures
    seconds: float
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes for the user."""
        return (*filter(None, [self.record.warning]), *self.remarks)

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.object_name),
            Figure("Done", self.done, line="; ".join(filter(None, [self.record.warning, self.done]))),
            *self.record.figures(),
        ]


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


def finished(
    parts: Parts,
    title: str,
    done: str,
    reading: Reading,
    before: float | None,
    meter: ErrorMeter,
    begin: float,
    notes: Sequence[str],
    ways: Sequence[str] = (),
    clips: ClipErrors | None = None,
    of_free: float = -1.0,
) -> PartialResult:
    """The result; stores its figures on the mesh object. before: E_RMS, None if unknown; ways: advice for the case that
    it has grown. of_free: as in PartialFigures."""
    clips = clips or ClipErrors()
    numbers = reading.animation.frame_numbers
    e_rms = float(meter.e_rms)
    farther = before is not None and e_rms - before > NO_DIFFERENCE * max(before, 1.0)
    figures = PartialFigures(
        title=title,
        target=parts.target.name,
        armature=parts.armature.name,
        e_rms_before=-1.0 if before is None else float(before),
        e_rms=e_rms,
        max_error=float(meter.max_error),
        frame_start=float(numbers.min()),
        frame_end=float(numbers.max()),
        omissions=reading.omissions,
        warning=f"farther from the target than before: {', or '.join(['undo', *ways])}"
        if farther
        else worse_text(clips, ("solve with more Hold",) if title == "Weights" else ()),
        clips=clips.names,
        clips_before=clips.before,
        clips_after=clips.after,
        clips_used=clips.used,
        of_free=of_free,
    )
    write_record(parts.mesh, FIGURES_PROPERTY, figures)
    return PartialResult(parts.mesh.name, done, figures, time.perf_counter() - begin, tuple(notes))


def matrices_in_armature_space(transforms: np.ndarray, motion: RigMotion) -> np.ndarray:
    """Convert ``transforms`` (F, P, 3, 4) from the mesh object's space to the armature's, (F, P, 4, 4), by a
    RigMotion."""
    full = np.zeros((*transforms.shape[:2], 4, 4))
    full[..., :3, :] = transforms
    full[..., 3, 3] = 1.0
    to_armature = motion.to_armature[:, None]
    return to_armature @ full @ np.linalg.inv(to_armature)


@contextmanager
def new_motion(
    context: bpy.types.Context,
    parts: Parts,
    added: Sequence[NewBone],
    wanted: WantedPoses,
    reading: Reading,
    times: np.ndarray,
    extents: np.ndarray | None,
    ending: str,
) -> Iterator[tuple[bpy.types.Object, bpy.types.Action, tuple[dict[str, np.ndarray], float]]]:
    """A copy of the armature, in no scene and removed at the end, with the bones ``added`` and the ``wanted`` motion;
    its new action, which is removed if the body raises; and the result of ``write_poses``."""
    with armature_copy(parts.armature, adding(context, added)) as copy:
        action, made = new_action(copy, parts.armature, wanted, reading.motion, times, extents, ending)
        try:
            yield copy, action, made
        except BaseException:
            remove_action(action)
            raise


@contextmanager
def armature_copy(
    armature: bpy.types.Object, add: Callable[[bpy.types.Object], None] | None
) -> Iterator[bpy.types.Object]:
    """A copy of the armature, in no scene and removed at the end. add: adds bones to it."""
    with ExitStack() as undo:
        copy = armature.copy()
        undo.callback(_remove_armature, copy, keep_data=add is None)
        if add is not None:
            copy.data = armature.data.copy()
            add(copy)
        yield copy


def adding(context: bpy.types.Context, added: Sequence[NewBone]) -> Callable[[bpy.types.Object], None] | None:
    """For ``armature_copy``: adds the bones; None if there are none."""
    return partial(add_new_bones, context, specs=added) if added else None


def new_action(
    copy: bpy.types.Object,
    armature: bpy.types.Object,
    wanted: WantedPoses,
    motion: RigMotion,
    times: np.ndarray,
    extents: np.ndarray | None,
    ending: str,
) -> tuple[bpy.types.Action, tuple[dict[str, np.ndarray], float]]:
    """The armature's present action as a copy with the ``wanted`` motion, assigned to ``copy``, and the result of
    ``write_poses``."""
    keyed = {path for name in [*wanted.bones, *wanted.chains.values()] for path in transform_paths(name)}
    old = armature.animation_data.action if armature.animation_data else None
    name = f"{_ENDINGS.sub('', old.name) if old is not None else armature.name}_{ending}"
    action = actions.copy_action(copy, armature, name, lambda path: path not in keyed)
    action = action or actions.new_action(copy, name)
    if old is not None:
        action[EARLIER] = old
    try:
        return action, write_poses(copy, actions.curve_container(copy), wanted, motion, times, extents)
    except BaseException:
        remove_action(action)
        raise


def remove_action(action: bpy.types.Action) -> None:
    """Remove the action from the file, if it is still there."""
    if is_alive(action):
        bpy.data.actions.remove(action)


def _remove_armature(copy: bpy.types.Object, keep_data: bool) -> None:
    if not is_alive(copy):
        return
    data = copy.data
    bpy.data.objects.remove(copy)
    if not keep_data and is_alive(data):
        bpy.data.armatures.remove(data)


def apply_motion(
    context: bpy.types.Context, armature: bpy.types.Object, added: Sequence[NewBone], action: bpy.types.Action
) -> None:
    """Add the bones and assign the action to the armature itself; its present action stays in the file."""
    add_new_bones(context, armature, added)
    old = armature.animation_data.action if armature.animation_data else None
    if old is not None and old.library is None:
        old.use_fake_user = True
    actions.assign_action(armature, action)


def attach(parts: Parts, taught: bool) -> list[str]:
    """Add an Armature modifier if the mesh has none and no animation of its own; returns a note."""
    mesh = parts.mesh
    if armature_of(mesh) is not None and armature_of(mesh) != parts.armature:
        return [f'"{parts.armature.name}" does not deform it yet: choose it in the Armature modifier']
    if parts.own and not taught:
        return ["its own animation still plays: to see what the bones do, remove it or bind a copy"]
    if armature_of(mesh) is None:
        modifier = mesh.modifiers.new("Armature", "ARMATURE")
        modifier.object = parts.armature
        return ["Armature modifier added"]
    return []
