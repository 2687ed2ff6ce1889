# SPDX-License-Identifier: GPL-3.0-or-later
"""The scene's current frame, put back after it has been moved about."""

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from ..data_blocks import is_alive


@contextmanager
def frame_kept(scene: bpy.types.Scene) -> Iterator[None]:
    """Whatever happens inside, the scene's frame and subframe are as before, and evaluated, afterwards."""
    frame, subframe = scene.frame_current, scene.frame_subframe
    try:
        yield
    finally:
        if is_alive(scene):
            scene.frame_set(frame, subframe=subframe)
