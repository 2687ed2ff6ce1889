# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames of a caller's range."""

import bpy

from ..preconditions import unmet


def frame_range(scene: bpy.types.Scene, start: int | None, end: int | None, step: int, label: str = "") -> range:
    """Every ``step``-th frame from ``start`` to ``end``, the last one included; None stands for the scene's.

    label: what messages call the object that is read, "" to leave it out. Raises BadSettings.
    """
    start = scene.frame_start if start is None else start
    end = scene.frame_end if end is None else end
    if step < 1:
        raise unmet("OUT_OF_RANGE", setting="Frame Step", allowed="at least 1", value=step)
    if end < start:
        raise unmet("RANGE_REVERSED", of_object=f" of {label}" if label else "", start=start, end=end)
    return range(start, end + 1, step)


def moving_range(scene: bpy.types.Scene, start: int | None, end: int | None, step: int, label: str) -> range:
    """``frame_range`` with at least two frames. Raises BadSettings, BadAnimation."""
    numbers = frame_range(scene, start, end, step, label)
    if len(numbers) < 2:
        last = scene.frame_end if end is None else end
        raise unmet("ONE_FRAME", start=numbers.start, end=last, step=step, object=label)
    return numbers
