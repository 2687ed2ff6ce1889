# SPDX-License-Identifier: GPL-3.0-or-later
"""A temporary scene, to evaluate or edit a few objects without changing the user's frame, selection or mode."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import bpy

from .data_blocks import is_alive


@contextmanager
def temporary_scene(
    scene: bpy.types.Scene, objects: Iterable[bpy.types.Object], *, own_time: bool = False
) -> Iterator[bpy.types.Scene]:
    """A new scene with ``objects`` and the time settings of ``scene``; removed at the end in any case.

    own_time: its frames are those of the curves, even if ``scene`` stretches time, as for clips. Blender also evaluates
    the objects' dependencies (parents, targets of constraints and drivers).
    """
    temporary = bpy.data.scenes.new("skinning_tools")
    try:
        for name in ("fps", "fps_base", "frame_map_old", "frame_map_new"):
            setattr(temporary.render, name, getattr(scene.render, name))
        if own_time:
            take_own_time(temporary)
        for ob in objects:
            temporary.collection.objects.link(ob)
        yield temporary
    finally:
        # An undo or loading a file may have removed it.
        if is_alive(temporary):
            bpy.data.scenes.remove(temporary)


def take_own_time(temporary: bpy.types.Scene) -> None:
    """Let the frames of a temporary scene be those of the curves."""
    temporary.render.frame_map_old = temporary.render.frame_map_new = 100


def evaluate_frame(scene: bpy.types.Scene, frame: float) -> bpy.types.Depsgraph:
    """Set the frame, which may be fractional, and return the evaluated state of the scene's first view layer."""
    whole = int(frame // 1)
    scene.frame_set(whole, subframe=frame - whole)
    return scene.view_layers[0].depsgraph
