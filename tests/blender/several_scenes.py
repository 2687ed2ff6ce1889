# SPDX-License-Identifier: GPL-3.0-or-later
"""Several objects that are converted to one armature, and how far each is from its source."""

import bpy
import numpy as np

from skinning_tools.core.animation import ErrorMeter, unit_scale
from tests.blender import moving_meshes, scenes

FRAMES = range(1, 9)


def select(active, *others):
    bpy.context.view_layer.update()
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob == active or ob in others)
    bpy.context.view_layer.objects.active = active


def add(name: str, data) -> bpy.types.Object:
    ob = bpy.data.objects.new(name, data)
    scenes.home().objects.link(ob)
    return ob


def character():
    """Body, clothes and eye: shape keys on a scaled object, a modifier on a turning child, a rigid mirrored part."""
    body = moving_meshes.waving_grid("Body")
    body.scale, body.rotation_euler = (2, 2, 2), (0.3, 0.2, 0.1)
    scenes.key_property(body, "location", {1: (0, 0, 0), 8: (1, 0, 2)})
    clothes = moving_meshes.twisting_bar("Clothes")
    clothes.parent, clothes.location, clothes.scale = body, (0, 0, 0.2), (1, 0.5, 1)
    scenes.key_property(clothes, "rotation_euler", {1: (0, 0, 0), 8: (0, 0.4, 0.5)})
    eye = moving_meshes.add_object("Eye", *moving_meshes.grid(5, 4))
    eye.scale = (-0.3, 0.2, 0.4)
    scenes.key_property(eye, "location", {1: (1, 0, 1), 8: (1, 1, 3)})
    select(body, clothes, eye)
    return body, clothes, eye


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 8, "iterations": 5, "selected_objects": True} | given)


def skinned_of(*sources):
    return [bpy.data.objects[f"{ob.name}_skinned"] for ob in sources]


def played(objects, frame: int) -> np.ndarray:
    """(N, 3) world positions of all vertices of the objects."""
    return np.concatenate([moving_meshes.world_positions(ob, frame) for ob in objects])


def measured(sources, skinned) -> ErrorMeter:
    """In world space, by the test's own way; in the scale of all sources at the first frame."""
    frames = [(played(sources, frame), played(skinned, frame)) for frame in FRAMES]
    meter = ErrorMeter(unit_scale(frames[0][0][None]), len(frames[0][0]))
    for expected, actual in frames:
        meter.add(expected, actual)
    return meter
