# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips of one mesh: objects with the same vertices in different motion, at different places."""

import bpy
import numpy as np

from tests.blender import moving_meshes
from tests.blender.several_scenes import select

FRAMES = {"Walk": range(1, 9), "Idle": range(7, 15), "Run": range(1, 21)}


def clip(name: str, frames: range, seed: int) -> bpy.types.Object:
    """A grid that two keyed shape keys move in the frames."""
    vertices, faces = moving_meshes.grid()
    ob = moving_meshes.add_object(name, vertices, faces)
    ob.shape_key_add(name="Basis")
    random = np.random.default_rng(seed)
    for number in range(2):
        key = ob.shape_key_add(name=f"Bend {number}")
        moved = np.array(vertices)
        moved[:, 2] += 0.4 * np.sin((1 + 3 * random.random()) * moved[:, number])
        key.data.foreach_set("co", moved.ravel())
        for frame, value in zip((frames[0], frames[len(frames) // 2], frames[-1]), (0.1, 0.9, 0.4), strict=True):
            key.value = value * (0.5 + random.random())
            key.keyframe_insert("value", frame=frame)
    return ob


def character() -> tuple[bpy.types.Object, ...]:
    """Three clips beside each other; Walk is active, one is turned and one scaled."""
    moving_meshes.fresh_scene(24)
    clips = tuple(clip(name, frames, seed) for seed, (name, frames) in enumerate(FRAMES.items()))
    clips[0].location, clips[1].location, clips[2].location = (1, 2, 3), (5, 0, 0), (-5, 0, 0)
    clips[1].scale, clips[2].rotation_euler = (2, 2, 2), (0, 0, 1)
    select(*clips)
    return clips


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 6, "iterations": 4, "as_clips": True} | given)


def local_positions(ob: bpy.types.Object, frame: int) -> np.ndarray:
    """(N, 3) in the object's own space, as the view layer shows it."""
    bpy.context.scene.frame_set(frame)
    found = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    return np.array([vertex.co for vertex in found.vertices])
