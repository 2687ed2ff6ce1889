# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinned meshes out through Blender's exporters and in again, with the settings of the extension's own export."""

from pathlib import Path

import bpy
import numpy as np

from skinning_tools.blender import actions
from skinning_tools.features.export.engines import FORMATS
from tests.blender import moving_meshes

BY_ENDING = {each.ending: each for each in FORMATS.values()}
# A custom attribute in glTF: the mesh's vertex for each vertex of the file. Exact below 2^24.
VERTEX = "_VERTEX"


def number_vertices(ob) -> None:
    """Store each vertex's index in the attribute VERTEX."""
    attribute = ob.data.attributes.get(VERTEX) or ob.data.attributes.new(VERTEX, "FLOAT", "POINT")
    attribute.data.foreach_set("value", np.arange(len(ob.data.vertices), dtype=np.float32))


def vertex_numbers(ob) -> np.ndarray:
    """(N,) the vertex of the exported mesh for each imported vertex: by VERTEX, or, if that is not in the file, in the
    order that FBX and USD preserve."""
    attribute = ob.data.attributes.get(VERTEX)
    if attribute is None:
        return np.arange(len(ob.data.vertices))
    numbers = np.empty(len(attribute.data), np.float32)
    attribute.data.foreach_get("value", numbers)
    return numbers.astype(np.int64)


def export(ob, path: Path, **changes) -> Path:
    """Write ``ob`` and its armature in the format of the path's ending; ``changes`` to the settings above."""
    bpy.ops.object.select_all(action="DESELECT")
    for member in (ob, ob.find_armature()):
        member.select_set(True)
    bpy.context.view_layer.objects.active = ob
    BY_ENDING[path.suffix].save(path, **changes)
    return path


def reimport(path: Path, fps: int, *, new_fbx: bool = False, clamped: bool = True) -> bpy.types.Object:
    """The skinned mesh of a file, in a new scene without anything else.

    new_fbx: read FBX by the importer that Blender has from 4.5 on. clamped: leave the shape keys' range at 0 to 1.
    """
    scene = moving_meshes.fresh_scene()
    scene.render.fps = fps
    readers = {
        ".glb": bpy.ops.import_scene.gltf,
        ".fbx": bpy.ops.wm.fbx_import if new_fbx else bpy.ops.import_scene.fbx,
        ".usdc": bpy.ops.wm.usd_import,
    }
    assert readers[path.suffix](filepath=str(path)) == {"FINISHED"}
    (ob,) = (ob for ob in scene.objects if ob.type == "MESH" and ob.find_armature())
    if ob.data.shape_keys is not None and not clamped:
        for block in ob.data.shape_keys.key_blocks:
            block.slider_min, block.slider_max = -10, 10
    return ob


def first_frame(ob) -> int:
    """The first frame of the imported animation."""
    owners = [ob.find_armature(), ob.data.shape_keys]
    curves = [curve for owner in owners if owner and owner.animation_data for curve in actions.existing_curves(owner)]
    return round(min(point.co[0] for curve in curves for point in curve.keyframe_points))


def played(ob, start: int, count: int) -> np.ndarray:
    """(F, N, 3) float32 positions in the world at ``count`` frames from ``start`` on."""
    return np.array([moving_meshes.world_positions(ob, start + number) for number in range(count)])


def to_z_up(positions: np.ndarray) -> np.ndarray:
    """From the axes of glTF, Y up, to Blender's. positions (…, 3)"""
    x, y, z = np.moveaxis(positions, -1, 0)
    return np.stack([x, -z, y], axis=-1)


def diagonal(frames: np.ndarray) -> float:
    """The diagonal of the box around the first of ``frames`` (F, N, 3)."""
    return float(np.linalg.norm(np.ptp(frames[0], axis=0)))


def largest_distance(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance of a vertex in any frame, as a fraction of the diagonal. Both (F, N, 3)."""
    return float(np.linalg.norm(found - expected, axis=-1).max()) / diagonal(expected)
