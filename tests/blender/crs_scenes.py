# SPDX-License-Identifier: GPL-3.0-or-later
"""The Center of Rotation modifier on a skinned mesh, compared with core at several frames."""

import bpy
import numpy as np

from skinning_tools.blender.center_records import native_modifier
from tests.blender import scenes
from tests.blender.skinned_meshes import diagonal, expected

FRAMES = (1, 3, 4, 6, 8)


TOLERANCE = 1e-5


def add(ob):
    """Bake the centers and add the modifier; returns it."""
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.bake_rotation_centers()
    assert bpy.ops.skinning.add_center_of_rotation_modifier() == {"FINISHED"}
    return native_modifier(ob)


def deforms_as_core(ob, frames=FRAMES, rest=None) -> None:
    bpy.context.view_layer.update()
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        difference = scenes.evaluated_positions(ob) - expected(ob, rest=rest)
        assert np.abs(difference).max() < TOLERANCE * diagonal(ob), frame
