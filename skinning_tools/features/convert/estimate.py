# SPDX-License-Identifier: GPL-3.0-or-later
"""The estimated time and memory of a conversion, and the progress bar while it runs."""

import math
import time
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

import bpy

from ...blender.animation.simulations import own_simulation_start
from ...blender.background import Steps
from ...blender.wording import duration_text
from ...core.errors import NotEnoughMemory
from ...core.run_time import Work, stage_seconds
from ...core.solve_memory import memory_estimate
from ...ui.settings import RANGE_NAMES
from .settings import QUALITIES, ConvertSettings, SkinningConversionSettings

if TYPE_CHECKING:
    from ...core.decomposition import Settings

Made = TypeVar("Made")

# After this fraction of a stage, only its own pace determines the time left.
_TRUSTED = 0.1
_LEAST = 1e-9
# Seconds for which a reading of the free memory stays valid.
_FREE_SECONDS = 20.0


def work_of(context: bpy.types.Context, objects: Sequence[bpy.types.Object], settings: ConvertSettings) -> Work:
    """The amount of work in converting ``objects``, as far as known without evaluating anything; cheap enough for a
    panel's draw."""
    scene, step = context.scene, settings.frame_step
    start = scene.frame_start if settings.frame_start is None else settings.frame_start
    end = scene.frame_end if settings.frame_end is None else settings.frame_end
    count = len(range(start, end + 1, step)) if step > 0 else 0
    counts = [vertex_count(context.view_layer, ob) for ob in objects]
    frames, vertices = (count * len(counts), counts[0]) if settings.as_clips else (count, sum(counts))
    first = [own_simulation_start(scene, ob) for ob in objects]
    starts = [each for each in first if each is not None]
    played = max(end + 1 - min(start, *starts), count) if starts else 0
    simulated = played * sum(own for own, each in zip(counts, first, strict=True) if each is not None)
    # They have the attributes of the solver's own settings.
    for_solver = cast("Settings", settings)
    jointed = settings.joint_hierarchy and settings.rotation_only
    return Work(frames, vertices, for_solver, simulated, settings.key_tolerance, jointed)


def work_of_settings(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], chosen: SkinningConversionSettings
) -> Work:
    """``work_of`` with the scene's settings, features.convert.settings.SkinningConversionSettings."""
    names = ConvertSettings.declared.keys() - (RANGE_NAMES if chosen.use_scene_range else ())
    return work_of(context, objects, ConvertSettings(**{name: getattr(chosen, name) for name in names}))


def vertex_count(view_layer: bpy.types.ViewLayer, mesh_object: bpy.types.Object) -> int:
    """Number of vertices of the evaluated mesh, or of the mesh itself if the view layer does not have it."""
    own, depsgraph = len(mesh_object.data.vertices), view_layer.depsgraph
    if depsgraph is None:
        return own
    return max(own, len(mesh_object.evaluated_get(depsgraph).data.vertices))


@dataclass(frozen=True)
class Estimate:
    """seconds: rough. needed, free: bytes; needed is an upper bound, free is None if the system does not report it."""

    seconds: float
    needed: int
    free: int | None

    @property
    def fits(self) -> bool:
        return self.free is None or self.needed <= self.free

    def text(self) -> str:
        return f"{duration_text(self.seconds)}, up to {amount_text(self.needed)}"


def estimate(work: Work) -> Estimate:
    return Estimate(sum(stage_seconds(work).values()), needed_memory(work), _free_memory())


def other_durations(work: Work) -> list[tuple[str, str]]:
    """The label of each quality that is not chosen, with its time; none for the published method."""
    chosen = cast("ConvertSettings", work.settings)
    if chosen.method == "KAVAN2010":
        return []
    found = []
    for quality, label, _ in QUALITIES:
        if quality != chosen.quality:
            other = copy(chosen)
            other.quality = quality
            seconds = sum(stage_seconds(replace(work, settings=cast("Settings", other))).values())
            found.append((label, duration_text(seconds)))
    return found


def needed_memory(work: Work) -> int:
    """Upper bound of the bytes that a conversion needs, frames included."""
    from ...blender.animation.animation_reader import POSITION_BYTES

    frames = work.frame_count * work.vertex_count * POSITION_BYTES
    return frames + memory_estimate(work.frame_count, work.vertex_count, work.settings, work.jointed)


def check_memory(label: str, work: Work) -> None:
    """Raise NotEnoughMemory if the frames and their solve do not fit into free memory."""
    from ...core.memory import available_memory

    needed, free = needed_memory(work), available_memory()
    if free is not None and needed > free:
        raise NotEnoughMemory(
            f"Converting {label} ({work.vertex_count} vertices, {work.frame_count} frames) needs about "
            f"{amount_text(needed)} of memory, and the machine has {amount_text(free)} free. "
            "Choose a shorter frame range, a larger frame step or fewer bones"
        )


def amount_text(byte_count: int) -> str:
    return f"{byte_count / 1e9:.1f} GB" if byte_count >= 1e9 else f"{byte_count / 1e6:.0f} MB"


_free: tuple[float, int | None] = (-math.inf, None)


def _free_memory() -> int | None:
    """Bytes of free memory, cached for a few seconds: some systems need a program run to tell."""
    global _free
    now = time.monotonic()
    if now - _free[0] > _FREE_SECONDS:
        from ...core.memory import available_memory

        _free = now, available_memory()
    return _free[1]


def spread(
    stages: Generator[tuple[str, float, str], None, Made],
    seconds: dict[str, float],
    clock: Callable[[], float] = time.perf_counter,
) -> Steps[Made]:
    """Generator: turn (stage name, fraction, text) into (overall fraction, text), which never decreases.

    The fraction is elapsed time over elapsed plus remaining time: the current stage's by its own pace, the later
    ones' by the predicted ``seconds`` (of each stage, in order). So a simulation ten times slower than predicted gets
    its share of the bar after a few frames.
    """
    order, shown = list(seconds), 0.0
    begin, stage, stage_begin, last = clock(), "", 0.0, None
    try:
        while True:
            try:
                step = next(stages)
            except StopIteration as end:
                return end.value
            # An unchanged step must yield the same value: the worker is still on it.
            if step != last:
                last, now = step, clock()
                name, fraction, text = step
                if name != stage:
                    stage, stage_begin = name, now
                fraction = min(max(fraction, 0.0), 1.0)
                left = _left(seconds[name], now - stage_begin, fraction)
                left += sum(seconds[later] for later in order[order.index(name) + 1 :])
                passed = now - begin
                # A new step must yield a new value, or the operator would wait for nothing.
                shown = min(max(shown + _LEAST, passed / max(passed + left, _LEAST)), 1.0)
            yield shown, text
    finally:
        stages.close()


def _left(expected: float, passed: float, fraction: float) -> float:
    """Remaining seconds of a stage: at first as predicted, then more and more by its own pace."""
    if fraction <= 0:
        return max(expected - passed, 0.1 * expected)
    trust = min(fraction / _TRUSTED, 1.0)
    return (1 - fraction) * (trust * passed / fraction + (1 - trust) * expected)
