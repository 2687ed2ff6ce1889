# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene for exporters and importers, which work on the scene of the window."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import bpy

from ...blender.armatures import set_mode
from ...blender.temporary_scene import temporary_scene


@contextmanager
def shown_in_window(context: bpy.types.Context, scene: bpy.types.Scene) -> Iterator[None]:
    """Context in which the window shows ``scene``, and operators work on it; afterwards it shows what it did."""
    window = context.window or context.window_manager.windows[0]
    before, view_layer = window.scene, window.view_layer
    # Exporters go to Object Mode, and armatures share their mode between scenes.
    view_layer.update()
    posed = [ob for ob in view_layer.objects if ob.type == "ARMATURE" and ob.mode != "OBJECT"]
    modes = [ob.mode for ob in posed]
    window.scene = scene
    try:
        with context.temp_override(window=window, scene=scene, view_layer=scene.view_layers[0]):
            yield
    finally:
        window.scene, window.view_layer = before, view_layer
        for ob, mode in zip(posed, modes, strict=True):
            if ob.mode != mode:
                set_mode(context, ob, mode)


@contextmanager
def scene_to_export(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str
) -> Iterator[bpy.types.Scene]:
    """A temporary scene called ``name`` with ``objects``, all selected, and the frames and units of the user's."""
    own = context.scene
    hidden = [(ob, ob.hide_viewport, ob.hide_select) for ob in objects]
    with temporary_scene(own, objects) as scene:
        scene.name = name
        scene.frame_start, scene.frame_end = own.frame_start, own.frame_end
        scene.frame_set(own.frame_current, subframe=own.frame_subframe)
        for each in ("system", "scale_length"):
            setattr(scene.unit_settings, each, getattr(own.unit_settings, each))
        view_layer = scene.view_layers[0]
        try:
            for ob in objects:
                if ob.library is None:
                    ob.hide_viewport = ob.hide_select = False
            view_layer.update()
            for ob in objects:
                ob.select_set(True, view_layer=view_layer)
            view_layer.objects.active = objects[0]
            yield scene
        finally:
            for ob, hide_viewport, hide_select in hidden:
                if ob.library is None:
                    ob.hide_viewport, ob.hide_select = hide_viewport, hide_select
