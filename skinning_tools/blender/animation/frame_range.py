# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames that a caller asks for."""

import bpy

from ...core.errors import BadSettings


def frame_range(scene: bpy.types.Scene, start: int | None, end: int | None, step: int, label: str = "") -> range:
    """Every ``step``-th frame from ``start`` to ``end``, the last one included; None stands for the scene's.

    label: what messages call the object that is read, if they are to name it. Raises BadSettings.
    """
    start = scene.frame_start if start is None else start
    end = scene.frame_end if end is None else end
    if step < 1:
        raise BadSettings(f"The frame step{f' for {label}' if label else ''} must be at least 1, not {step}")
    if end < start:
        raise BadSettings(
            f"The frame range{f' of {label}' if label else ''} is inside out: it starts at frame {start} and ends at "
            f"frame {end}. Choose an end after the start"
        )
    return range(start, end + 1, step)
