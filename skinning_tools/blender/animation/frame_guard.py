# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores the scene's current frame."""

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from ..data_blocks import is_alive


@contextmanager
def frame_kept(scene: bpy.types.Scene) -> Iterator[None]:
    """Restore and evaluate the scene's frame and subframe after the block, however it ends."""
    frame, subframe = scene.frame_current, scene.frame_subframe
    try:
        yield
    finally:
        if is_alive(scene):
            scene.frame_set(frame, subframe=subframe)
