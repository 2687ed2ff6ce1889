# SPDX-License-Identifier: GPL-3.0-or-later
"""What partial solves share: what they read, the new motion of an armature, and what they leave and say."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.data_blocks import is_alive
from ...blender.preconditions import object_label
from ...blender.records import write_record
from ...blender.vertex_groups import read_weights
from ...core.errors import BadSettings
from .added_bones import add_new_bones
from .bone_keys import WantedPoses, transform_paths, write_poses
from .notes import scene_notes
from .parts import Parts, check_range, measured, plain_copy, read_motion, read_target
from .settings import PartialSettings

# The figures of the last partial solve, a custom property of the mesh object.
FIGURES_PROPERTY = "skinning_partial_solve"

# Of an E_RMS, and a share of it: less does not show in its figures.
_NO_DIFFERENCE = 1e-3

# What solves before have put behind an action's name.
_ENDINGS = re.compile(r"(_solved|_helpers)+(\.\d+)?$")


@dataclass(frozen=True)
class PartialFigures:
    """Of the last solve, for the panel. title: what was done; e_rms_before: −1 where there was nothing before;
    frame_start, frame_end: those that were read; warning: "" where the mesh is not farther from its target now;
    omissions: what Blender has left out of what was read."""

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


@dataclass(frozen=True)
class PartialResult:
    """A finished solve: what was done, in words; its figures; remarks: what the user ought to know besides."""

    object_name: str
    done: str
    figures: PartialFigures
    seconds: float
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All that the user ought to know."""
        return (*filter(None, [self.figures.warning]), *self.remarks)

    def summary(self) -> str:
        """The result in one line."""
        figures = self.figures
        before = f" (before: {figures.e_rms_before:.3g})" if figures.e_rms_before >= 0 else ""
        warning = f"{figures.warning}; " if figures.warning else ""
        parts = [
            f"{self.object_name}: {warning}{self.done}, E_RMS {figures.e_rms:.3g}{before}, largest error "
            f"{figures.max_error:.3g}, {self.seconds:.1f} s"
        ]
        return "; ".join([*parts, *self.remarks])


@dataclass(frozen=True, eq=False)
class Reading:
    """animation: of the target, in the mesh object's space; motion: the RigMotion; weights: those that there are;
    omissions: what Blender has left out, notes: that and what else the user ought to know."""

    animation: object
    motion: object
    weights: BoneWeights
    omissions: tuple[str, ...]
    notes: tuple[str, ...]


def read_parts(context, parts: Parts, given: PartialSettings, names, weights=None) -> background.Steps:
    """Generator: everything that a solve needs of the scene."""
    frames = given.frame_start, given.frame_end, given.frame_step
    check_range(context, *frames, object_label(parts.target))
    numbers = frame_range(context.scene, *frames)
    # Before the mesh's own Armature modifier is off for a while.
    omissions = Omissions(context, [parts.target], numbers, [parts.armature], same_vertices=True)
    reading = read_target(context, parts, frames, omissions)
    animation = yield from part_of(reading, 0.0, 0.25, "Reading the target")
    with plain_copy(parts) as probe:
        moving = read_motion(context, probe, parts.armature, names, animation.frame_numbers, omissions)
        motion = yield from part_of(moving, 0.25, 0.4, "Reading the armature")
    weights = weights or read_bone_weights(parts.mesh, parts.armature)
    left_out = texts_of(omissions.finish())
    notes = (*left_out, *scene_notes(context, parts, animation.frame_numbers))
    return Reading(animation, motion, weights, left_out, notes)


def locked_by_group(mesh, group: str) -> np.ndarray:
    """(N,) bool: the vertices of the vertex group ``group``, none where it is empty. Raises BadSettings."""
    if not group:
        return np.zeros(len(mesh.data.vertices), bool)
    if group not in mesh.vertex_groups:
        raise BadSettings(f'The {object_label(mesh)} has no vertex group "{group}". Choose another')
    return read_weights(mesh, [group])[1].any(axis=1)


def error_of(probe, parts: Parts, reading: Reading, start, end, *, armature=None, wanted: bool = True):
    """Generator: the ErrorMeter of ``probe`` against the target; None where it is not ``wanted``."""
    if not wanted:
        return None
    measuring = measured(probe, armature or parts.armature, reading.animation)
    return (yield from part_of(measuring, start, end, "Measuring"))


def part_of(steps, start: float, end: float, text: str) -> background.Steps:
    """Generator: ``steps``, bare fractions or (fraction, stage), as the part from ``start`` to ``end`` of the whole."""
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as stop:
                return stop.value
            fraction = step[0] if isinstance(step, tuple) else step
            yield start + (end - start) * min(max(fraction, 0.0), 1.0), text
    finally:
        steps.close()


def finished(parts: Parts, title, done, reading, meter_before, meter, begin, notes, ways=()) -> PartialResult:
    """The result, its figures noted on the mesh object. ways: what brings the mesh closer where the error has grown."""
    numbers = reading.animation.frame_numbers
    e_rms, before = float(meter.e_rms), -1.0 if meter_before is None else float(meter_before.e_rms)
    farther = meter_before is not None and e_rms - before > _NO_DIFFERENCE * max(before, 1.0)
    figures = PartialFigures(
        title=title,
        target=parts.target.name,
        armature=parts.armature.name,
        e_rms_before=before,
        e_rms=e_rms,
        max_error=float(meter.max_error),
        frame_start=float(numbers[0]),
        frame_end=float(numbers[-1]),
        omissions=reading.omissions,
        warning=f"farther from the target than before: {', or '.join(['undo', *ways])}" if farther else "",
    )
    write_record(parts.mesh, FIGURES_PROPERTY, figures)
    return PartialResult(parts.mesh.name, done, figures, time.perf_counter() - begin, tuple(notes))


def matrices_in_armature_space(transforms: np.ndarray, motion) -> np.ndarray:
    """``transforms`` (F, P, 3, 4) of the mesh object's space in the armature's: (F, P, 4, 4). motion: a RigMotion."""
    full = np.zeros((*transforms.shape[:2], 4, 4))
    full[..., :3, :] = transforms
    full[..., 3, 3] = 1.0
    to_armature = motion.to_armature[:, None]
    return to_armature @ full @ np.linalg.inv(to_armature)


@contextmanager
def new_motion(context, parts: Parts, added, wanted: WantedPoses, reading, times, extents, ending: str):
    """A copy of the armature, in no scene and removed at the end, that has the bones ``added`` and moves as ``wanted``;
    its new action, which is removed where the body does not end well; and what ``write_poses`` returns."""
    armature = parts.armature
    with ExitStack() as undo:
        copy = armature.copy()
        undo.callback(_remove_armature, copy, keep_data=not added)
        if added:
            copy.data = armature.data.copy()
            add_new_bones(context, copy, added)
        keyed = {path for name in [*wanted.bones, *wanted.chains.values()] for path in transform_paths(name)}
        old = armature.animation_data.action if armature.animation_data else None
        name = f"{_ENDINGS.sub('', old.name) if old is not None else armature.name}_{ending}"
        action = actions.copy_action(copy, armature, name, lambda path: path not in keyed)
        action = action or actions.new_action(copy, name)
        failed = undo.enter_context(_removed_on_failure(action))
        made = write_poses(copy, actions.curve_container(copy), wanted, reading.motion, times, extents)
        yield copy, action, made
        failed.clear()


@contextmanager
def _removed_on_failure(action) -> Iterator[list]:
    waiting = [action]
    try:
        yield waiting
    finally:
        for block in waiting:
            if is_alive(block):
                bpy.data.actions.remove(block)


def _remove_armature(copy, keep_data: bool) -> None:
    if not is_alive(copy):
        return
    data = copy.data
    bpy.data.objects.remove(copy)
    if not keep_data and is_alive(data):
        bpy.data.armatures.remove(data)


def apply_motion(context, armature, added, action) -> None:
    """Add the bones and assign the action to the armature itself; its present action stays in the file."""
    add_new_bones(context, armature, added)
    old = armature.animation_data.action if armature.animation_data else None
    if old is not None and old.library is None:
        old.use_fake_user = True
    actions.assign_action(armature, action)
