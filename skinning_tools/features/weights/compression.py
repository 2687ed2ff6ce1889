# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of a skinned mesh, rounded to few bits, and how far that moves its vertices."""

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.bodies import stretch_of
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.control_points import point_count
from ...blender.figures import Figure, Result
from ...blender.fit_poses import differ
from ...blender.preconditions import check_unchanged, object_label, unmet
from ...blender.records import read_record, write_record
from ...blender.skin_reader import Skin, armature_of, bone_matrices, mesh_triangles, rest_positions
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.weight_tools import COMPRESSION_PROPERTY, forget_figures, weighted_mesh
from ...core.errors import BadScene
from ...core.progress import Progress

if TYPE_CHECKING:
    from ...core.binding.compression import CompressedWeights, PositionalError

# Bones and weights of the vertices.
Rows = tuple[np.ndarray, np.ndarray]

# Weights that differ by less are equal: they are stored in single precision.
_SAME = 1e-7


@dataclass(frozen=True)
class Compression:
    """The size and error of compressed weights, for the panel.

    influences: the most of a vertex; byte_count: per vertex; cut: vertices that had more influences than the limit;
    largest, mean: distances in scene units, the largest at ``vertex`` and ``frame``; frames: the number measured, 0 if
    the armature is at rest, 1 with ``posed`` if it is posed but not animated; vertex_count: of the mesh.
    """

    bits: int
    influences: int
    byte_count: int
    cut: int
    largest: float
    mean: float
    frame: int
    vertex: int
    frames: int
    posed: bool
    vertex_count: int

    def figures(self) -> list[Figure]:
        when = "in the present pose" if self.posed else "at frame {frame}"
        measured = [
            Figure("Largest error", self.largest, "{:.6g}", length=True),
            Figure("Mean error", self.mean, "{:.6g}", length=True, line=""),
            Figure("Worst vertex", {"vertex": self.vertex, "frame": self.frame}, f"{{vertex}} {when}"),
        ]
        at_rest = Figure("Largest error", None, "not measured: the armature is at rest", panel="not measured")
        return [
            Figure("Vertices", self.vertex_count, panel=""),
            Figure("Bits", self.bits),
            Figure("Influences", self.influences),
            Figure("Bytes per vertex", self.byte_count),
            Figure("Over the limit", self.cut, if_any=True),
            *(measured if self.frames else [at_rest]),
            Figure("Frames measured", self.frames, line="", panel=""),
        ]


@dataclass(frozen=True)
class Compressed(Result):
    """A finished compression of an object."""

    object_name: str
    record: Compression
    seconds: float
    notes: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        return [Figure("Object", self.object_name), *self.record.figures()]


def compress(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    bits: int = 8,
    max_influences: int = 4,
    threshold: float = 0.0,
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
) -> background.Steps:
    """Generator: round the bones' weights of ``active`` to ``bits``; yields (fraction, stage), returns Compressed.

    The error is measured over the frames (default: the scene's), or in the present pose if nothing animates the
    armature; the user's frame and pose stay. Raises BadScene if a locked group would have to change.
    """
    from ...core.binding import compression as core

    begin = time.perf_counter()
    mesh_object = weighted_mesh(context, active)
    frames = frame_range(context.scene, frame_start, frame_end, frame_step)
    armature = armature_of(mesh_object)
    before = read_bone_weights(mesh_object, armature)
    # From reading the poses in which the error is measured.
    omissions = Omissions(context, [], frames, [armature])
    mesh = mesh_object.data
    rows = before.bones, before.weights
    skin = Skin(mesh_object, armature, before.names, rest_positions(mesh), mesh_triangles(mesh), *rows)
    result = yield from background.run_in_worker(
        lambda _: core.compress_weights(*rows, bits=bits, max_influences=max_influences, threshold=threshold)
    )
    _check_locked(object_label(mesh_object), before, result)
    posed = not is_animated(armature)
    matrices, numbers = yield from _pose_matrices(context, skin, frames, posed, omissions)
    stretch, after = stretch_of(mesh_object), (result.bones, result.weights)
    error = yield from background.run_in_worker(partial(_error, skin.rest, stretch, matrices, rows, after))
    notes = texts_of(omissions.finish())
    check_unchanged(mesh_object, len(before.bones))
    forget_figures(mesh_object)
    bound = np.flatnonzero(before.bound)
    write_bone_weights(mesh_object, before, result.bones[bound], result.weights[bound], bound)
    influences = int(np.count_nonzero(result.steps, axis=1).max(initial=1))
    had = np.count_nonzero(before.weights >= max(threshold, np.finfo(float).tiny), axis=1)
    figures = Compression(
        bits=bits,
        influences=influences,
        byte_count=core.bytes_per_vertex(influences, bits, len(before.names)),
        cut=int(np.count_nonzero(had > max_influences)),
        largest=error.largest,
        mean=error.mean,
        frame=int(numbers[error.frame]) if numbers else 0,
        vertex=error.vertex,
        frames=len(numbers),
        posed=posed,
        vertex_count=point_count(mesh_object),
    )
    write_record(mesh_object, COMPRESSION_PROPERTY, figures)
    return Compressed(mesh_object.name, figures, time.perf_counter() - begin, notes)


def _error(
    rest: np.ndarray, stretch: np.ndarray, matrices: np.ndarray, before: Rows, after: Rows, progress: Progress
) -> "PositionalError":
    """How far the skins ``before`` and ``after`` are apart in the poses ``matrices``, in scene units."""
    from ...core.binding import compression as core

    # stretch · (M · stretch⁻¹) on stretched positions.
    linear = stretch @ matrices[..., :3] @ np.linalg.inv(stretch)
    seen = np.concatenate([linear, stretch @ matrices[..., 3:]], axis=-1)
    return core.positional_error(rest @ stretch.T, before, after, seen, progress)


def compression_figures(mesh_object: bpy.types.Object) -> Compression | None:
    """The figures of the last compression, None if these tools have changed the weights or the mesh since."""
    figures = read_record(mesh_object, COMPRESSION_PROPERTY, Compression)
    return figures if figures is not None and figures.vertex_count == point_count(mesh_object) else None


def is_animated(armature: bpy.types.Object) -> bool:
    """Whether frames can differ: actions, NLA strips, drivers or constraints may move the armature's bones."""
    for block in (armature, armature.data):
        animation = block.animation_data
        if animation is not None and (animation.action or animation.nla_tracks or animation.drivers):
            return True
    return any(bone.constraints for bone in armature.pose.bones)


def _check_locked(label: str, before: BoneWeights, result: "CompressedWeights") -> None:
    """Raise BadScene if the weights of a locked group would change."""
    for bone in np.flatnonzero(before.locked):
        stored = np.where(before.bones == bone, before.weights, 0.0).sum(axis=1) * before.totals
        rounded = np.where(result.bones == bone, result.weights, 0.0).sum(axis=1)
        wrong = np.abs(stored - rounded) > _SAME
        if wrong.any():
            raise BadScene(
                f'The vertex group "{before.names[bone]}" of {label} is locked, but its weights would have to change, '
                f"for example at vertex {int(np.argmax(wrong))}. Unlock it (the padlock in the list of vertex groups)"
            )


def _pose_matrices(
    context: bpy.types.Context, skin: Skin, frames: range, posed: bool, omissions: Omissions
) -> background.Steps:
    """Generator: matrices (F, P, 3, 4) of the frames, or of the present pose if ``posed``, and the frames' numbers.

    None if the armature is at rest: then no vertex moves, whatever the weights.
    """
    if skin.armature.data.pose_position == "REST":
        return np.zeros((0, len(skin.bone_names), 3, 4)), []
    if posed:
        matrices = bone_matrices(skin, context.evaluated_depsgraph_get())
        if differ(matrices, skin.rest):
            return matrices[None], [context.scene.frame_current]
        return matrices[None][:0], []
    read = []
    try:
        # In a separate scene: a frame change in the user's would undo a pose that is not keyed.
        with temporary_scene(context.scene, [skin.object, skin.armature]) as scene:
            for number, frame in enumerate(frames):
                depsgraph = evaluate_frame(scene, frame)
                read.append(bone_matrices(skin, depsgraph))
                yield (number + 1) / len(frames), "Reading poses"
            omissions.look_at_drivers(depsgraph)
    except ReferenceError as error:
        raise unmet("REMOVED", object="mesh or its armature") from error
    return np.array(read), list(frames)
