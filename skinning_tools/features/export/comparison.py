# SPDX-License-Identifier: GPL-3.0-or-later
"""An exported file, read by Blender's importer into a scene of its own, compared with what was exported."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...blender import actions
from ...blender.armatures import edit_bones_of
from ...blender.attributes import read_attribute
from ...blender.data_blocks import local_copy
from ...blender.skin_reader import armature_modifier, armature_of, rest_positions
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...core.errors import BadScene
from ...core.geometry import diagonal, transform_points
from .clips import FileClip, play_read, played
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
    file does not have. sheared: names of bones that shear at some frame. by_clip: the largest distance at the frames of
    each clip, if there are several."""

    largest: float
    half_way: float
    diagonal: float
    missing: int
    sheared: tuple[str, ...]
    by_clip: dict[str, float]


def compare(
    context: bpy.types.Context,
    meshes: Sequence[bpy.types.Object],
    path: Path,
    file_format: Format,
    frames: Sequence[int],
    clips: Sequence[FileClip] = (),
) -> Generator[float, None, Comparison]:
    """Generator: read ``path`` and play it beside ``meshes`` at ``frames``, or each of the ``clips`` at its own; yields
    the fraction done, returns a Comparison. What was read is removed. Raises BadScene if Blender cannot read the
    file."""
    armature = armature_of(meshes[0])
    with (
        _played_copies(meshes) as copies,
        temporary_scene(context.scene, [*copies, armature], own_time=bool(clips)) as scene,
        _read(context, path, file_format) as (read_scene, read),
    ):
        beside = _Beside(scene, copies, read_scene, read, armature)
        total = sum(len(each.clip.numbers) for each in clips) or len(frames)
        for number, clip in enumerate(clips or (None,)):
            own = frames if clip is None else clip.clip.numbers
            shift = _shift(read, file_format, own[0], clip)
            for row, frame in enumerate(own):
                # Between two turns the scene plays what the user has chosen.
                with nullcontext() if clip is None else played(armature, clip):
                    beside.look(number, frame, shift, last=row == len(own) - 1)
                yield beside.looks / total
        return beside.comparison(meshes, [each.name for each in clips])


class _Beside:
    """The scene and the read file, frame by frame. worst (2, C, n, m): the largest distances at the frames and half-way
    in each clip, of n read vertices from m candidates."""

    def __init__(
        self,
        scene: bpy.types.Scene,
        copies: Sequence[bpy.types.Object],
        read_scene: bpy.types.Scene,
        read: Sequence[bpy.types.Object],
        armature: bpy.types.Object,
    ):
        self._scene, self._copies, self._read_scene, self._read = scene, copies, read_scene, read
        self._armature, self.looks = armature, 0
        self._sheared: set[str] = set()
        self._worst: list[np.ndarray] = []

    def _begin(self, frame: int, shift: int) -> None:
        from scipy.spatial import cKDTree

        depsgraph = evaluate_frame(self._scene, frame)
        self._rest = _at_rest(self._copies, depsgraph)
        self._found_rest = _at_rest(self._read, evaluate_frame(self._read_scene, frame + shift))
        self._diagonal = diagonal(_positions(self._copies, depsgraph))
        count = min(_AT_ONE_PLACE, len(self._rest))
        apart, candidates = (each.reshape(-1, count) for each in cKDTree(self._rest).query(self._found_rest, k=count))
        elsewhere = apart > apart[:, :1] + _SAME_PLACE * self._diagonal
        # Nearly always one column is left.
        alone = elsewhere.all(axis=0)
        self._candidates, self._elsewhere = candidates[:, ~alone], elsewhere[:, ~alone]

    def look(self, clip: int, frame: int, shift: int, last: bool) -> None:
        """Compare at a frame and half-way to the next, unless it is the ``last``, which the clip numbered ``clip`` now
        plays."""
        if not self.looks:
            self._begin(frame, shift)
        if clip == len(self._worst):
            self._worst.append(np.zeros((2, *self._candidates.shape)))
        for half in (0,) if last else (0, 1):
            moment = frame + half / 2
            expected = _positions(self._copies, evaluate_frame(self._scene, moment))
            found = _positions(self._read, evaluate_frame(self._read_scene, moment + shift))
            distances = np.linalg.norm(expected[self._candidates] - found[:, None], axis=2)
            np.maximum(self._worst[clip][half], distances, out=self._worst[clip][half])
        self._sheared.update(_sheared(self._armature, self._scene))
        self.looks += 1

    def comparison(self, meshes: Sequence[bpy.types.Object], names: Sequence[str]) -> Comparison:
        from scipy.spatial import cKDTree

        every = np.array(self._worst)
        worst = every.max(axis=0)
        worst[:, self._elsewhere] = np.inf
        chosen = worst[0].argmin(axis=1)[:, None]
        largest, half_way = (np.take_along_axis(each, chosen, axis=1).max(initial=0.0) for each in worst)
        of_clips = [float(np.take_along_axis(each[0], chosen, axis=1).max(initial=0.0)) for each in every]
        away = cKDTree(self._found_rest).query(self._rest[_in_faces(meshes)])[0]
        missing = int((away > _MISSING * self._diagonal).sum())
        sheared = tuple(sorted(self._sheared))
        by_clip = dict(zip(names, of_clips, strict=False))
        return Comparison(float(largest), float(half_way), self._diagonal, missing, sheared, by_clip)


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
        with temporary_scene(context.scene, [], own_time=True) as scene:
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
            for rig in {ob.find_armature() for ob in meshes}:
                _disconnect(context, rig)
            yield scene, meshes
    finally:
        bpy.data.batch_remove([block for block in _data_blocks() if block not in before])


def _disconnect(context: bpy.types.Context, armature: bpy.types.Object) -> None:
    """Let all bones move as the file says: the FBX importer in Python connects each bone that begins where its parent
    ends, and connected bones ignore the keys of their locations."""
    if any(bone.use_connect for bone in armature.data.bones):
        with edit_bones_of(context, armature) as edit_bones:
            for bone in edit_bones:
                bone.use_connect = False


def _data_blocks() -> Iterator[bpy.types.ID]:
    for prop in bpy.data.bl_rna.properties:
        # Blender's own: they follow what is displayed.
        if prop.type == "COLLECTION" and prop.identifier not in ("window_managers", "screens", "workspaces"):
            yield from getattr(bpy.data, prop.identifier)


def _shift(read: Sequence[bpy.types.Object], file_format: Format, start: int, clip: FileClip | None) -> int:
    """The frames by which the importer has moved the animation, whose first frame was ``start``, or the ``clip``, which
    then plays."""
    if clip is not None:
        begin = min(play_read(rig, read, clip.name) for rig in {ob.find_armature() for ob in read})
        return 0 if file_format is FORMATS["GLTF"] else round(begin) - start
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
    return transform_points(points, matrix)


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
