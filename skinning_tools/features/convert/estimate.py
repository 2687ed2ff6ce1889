# SPDX-License-Identifier: GPL-3.0-or-later
"""What a conversion will take, time and memory, before it starts; and how its progress bar moves."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bpy.app.translations import pgettext_iface as iface_

from ...blender.animation.simulations import own_simulation_start
from ...blender.background import Steps
from ...blender.object_checks import visible_modifiers
from ...blender.wording import duration_text
from ...core.errors import NotEnoughMemory
from ...core.run_time import Work, stage_seconds
from ...core.solve_memory import memory_estimate
from ...ui.settings import RANGE_NAMES
from .settings import ConvertSettings

# From this part of a stage on its own pace alone says what is left of it.
_TRUSTED = 0.1
_LEAST = 1e-9
# How old a look at the free memory may be.
_FREE_SECONDS = 20.0


def work_of(context, objects, settings: ConvertSettings) -> Work:
    """What converting ``objects`` has to do, as far as it can be told without evaluating anything; cheap enough for a
    panel's draw."""
    scene, step = context.scene, settings.frame_step
    start = scene.frame_start if settings.frame_start is None else settings.frame_start
    end = scene.frame_end if settings.frame_end is None else settings.frame_end
    count = len(range(start, end + 1, step)) if step > 0 else 0
    counts = [vertex_count(context.view_layer, ob) for ob in objects]
    first = [own_simulation_start(scene, ob) for ob in objects]
    starts = [each for each in first if each is not None]
    played = count
    if starts:
        played = max(end + 1 - min(start, *starts), count)
    elif len(objects) == 1 and objects[0].data.shape_keys is not None and not visible_modifiers(objects[0]):
        played = 0
    simulated = played * sum(own for own, each in zip(counts, first, strict=True) if each is not None)
    return Work(count, sum(counts), settings, played, simulated, settings.key_tolerance)


def work_of_settings(context, objects, chosen) -> Work:
    """``work_of`` the scene's settings, features.convert.settings.SkinningConversionSettings."""
    names = ConvertSettings.declared.keys() - (RANGE_NAMES if chosen.use_scene_range else ())
    return work_of(context, objects, ConvertSettings(**{name: getattr(chosen, name) for name in names}))


def vertex_count(view_layer, object) -> int:
    """Vertices of the evaluated mesh where the view layer has it, and of the mesh itself where it has not."""
    own, depsgraph = len(object.data.vertices), view_layer.depsgraph
    if depsgraph is None:
        return own
    return max(own, len(object.evaluated_get(depsgraph).data.vertices))


@dataclass(frozen=True)
class Estimate:
    """seconds: rough. needed, free: bytes, at the most; free is None where the system does not tell."""

    seconds: float
    needed: int
    free: int | None

    @property
    def fits(self) -> bool:
        return self.free is None or self.needed <= self.free

    def text(self) -> str:
        text = iface_("{time}, up to {amount}")
        return text.format(time=duration_text(self.seconds), amount=amount_text(self.needed))


def estimate(work: Work) -> Estimate:
    return Estimate(sum(stage_seconds(work).values()), needed_memory(work), _free_memory())


def needed_memory(work: Work) -> int:
    """Bytes that a conversion needs at the most, frames included."""
    from ...blender.animation.animation_reader import POSITION_BYTES

    frames = work.frame_count * work.vertex_count * POSITION_BYTES
    return frames + memory_estimate(work.frame_count, work.vertex_count, work.settings)


def check_memory(label: str, work: Work) -> None:
    """Raises NotEnoughMemory where the frames and their solve do not fit into the memory that is free."""
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
    """As of a few seconds ago: on some systems a program has to be started to know."""
    global _free
    now = time.monotonic()
    if now - _free[0] > _FREE_SECONDS:
        from ...core.memory import available_memory

        _free = now, available_memory()
    return _free[1]


def spread(
    stages: Iterator[tuple[str, float, str]], seconds: dict[str, float], clock: Callable[[], float] = time.perf_counter
) -> Steps:
    """Generator: (stage name, fraction, text) as (overall fraction, text); never goes back.

    The fraction is the time that has passed, of that and what is left: of the present stage as its own pace says, of
    the later ones as ``seconds`` (of each stage, in their order) foretell. So a simulation that takes ten times what
    was foretold has its share of the bar after a few frames.
    """
    order, shown = list(seconds), 0.0
    begin, stage, stage_begin, last = clock(), "", 0.0, None
    try:
        while True:
            try:
                step = next(stages)
            except StopIteration as end:
                return end.value
            # A step that has not changed must stay the same: the worker is still at it.
            if step != last:
                last, now = step, clock()
                name, fraction, text = step
                if name != stage:
                    stage, stage_begin = name, now
                fraction = min(max(fraction, 0.0), 1.0)
                left = _left(seconds[name], now - stage_begin, fraction)
                left += sum(seconds[later] for later in order[order.index(name) + 1 :])
                passed = now - begin
                # Never the same for another step, or the operator would wait where there is nothing to wait for.
                shown = min(max(shown + _LEAST, passed / max(passed + left, _LEAST)), 1.0)
            yield shown, text
    finally:
        stages.close()


def _left(expected: float, passed: float, fraction: float) -> float:
    """Seconds that a stage still takes: at first as foretold, then more and more by its own pace."""
    if fraction <= 0:
        return max(expected - passed, 0.1 * expected)
    trust = min(fraction / _TRUSTED, 1.0)
    return (1 - fraction) * (trust * passed / fraction + (1 - trust) * expected)
