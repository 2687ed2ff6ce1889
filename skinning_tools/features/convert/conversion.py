# SPDX-License-Identifier: GPL-3.0-or-later
"""The one pipeline from moving meshes to a measured rig; operator and command line both drive this generator."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

import bpy
from bpy.app.translations import pgettext_rpt as rpt_

from ...blender import background, dependencies
from ...blender.animation.omissions import texts_of
from ...blender.animation.several_sources import check_sources, sources_label
from ...blender.conversion_figures import REPORT_PROPERTY
from ...blender.data_blocks import is_alive
from ...core.animation import ErrorMeter, check_animation
from ...core.errors import BadScene
from ...core.run_time import Work, learn_pace, stage_seconds
from .estimate import check_memory, spread, work_of
from .scene_state import SceneState
from .settings import ConvertSettings


@dataclass(frozen=True)
class Conversion:
    """A finished conversion.

    other_names: of the sources beside the one called ``source_name``. source_data: the names of their meshes.
    rig: a rig_writer.Rig. meter: Blender's own evaluation of it against the sources at every frame, a
    measure.RigMeter. notes: what was done otherwise than asked, and what Blender has left out of the sources.
    seconds: read, solve, write and measure, as the user waited for them. curve: the bone counts tried for a target
    error (core.decomposition.CurvePoint). keys: where keys were reduced, the key_reduction.KeyCounts.
    """

    source_name: str
    rig: object
    meter: ErrorMeter
    bone_count: int
    vertex_count: int
    frame_numbers: tuple[float, ...]
    seconds: dict[str, float]
    solver_seconds: dict[str, float]
    method: str
    target_error: float
    curve: tuple = ()
    keys: object = None
    other_names: tuple[str, ...] = ()
    source_data: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of all sources, in the order of the rig's objects."""
        return self.source_name, *self.other_names

    @property
    def largest_distance(self) -> float:
        """Largest distance of a vertex in any frame, in scene units."""
        return float(self.meter.vertex_error.max())

    @property
    def missed(self) -> str:
        """What to say behind E_RMS where no count of bones up to the one given reached the target error, else ""."""
        if not 0 < self.target_error < self.meter.e_rms:
            return ""
        text = rpt_("(target {target:g} not reached with up to {bones} bones)")
        return " " + text.format(target=self.target_error, bones=self.bone_count)

    def summary(self) -> str:
        """The result in one line."""
        meter, seconds = self.meter, sum(self.seconds.values())
        keys, others = "", ""
        if self.keys is not None:
            keys = rpt_(", {after:,} of {before:,} keys").format(after=self.keys.after, before=self.keys.before)
        if self.other_names:
            text = (
                rpt_("with {count} other object") if len(self.other_names) == 1 else rpt_("with {count} other objects")
            )
            others = " " + text.format(count=len(self.other_names))
        return rpt_(
            "{names}: {bones} bones, {vertices} vertices, {frames} frames{keys}, E_RMS {e_rms:.3g}{missed}, "
            "largest error {largest:.3g}, {seconds:.1f} s"
        ).format(
            names=self.source_name + others,
            bones=self.bone_count,
            vertices=self.vertex_count,
            frames=len(self.frame_numbers),
            keys=keys,
            e_rms=meter.e_rms,
            missed=self.missed,
            largest=meter.max_error,
            seconds=seconds,
        )


def convert(context, objects, settings: ConvertSettings) -> background.Steps:
    """Generator: turn the animation of mesh objects into skinned meshes and their one armature; returns a Conversion.

    objects: the first is the one that the result is named after; once each counts. Yields (fraction, stage).
    Frame, selection, active object and mode are as before when it ends; where it ends by an exception or is closed,
    nothing that it made stays behind. Raises SkinningError (see core.errors) for all that the user can mend.
    """
    dependencies.require_dependencies()
    solver = settings.for_solver()
    objects = tuple(dict.fromkeys(objects))
    check_sources(context, objects)
    # What the panel has not waited for, as a modifier that changes the number of vertices.
    context.evaluated_depsgraph_get()
    work = work_of(context, objects, settings)
    solver, notes = _allowed(solver, work)
    check_memory(sources_label(objects), work)

    state = SceneState(context)
    # Data-blocks, which are removed again unless all succeeds.
    made: list[bpy.types.ID] = []
    try:
        stages = _convert(context, objects, settings, solver, notes, made)
        expected = stage_seconds(work)
        conversion = yield from _while_there(spread(stages, expected), objects)
        made.clear()
        learn_pace(expected, conversion.seconds)
        return conversion
    finally:
        # What an undo or another file has removed meanwhile is passed over.
        bpy.data.batch_remove([block for block in made if is_alive(block)])
        state.restore()


def _allowed(solver, work: Work) -> tuple[object, tuple[str, ...]]:
    """The solver's settings as far as the frames allow them, and what to say where that is less than was asked for."""
    note = shapes_note(work)
    return (replace(solver, residual_shapes=work.frame_count), (note,)) if note else (solver, ())


def shapes_note(work: Work) -> str:
    """What to say where there are fewer frames than residual shapes are asked for, else ""."""
    asked, count = work.settings.residual_shapes, work.frame_count
    if not 0 < count < asked:
        return ""
    text = rpt_("{count} residual shapes instead of {asked}: there cannot be more than frames")
    return text.format(count=count, asked=asked)


def _convert(context, objects, settings: ConvertSettings, solver, notes, made) -> background.Steps:
    """Generator: the stages of ``convert``; yields (stage name, fraction, text). solver: core.decomposition.Settings,
    which may be less than was asked for."""
    from ...blender.animation.animation_reader import read_animation
    from ...blender.measure import measure_rig
    from .key_reduction import reduce_rig_keys
    from .rig_writer import write_error_attribute, write_rig

    seconds: dict[str, float] = {}
    object, *others = objects
    frames = settings.frame_start, settings.frame_end, settings.frame_step

    with _timed(seconds, "read"):
        reading = read_animation(context, object, *frames, tuple(others))
        source = yield from _stage("read", reading, "Reading the animation")
    made += [part.mesh for part in source.parts]

    with _timed(seconds, "solve"):
        solving = background.run_in_worker(
            lambda progress: _solve(source.animation, solver, settings.joint_hierarchy, progress)
        )
        decomposition, hierarchy = yield from _stage("solve", solving, "Solving")

    with _timed(seconds, "write"):
        yield "write", 0.0, "Writing the rig"
        rig = write_rig(context, source, decomposition, settings.root_bone, hierarchy)
        made += [block for block in rig.data_blocks if block not in made]

    keys = None
    if settings.key_tolerance:
        with _timed(seconds, "reduce"):
            reducing = reduce_rig_keys(rig, source, decomposition, settings.key_tolerance)
            keys = yield from _stage("reduce", reducing, "Reducing keys")

    with _timed(seconds, "measure"):
        meter = yield from _stage("measure", measure_rig(rig, source), "Measuring the result")

    write_error_attribute(rig, meter.vertex_error)
    conversion = Conversion(
        source_name=object.name,
        rig=rig,
        meter=meter,
        bone_count=decomposition.bone_count,
        vertex_count=source.animation.vertex_count,
        frame_numbers=tuple(source.animation.frame_numbers.tolist()),
        seconds=seconds,
        solver_seconds={name: float(value) for name, value in decomposition.seconds.items()},
        method=source.method,
        target_error=settings.target_error,
        curve=decomposition.curve,
        keys=keys,
        other_names=tuple(ob.name for ob in others),
        source_data=tuple(ob.data.name for ob in objects),
        notes=(*notes, *texts_of(source.omissions)),
    )
    write_figures(conversion, settings, solver)
    return conversion


def _solve(animation, solver, joint_hierarchy: bool, progress):
    """The decomposition, and the hierarchy of its joints or None."""
    from ...core.decomposition import decompose
    from ...core.joint_search import find_joint_hierarchy

    # What stands still could be solved, but is not what anyone wants.
    check_animation(animation)
    found = decompose(animation, solver, progress)
    if not joint_hierarchy:
        return found, None
    return found, find_joint_hierarchy(found.rest, found.bones, found.weights, found.transforms)


def write_figures(conversion: Conversion, settings: ConvertSettings, solver) -> None:
    """Leave the figures on each skinned object (the contract's properties) and, for the panel, on the armature, too."""
    rig, meter = conversion.rig, conversion.meter
    for ob in rig.objects:
        ob["skinning_e_rms"] = meter.e_rms
        ob["skinning_max_error"] = meter.max_error
        ob["skinning_bone_count"] = conversion.bone_count
    report = {
        # Names, not pointers: a pointer would make the result a user of the source.
        "source": conversion.source_name,
        # By which another object of the source's name is told from it.
        "source_data": conversion.source_data[0],
        "object": rig.object.name,
        "armature": rig.armature.name,
        "collection": rig.collection.name,
        "method": conversion.method,
        "bone_count": conversion.bone_count,
        "vertex_count": conversion.vertex_count,
        "frame_count": len(conversion.frame_numbers),
        "frame_start": conversion.frame_numbers[0],
        "frame_end": conversion.frame_numbers[-1],
        "frame_step": settings.frame_step,
        "e_rms": meter.e_rms,
        "max_error": meter.max_error,
        "largest_distance": conversion.largest_distance,
        "seconds": conversion.seconds,
        "solver_seconds": conversion.solver_seconds,
        "settings": asdict(solver),
        "root_bone": settings.root_bone,
        "joint_hierarchy": rig.bones.hierarchy is not None,
        "key_tolerance": settings.key_tolerance,
        "frame_e_rms": meter.frame_e_rms.tolist(),
        "frame_max_error": meter.frame_max_error.tolist(),
        "worst_frame": conversion.frame_numbers[meter.worst_row],
        "worst_vertex": meter.worst_vertex,
    }
    if rig.bones.hierarchy is not None:
        report["joint_count"] = int((rig.bones.hierarchy.parents >= 0).sum())
    if conversion.keys is not None:
        report["keys"] = {**conversion.keys._asdict(), "tolerance": settings.key_tolerance}
    if conversion.curve:
        # Columns, as a custom property has no rows of several types.
        report["curve"] = {
            "bone_count": [point.bone_count for point in conversion.curve],
            "e_rms": [point.e_rms for point in conversion.curve],
            "solved": [int(point.solved) for point in conversion.curve],
        }
    if conversion.notes:
        report["notes"] = list(conversion.notes)
    sources = list(zip(conversion.source_names, conversion.source_data, rig.objects, strict=True))
    if conversion.other_names:
        report["parts"] = [
            {"source": name, "source_data": data, "object": ob.name, "e_rms": part.e_rms, "max_error": part.max_error}
            for (name, data, ob), part in zip(sources, meter.parts, strict=True)
        ]
    for name, data, ob in sources:
        ob[REPORT_PROPERTY] = {**report, "source": name, "source_data": data, "object": ob.name}
    rig.armature[REPORT_PROPERTY] = report


def _while_there(steps: Iterator, objects) -> background.Steps:
    """Generator: ``steps``, until the user deletes an object between two of them: then BadScene is raised."""
    names = [ob.name for ob in objects]
    try:
        while True:
            try:
                yield next(steps)
            except StopIteration as end:
                return end.value
            for name, ob in zip(names, objects, strict=True):
                if not is_alive(ob):
                    raise BadScene(
                        f'The object "{name}" was deleted or undone while it was being converted. Start again'
                    )
    finally:
        steps.close()


def _stage(name: str, steps: Iterator, text: str) -> Iterator:
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
def _timed(seconds: dict[str, float], name: str):
    begin = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - begin
