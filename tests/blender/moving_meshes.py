# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving meshes for the tests of whole conversions, and the state that these compare before and after."""

from pathlib import Path

import bpy
import numpy as np

from tests.blender import scenes


def fresh_scene(frame_end: int = 8) -> bpy.types.Scene:
    """An empty file whose scene has the frames 1 to ``frame_end``."""
    scenes.empty_scene()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, frame_end
    scene.frame_set(1)
    return scene


def add_object(name: str, vertices, faces=()) -> bpy.types.Object:
    """A mesh object, linked, active and the only one selected. vertices (N, 3)."""
    for other in bpy.context.selected_objects:
        other.select_set(False)
    return scenes.mesh_object(vertices, faces, name=name)


def grid(columns: int = 9, rows: int = 7):
    """Vertices (N, 3) and quads of a grid in the xy plane, two units wide."""
    x, y = np.meshgrid(np.linspace(-1, 1, columns), np.linspace(-0.7, 0.7, rows))
    vertices = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    faces = [
        (
            row * columns + column,
            row * columns + column + 1,
            (row + 1) * columns + column + 1,
            (row + 1) * columns + column,
        )
        for row in range(rows - 1)
        for column in range(columns - 1)
    ]
    return vertices, faces


def waving_grid(name: str = "Flag", columns: int = 9, rows: int = 7) -> bpy.types.Object:
    """A grid that two keyed shape keys bend, over the scene's range."""
    vertices, faces = grid(columns, rows)
    ob = add_object(name, vertices, faces)
    add_waving_keys(ob)
    return ob


def saved_flag(path: Path) -> Path:
    """A file with the waving grid alone; returns ``path``."""
    fresh_scene()
    waving_grid()
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def add_waving_keys(ob: bpy.types.Object) -> None:
    scene = bpy.context.scene
    positions = np.array([vertex.co for vertex in ob.data.vertices])
    ob.shape_key_add(name="Basis")
    for index, name in enumerate(("Bend", "Wave")):
        key = ob.shape_key_add(name=name)
        moved = positions.copy()
        moved[:, 2] += 0.5 * np.sin((2 + index) * positions[:, index])
        moved[:, 0] *= 1 - 0.2 * index
        key.data.foreach_set("co", moved.ravel())
        middle = (scene.frame_start + scene.frame_end) // 2
        for frame, value in ((scene.frame_start, 0.0), (middle, 1.0 - index), (scene.frame_end, 0.3 + 0.7 * index)):
            key.value = value
            key.keyframe_insert("value", frame=frame)


def key_each_frame(ob: bpy.types.Object, frames: np.ndarray, first: int) -> None:
    """Give the object one relative shape key for each of the ``frames``, keyed to 1 on its frame alone."""
    ob.shape_key_add(name="Basis")
    for number, positions in enumerate(frames, start=first):
        key = ob.shape_key_add(name=f"Frame {number}")
        key.points.foreach_set("co", positions.ravel())
        for frame, value in ((number - 1, 0.0), (number, 1.0), (number + 1, 0.0)):
            key.value = value
            key.keyframe_insert("value", frame=frame)


def twisting_bar(name: str = "Bar") -> bpy.types.Object:
    """A grid that a keyed Simple Deform modifier twists: no shape keys, so read through the evaluated mesh."""
    ob = add_object(name, *grid())
    modifier = ob.modifiers.new("Twist", "SIMPLE_DEFORM")
    modifier.deform_method = "TWIST"
    modifier.deform_axis = "X"
    scene = bpy.context.scene
    for frame, angle in ((scene.frame_start, 0.0), (scene.frame_end, 1.5)):
        modifier.angle = angle
        modifier.keyframe_insert("angle", frame=frame)
    return ob


def cached_grid(path: Path, frames: np.ndarray, name: str = "Cached") -> bpy.types.Object:
    """A grid moved by a Mesh Cache modifier that reads ``frames`` (F, N, 3), the first at the scene's frame 1."""
    scenes.write_pc2(path, frames)
    ob = add_object(name, *grid())
    scenes.point_cache(ob, path, "PC2")
    return ob


def waving_frames(frame_count: int) -> np.ndarray:
    """(F, N, 3) positions of the grid in a wave."""
    frames = np.repeat(grid()[0][None], frame_count, axis=0)
    frames[:, :, 2] = 0.3 * np.sin(2 * frames[:, :, 0] + np.arange(frame_count)[:, None])
    return frames


def world_positions(ob: bpy.types.Object, frame: int) -> np.ndarray:
    """(N, 3) world-space positions of the object as Blender evaluates it at a frame."""
    bpy.context.scene.frame_set(frame)
    return scenes.world_positions(ob)


def through_gltf(path: Path) -> bpy.types.Scene:
    """Export the file as glTF, and import that into a new one; returns its scene."""
    mode = {} if hasattr(bpy.types.Action, "slots") else {"export_animation_mode": "ACTIVE_ACTIONS"}
    fps = bpy.context.scene.render.fps
    bpy.ops.export_scene.gltf(filepath=str(path), **mode)
    scene = fresh_scene()
    scene.render.fps = fps
    bpy.ops.import_scene.gltf(filepath=str(path))
    return scene


def state() -> tuple:
    """All data that a failed or cancelled conversion must not change."""
    return scenes.data_blocks(), scenes.ui_state()
