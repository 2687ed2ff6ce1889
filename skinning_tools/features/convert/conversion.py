# SPDX-License-Identifier: GPL-3.0-or-later
"""The pipeline from animated meshes to a measured rig: a generator that both operator and command line run."""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import bpy
import numpy as np

from ...blender import background, dependencies
from ...blender.animation.animation_reader import SourceAnimation
from ...blender.animation.omissions import texts_of
from ...blender.animation.several_sources import check_sources, sources_label
from ...blender.clip_tracks import play_clip
from ...blender.data_blocks import is_alive, remove_living
from ...blender.figures import Figure, Result
from ...blender.importance import check_importance, importance_of
from ...blender.measure import RigMeter
from ...blender.preconditions import unmet
from ...blender.result_objects import CHARACTER
from ...blender.rotation_limits import limit_rotations
from ...blender.scene_state import SceneState
from ...blender.wording import listed
from ...core.animation import Animation, check_animation, unit_scale
from ...core.joint_hierarchy import JointHierarchy
from ...core.progress import Progress
from ...core.run_time import Work, learn_pace, stage_seconds
from .clips import Clip, check_clips, clips_record, notes_on_moving, read_clips
from .estimate import check_memory, spread, work_of
from .figures import errors_of_bone_counts, errors_of_clips, errors_of_objects, figures_of_record
from .notes import notes_on_solve, notes_without_effect, shapes_note
from .rig_writer import Rig
from .settings import ConvertSettings
from .stored_record import record_of, record_of_some, write_record_of

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition, Settings
    from .key_reduction import KeyCounts

Made = TypeVar("Made")


@dataclass(frozen=True)
class Conversion(Result):
    """A finished conversion.

    rig: a rig_writer.Rig. meter: Blender's own evaluation of it against the sources at every frame, a
    measure.RigMeter. record: the figures stored on the armature. notes: deviations from the
    settings, and what Blender left out of the sources. seconds: of reading, solving, writing and measuring.
    """

    rig: "Rig"
    meter: RigMeter
    record: dict
    seconds: dict[str, float]
    notes: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        record = self.record
        errors = *errors_of_objects(record), *errors_of_clips(record), *errors_of_bone_counts(record)
        return [*figures_of_record(record), *errors]


def convert(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], settings: ConvertSettings
) -> background.Steps:
    """Generator: turn the animation of mesh objects into skinned meshes and their one armature; returns a Conversion.

    objects: the first one names the result; duplicates are ignored. With ``as_clips`` they are clips of one mesh, that
    of the first one. Yields (fraction, stage). At the end, frame,
    selection, active object and mode are as before; after an exception or when closed, everything made is removed.
    Raises SkinningError (see core.errors) for problems that the user can fix.
    """
    dependencies.require_dependencies()
    solver = settings.for_solver()
    objects = tuple(dict.fromkeys(objects))
    check_sources(context, objects)
    check_importance(objects, settings.importance)
    # Changes not evaluated yet, such as a modifier that changes the number of vertices.
    context.evaluated_depsgraph_get()
    if settings.as_clips:
        check_clips(context, objects)
    work = work_of(context, objects, settings)
    solver, notes = _allowed(solver, work)
    notes = (*notes, *notes_without_effect(settings))
    check_memory(sources_label(objects), work)

    state = SceneState(context)
    # Data-blocks, removed again unless the conversion succeeds.
    made: list[bpy.types.ID] = []
    try:
        stages = _convert(context, objects, settings, solver, notes, made)
        expected = stage_seconds(work)
        conversion = yield from _while_there(spread(stages, expected), objects)
        made.clear()
        learn_pace(expected, conversion.seconds)
        return conversion
    finally:
        remove_living(made)
        state.restore()


def _allowed(solver: "Settings", work: Work) -> "tuple[Settings, tuple[str, ...]]":
    """The solver's settings within what the frames allow, and notes on what was reduced."""
    note = shapes_note(work)
    return (replace(solver, residual_shapes=work.frame_count), (note,)) if note else (solver, ())


def _convert(
    context: bpy.types.Context,
    objects: Sequence[bpy.types.Object],
    settings: ConvertSettings,
    solver: "Settings",
    notes: Sequence[str],
    made: list[bpy.types.ID],
) -> Generator[tuple[str, float, str], None, Conversion]:
    """Generator: the stages of ``convert``; yields (stage name, fraction, text). solver: core.decomposition.Settings
    within what the frames allow."""
    from .rig_writer import write_error_attribute

    seconds: dict[str, float] = {}

    with _timed(seconds, "read"):
        reading = _read(context, objects, settings)
        source, clips = yield from _stage("read", reading, "Reading the animation")
    made += [part.mesh for part in source.parts]

    importance = _importance(context, source, settings.importance)
    with _timed(seconds, "solve"):
        solving = background.run_in_worker(
            lambda progress: _solve(source.animation, clips, solver, settings, importance, progress)
        )
        decomposition, hierarchy, free_e_rms, strays = yield from _stage("solve", solving, "Solving")

    with _timed(seconds, "write"):
        writing = _write(context, settings, clips, decomposition, hierarchy, made)
        rig = yield from _stage("write", writing, "Writing the rig")
        if settings.as_clips:
            notes = (*notes, *notes_on_moving(context, clips))

    keys, scale = None, unit_scale(source.animation.frames)
    if settings.key_tolerance:
        with _timed(seconds, "reduce"):
            reducing = _reduce(rig, clips, decomposition, settings.key_tolerance, scale)
            keys = yield from _stage("reduce", reducing, "Reducing keys")

    if settings.rotation_limits:
        limiting = _limited(rig, clips, decomposition, settings.limit_margin)
        notes = (*notes, *(yield from _stage("write", limiting, "Writing the rig")))

    with _timed(seconds, "measure"):
        meter = yield from _stage("measure", _measure(rig, clips, scale), "Measuring the result")
    if settings.as_clips:
        play_clip(rig.armature, rig.objects, clips[0].name)

    write_error_attribute(rig, meter.vertex_error)
    solved = decomposition, rig, settings, free_e_rms, strays
    notes = (*notes, *notes_on_solve(*solved), *texts_of(source.omissions))
    # Those that became skinned objects of their own.
    objects = [part.object for part in source.parts]
    record = record_of(objects, source, decomposition, rig, meter, settings)
    if settings.as_clips:
        record |= clips_record(context.scene, settings, clips, meter)
    record |= {"seconds": seconds, "settings": asdict(solver)}
    record |= record_of_some(settings, free_e_rms, keys, notes)
    write_record_of(objects, rig, record)
    return Conversion(rig, meter, record, seconds, notes)


def _importance(context: bpy.types.Context, source: SourceAnimation, group: str) -> np.ndarray | None:
    """(N,) how often each vertex of ``source`` counts; None without a group."""
    if not group:
        return None
    counts = np.ones(source.animation.vertex_count)
    for part in source.parts:
        found = importance_of(context, part.object, len(counts[part.vertices]), group)
        counts[part.vertices] = 1.0 if found is None else found
    return counts


def _write(
    context: bpy.types.Context,
    settings: ConvertSettings,
    clips: Sequence[Clip],
    decomposition: "Decomposition",
    hierarchy: "JointHierarchy | None",
    made: list[bpy.types.ID],
) -> "background.Steps[Rig]":
    """Generator: the rig with the motion of the first clip, and actions for the others; its data-blocks go to
    ``made``."""
    from .clip_actions import add_clips
    from .rig_writer import write_rig

    first, own = clips[0], 1.0 / len(clips)
    name = first.name if settings.as_clips or CHARACTER in first.source.object else ""
    writing = write_rig(context, first.source, decomposition, settings.root_bone, hierarchy, name, first.rows)
    rig = yield from background.part_of(writing, 0.0, own)
    made += [block for block in rig.data_blocks if block not in made]
    if settings.as_clips:
        yield from background.part_of(add_clips(context, rig, clips, decomposition, made), own, 1.0)
    return rig


def _read(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], settings: ConvertSettings
) -> Generator[Any, None, tuple[SourceAnimation, tuple[Clip, ...]]]:
    """Generator: read the objects; returns all frames as one animation, and the clips of it, one unless more are
    meant."""
    from ...blender.animation.animation_reader import read_animation

    frames = settings.frame_start, settings.frame_end, settings.frame_step
    if settings.as_clips:
        return (yield from read_clips(context, objects, *frames))
    source = yield from read_animation(context, objects[0], *frames, tuple(objects[1:]))
    return source, (Clip(source, slice(None), source.object.name),)


def _reduce(
    rig: Rig, clips: Sequence[Clip], decomposition: "Decomposition", tolerance: float, scale: float
) -> "background.Steps[KeyCounts]":
    """Generator: reduce the keys of each clip; returns the number of keys of all."""
    from .key_reduction import KeyCounts, reduce_rig_keys

    counts = KeyCounts(0, 0)
    for number, clip in enumerate(clips):
        _play(rig, clips, clip)
        reducing = reduce_rig_keys(rig, clip.source, clip.part_of(decomposition), tolerance, scale)
        found = yield from background.part_of(reducing, number / len(clips), (number + 1) / len(clips))
        counts = KeyCounts(counts.before + found.before, counts.after + found.after)
    return counts


def _limited(
    rig: Rig, clips: Sequence[Clip], decomposition: "Decomposition", margin: float
) -> background.Steps[list[str]]:
    """Generator: limit the bones with a parent to what their keys turn them; returns notes."""
    from .rig_motion import rig_channels

    hierarchy = rig.bones.hierarchy
    turns = (yield from rig_channels(rig.armature, rig.bones, decomposition)).joint_rotation
    assert hierarchy is not None
    assert turns is not None
    found = {rig.bones.controls[bone]: turns[:, bone] for bone in np.flatnonzero(hierarchy.parents >= 0)}
    free = limit_rotations(rig.armature, found, margin, [clip.rows for clip in clips])
    return [f"no rotation limits for bones that turn too far: {listed(free)}"] if free else []


def _measure(rig: Rig, clips: Sequence[Clip], scale: float) -> background.Steps[RigMeter]:
    """Generator: measure the rig in the frames of all clips, one after the other."""
    from ...blender.measure import measure_rig

    meter = RigMeter(scale, [len(ob.data.vertices) for ob in rig.objects], normals=True)
    for number, clip in enumerate(clips):
        _play(rig, clips, clip)
        measuring = measure_rig(rig, clip.source, meter)
        yield from background.part_of(measuring, number / len(clips), (number + 1) / len(clips))
    return meter


def _play(rig: Rig, clips: Sequence[Clip], clip: Clip) -> None:
    if len(clips) > 1:
        play_clip(rig.armature, rig.objects, clip.name)


def _solve(
    animation: Animation,
    clips: Sequence[Clip],
    solver: "Settings",
    settings: ConvertSettings,
    importance: np.ndarray | None,
    progress: Progress,
) -> "tuple[Decomposition, JointHierarchy | None, float | None, np.ndarray]":
    """The decomposition, the hierarchy of its joints or None, where the joints hold the bones, E_RMS without, and the
    ``stray_roots`` (n,)."""
    from ...core.decomposition.clips import decompose_clips
    from ...core.decomposition.skeleton import find_skeleton
    from ...core.joint_search import stray_roots

    # A mesh without motion could be solved, but nobody wants the result.
    check_animation(animation)
    lengths = [len(clip.frame_numbers) for clip in clips]
    if not settings.joint_hierarchy:
        return decompose_clips(animation, lengths, solver, progress, importance), None, None, np.zeros(0, int)
    held, slip = settings.rotation_only, 0.01 * settings.joint_slip
    found, hierarchy, free_e_rms = find_skeleton(animation, lengths, solver, progress, importance, held=held, slip=slip)
    strays = stray_roots(hierarchy, found.rest, found.bones, found.weights, animation.triangles)
    return found, hierarchy, free_e_rms, strays


def _while_there(steps: background.Steps[Made], objects: Sequence[bpy.types.Object]) -> background.Steps[Made]:
    """Generator: run ``steps``; raise BadScene if the user deletes an object meanwhile."""
    names = [ob.name for ob in objects]
    try:
        while True:
            try:
                yield next(steps)
            except StopIteration as end:
                return end.value
            for name, ob in zip(names, objects, strict=True):
                if not is_alive(ob):
                    raise unmet("REMOVED", object=f'object "{name}"')
    finally:
        steps.close()


def _stage(name: str, steps: Generator[Any, None, Made], text: str) -> Generator[tuple[str, float, str], None, Made]:
    """Generator: a stage's own steps, bare fractions or (fraction, text), as (stage name, fraction, text)."""
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            fraction, detail = step if isinstance(step, tuple) else (step, "")
            yield name, fraction, f"{text}: {detail.lower()}" if detail else text
    finally:
        steps.close()


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - begin
