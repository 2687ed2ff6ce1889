# SPDX-License-Identifier: GPL-3.0-or-later
"""An exported file, read by Blender's importer into a scene of its own, compared with what was exported."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...blender import actions
from ...blender.attributes import read_attribute
from ...blender.data_blocks import local_copy
from ...blender.skin_reader import armature_modifier, armature_of, rest_positions
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...core.errors import BadScene
from .engines import FORMATS, Format
from .scenes import shown_in_window

# Files have each vertex several times, where normals or texture coordinates have a seam. Vertices at one place, such as
# those of two surfaces that touch, are told apart by their motion; at most so many.
_AT_ONE_PLACE = 16
# Relative to the diagonal: rest positions in the file differ by rounding.
_SAME_PLACE = 1e-6
_MISSING = 1e-5
# The cosine between two axes of a bone that shears.
_SHEAR = 1e-3


@dataclass(frozen=True)
class Comparison:
    """Distances between the mesh in the file and in the scene, in scene units: the largest at the frames, the largest
    half-way between two frames, and the diagonal of the mesh at the first frame. missing: vertices of faces that the
    file does not have. sheared: names of bones that shear at some frame."""

    largest: float
    half_way: float
    diagonal: float
    missing: int
    sheared: tuple[str, ...]


def compare(
    context: bpy.types.Context,
    meshes: Sequence[bpy.types.Object],
    path: Path,
    file_format: Format,
    frames: Sequence[int],
) -> Generator[float, None, Comparison]:
    """Generator: read ``path`` and play it beside ``meshes`` at ``frames``; yields the fraction done, returns a
    Comparison. What was read is removed. Raises BadScene if Blender cannot read the file."""
    from scipy.spatial import cKDTree

    armature = armature_of(meshes[0])
    with (
        _played_copies(meshes) as copies,
        temporary_scene(context.scene, [*copies, armature]) as scene,
        _read(context, path, file_format) as (read_scene, read),
    ):
        shift = _shift(read, file_format, frames[0])
        depsgraph, read_depsgraph = evaluate_frame(scene, frames[0]), evaluate_frame(read_scene, frames[0] + shift)
        rest, found_rest = _at_rest(copies, depsgraph), _at_rest(read, read_depsgraph)
        diagonal = float(np.linalg.norm(np.ptp(_positions(copies, depsgraph), axis=0)))
        count = min(_AT_ONE_PLACE, len(rest))
        apart, candidates = (each.reshape(-1, count) for each in cKDTree(rest).query(found_rest, k=count))
        elsewhere = apart > apart[:, :1] + _SAME_PLACE * diagonal
        # Nearly always one column is left.
        alone = elsewhere.all(axis=0)
        candidates, elsewhere = candidates[:, ~alone], elsewhere[:, ~alone]
        worst = np.zeros((2, *candidates.shape))
        sheared: set[str] = set()
        for row, frame in enumerate(frames):
            for half in (0, 1) if frame != frames[-1] else (0,):
                moment = frame + half / 2
                expected = _positions(copies, evaluate_frame(scene, moment))
                found = _positions(read, evaluate_frame(read_scene, moment + shift))
                distances = np.linalg.norm(expected[candidates] - found[:, None], axis=2)
                np.maximum(worst[half], distances, out=worst[half])
            sheared.update(_sheared(armature, scene))
            yield (row + 1) / len(frames)
    worst[:, elsewhere] = np.inf
    chosen = worst[0].argmin(axis=1)[:, None]
    largest, half_way = (np.take_along_axis(each, chosen, axis=1).max(initial=0.0) for each in worst)
    away = cKDTree(found_rest).query(rest[_in_faces(meshes)])[0]
    missing = int((away > _MISSING * diagonal).sum())
    return Comparison(float(largest), float(half_way), diagonal, missing, tuple(sorted(sheared)))


@contextmanager
def _played_copies(meshes: Sequence[bpy.types.Object]) -> Iterator[list[bpy.types.Object]]:
    """Copies of the objects without the modifiers that files do not have."""
    copies: list[bpy.types.Object] = []
    try:
        for ob in meshes:
            copy = local_copy(ob)
            copies.append(copy)
            kept = armature_modifier(copy)
            for modifier in [each for each in copy.modifiers if each != kept]:
                copy.modifiers.remove(modifier)
            if kept is not None:
                kept.show_viewport = True
        yield copies
    finally:
        bpy.data.batch_remove(copies)


@contextmanager
def _read(
    context: bpy.types.Context, path: Path, file_format: Format
) -> Iterator[tuple[bpy.types.Scene, list[bpy.types.Object]]]:
    """The scene of a read file and its skinned meshes; at the end, everything that was read is removed."""
    before = set(_data_blocks())
    try:
        with temporary_scene(context.scene, []) as scene:
            scene.render.frame_map_old = scene.render.frame_map_new = 100
            scene.unit_settings.scale_length = context.scene.unit_settings.scale_length
            # Importers keep notes on the first scene of the file, by name: not on one of the user's.
            scene.name = " "
            try:
                with shown_in_window(context, scene):
                    file_format.load(path)
            except RuntimeError as error:
                raise BadScene(f"Blender's importer cannot read {path}: {error}") from error
            meshes = [ob for ob in scene.objects if ob.type == "MESH" and ob.find_armature() is not None]
            if not meshes:
                raise BadScene(f"Blender's importer finds no skinned mesh in {path}")
            yield scene, meshes
    finally:
        bpy.data.batch_remove([block for block in _data_blocks() if block not in before])


def _data_blocks() -> Iterator[bpy.types.ID]:
    for prop in bpy.data.bl_rna.properties:
        # Blender's own: they follow what is displayed.
        if prop.type == "COLLECTION" and prop.identifier not in ("window_managers", "screens", "workspaces"):
            yield from getattr(bpy.data, prop.identifier)


def _shift(read: Sequence[bpy.types.Object], file_format: Format, start: int) -> int:
    """The frames by which the importer has moved the animation, whose first frame was ``start``."""
    if file_format is FORMATS["GLTF"]:
        return 0
    owners = [owner for ob in read for owner in (ob.find_armature(), ob.data.shape_keys) if owner is not None]
    curves = [curve for owner in owners for curve in actions.existing_curves(owner)]
    times = [curve.keyframe_points[0].co[0] for curve in curves if len(curve.keyframe_points)]
    return round(min(times)) - start if times else 0


def _at_rest(objects: Sequence[bpy.types.Object], depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    """(N, 3) rest positions of all objects in the world."""
    return np.concatenate([_in_world(ob, rest_positions(ob.data), depsgraph) for ob in objects])


def _positions(objects: Sequence[bpy.types.Object], depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    """(N, 3) positions of all objects in the world."""
    return np.concatenate(
        [_in_world(ob, read_attribute(ob.evaluated_get(depsgraph).data, "position"), depsgraph) for ob in objects]
    )


def _in_world(ob: bpy.types.Object, points: np.ndarray, depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    matrix = np.array(ob.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def _in_faces(meshes: Sequence[bpy.types.Object]) -> np.ndarray:
    """The vertices, counted through all meshes, that faces have."""
    starts = np.cumsum([0, *(len(ob.data.vertices) for ob in meshes)])
    found = []
    for ob, start in zip(meshes, starts, strict=False):
        corners = np.empty(len(ob.data.loops), np.int32)
        ob.data.loops.foreach_get("vertex_index", corners)
        found.append(np.unique(corners) + start)
    return np.concatenate(found)


def _sheared(armature: bpy.types.Object, scene: bpy.types.Scene) -> list[str]:
    """The deforming bones whose axes are not at right angles to each other at the scene's frame."""
    posed = armature.evaluated_get(scene.view_layers[0].depsgraph).pose.bones
    matrices = np.empty((len(posed), 4, 4), np.float32)
    posed.foreach_get("matrix", matrices.ravel())
    # Stored by columns, so that each row is an axis.
    axes = matrices[:, :3, :3].astype(np.float64)
    axes /= np.maximum(np.linalg.norm(axes, axis=2, keepdims=True), np.finfo(np.float64).tiny)
    cosines = np.abs(axes @ axes.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    # A flat axis has no direction.
    flat = np.linalg.norm(matrices[:, :3, :3], axis=2).min(axis=1) < 1e-6
    deforming = armature.data.bones
    return [
        bone.name
        for bone, cosine, is_flat in zip(posed, cosines.tolist(), flat.tolist(), strict=True)
        if cosine > _SHEAR and not is_flat and deforming[bone.name].use_deform
    ]
