# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools on the weights of a skinned mesh: what they share, smoothing, and compression with its error measured."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.errors import BadScene, BadSettings
from . import background
from .bodies import read_body, stretch_of
from .bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from .character import character_of
from .frame_range import frame_range
from .object_checks import check_own_mesh, check_visible, object_label
from .records import read_record, write_record
from .skin_reader import Skin, armature_of, bone_matrices, check_rig, mesh_triangles, rest_positions
from .temporary_scene import evaluate_frame, temporary_scene
from .vertex_groups import read_weights
from .wording import counted

# The figures of the last compression and partition, custom properties of the mesh object.
COMPRESSION_PROPERTY = "skinning_compression"
PARTITION_PROPERTY = "skinning_partition"

# What smoothing may blend where the mesh has no more already.
USUAL_INFLUENCES = 4

# From this edge crease on, weights do not pass.
CREASE = 0.5

# Weights that differ by less are the same: they are stored in single precision.
_SAME = 1e-7


def weighted_mesh(context, object):
    """The skinned mesh that is meant where ``object`` is active, if its weights can be changed.

    Cheap enough for a panel. Raises BadScene.
    """
    object = character_of(context, object)
    check_own_mesh(object, "its weights cannot be changed")
    return object


def weighted_or_edited_mesh(context, object):
    """``weighted_mesh``, which also may be in Edit Mode; see ``out_of_edit_mode``."""
    if object is None or object.type != "MESH" or object.mode != "EDIT":
        return weighted_mesh(context, object)
    check_visible(context.scene, context.view_layer, object)
    check_rig(object)
    check_own_mesh(object, "its weights cannot be changed")
    return object


@contextmanager
def out_of_edit_mode(object) -> Iterator[None]:
    """In Edit Mode a mesh cannot be read in full, nor be written to: leave it, and enter it again."""
    if object.mode != "EDIT":
        yield
        return
    bpy.ops.object.mode_set(mode="OBJECT")
    try:
        yield
    finally:
        bpy.ops.object.mode_set(mode="EDIT")


def check_unchanged(object, vertex_count: int) -> None:
    """Raises BadScene where the mesh got other vertices while its weights were worked on."""
    if len(object.data.vertices) != vertex_count:
        raise BadScene(f"The {object_label(object)} was edited meanwhile. Start again")


@dataclass(frozen=True)
class Smoothed:
    """largest: the largest change of a weight."""

    object_name: str
    changed: int
    iterations: int
    largest: float
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        if not self.changed:
            return f"{self.object_name}: nothing to smooth, the weights stay as they are"
        return (
            f"{self.object_name}: weights of {vertices_text(self.changed)} smoothed in "
            f"{counted(self.iterations, 'iteration')}, by up to {self.largest:.3f}"
        )


def smooth(
    context,
    object,
    strength: float = 0.5,
    iterations: int = 5,
    max_influences: int = 0,
    vertex_group: str = "",
    invert_vertex_group: bool = False,
    use_selection: bool = False,
    keep_creases: bool = True,
) -> background.Steps:
    """Generator: smooth the bones' weights of ``object``; yields (fraction, stage), returns Smoothed.

    max_influences: 0 stands for 4, or for as many as the mesh has where that is more. Locked groups stay. The
    computation runs in a worker, the mesh is written at the end, all or nothing. Raises SkinningError for all that the
    user can mend.
    """
    from ..core.binding.smoothing import smooth_weights

    begin = time.perf_counter()
    object = weighted_or_edited_mesh(context, object)
    if iterations < 1:
        raise BadSettings(f"Smoothing takes at least 1 iteration, not {iterations}")
    if max_influences < 0:
        raise BadSettings(f"The influence limit must be at least 1, or 0 for the mesh's own, not {max_influences}")
    with out_of_edit_mode(object):
        mask = smoothing_mask(object, vertex_group, invert_vertex_group, use_selection)
        creases = creased_edges(object.data) if keep_creases else None
        body = read_body(object)
        before = read_bone_weights(object, armature_of(object))
    most = max_influences or max(int(np.count_nonzero(before.weights, axis=1).max(initial=0)), USUAL_INFLUENCES)

    def work(progress):
        bones, weights = smooth_weights(
            body,
            before.bones,
            before.weights,
            len(before.names),
            strength=strength,
            iterations=iterations,
            mask=mask,
            creases=creases,
            max_influences=most,
            locked=before.locked,
            progress=progress,
        )
        return bones, weights, changes(before, bones, weights)

    bones, weights, changed = yield from background.run_in_worker(work)
    check_unchanged(object, len(before.bones))
    vertices = np.flatnonzero(changed > _SAME)
    with out_of_edit_mode(object):
        write_bone_weights(object, before, bones[vertices], weights[vertices], vertices)
        forget_figures(object)
    seconds = time.perf_counter() - begin
    return Smoothed(object.name, len(vertices), iterations, float(changed.max(initial=0.0)), seconds)


def smoothing_mask(object, vertex_group: str, invert: bool, use_selection: bool) -> np.ndarray | None:
    """(N,) float64 from 0 to 1, or None for everywhere. Raises BadSettings where it selects nothing, naming why.

    Weight Paint's selection masks count as they do for Blender's own tools there.
    """
    mesh = object.data
    mask = np.ones(len(mesh.vertices))
    if vertex_group:
        if vertex_group not in object.vertex_groups:
            raise BadSettings(f'The {object_label(object)} has no vertex group "{vertex_group}". Choose another')
        _, weights = read_weights(object, [vertex_group])
        mask = np.clip(weights.sum(axis=1), 0, 1)
        if invert:
            mask = 1 - mask
        if not mask.any():
            whole = "weight 1 everywhere, so its inverse" if invert else "no weights, so it"
            raise BadSettings(f'The vertex group "{vertex_group}" has {whole} selects no vertex. Choose another')
    painting = object.mode == "WEIGHT_PAINT"
    if painting and mesh.use_paint_mask:
        selected = vertices_of_selected_faces(mesh)
    elif use_selection or (painting and mesh.use_paint_mask_vertex):
        selected = np.empty(len(mesh.vertices), bool)
        mesh.vertices.foreach_get("select", selected)
    else:
        return mask if vertex_group else None
    if not selected.any():
        raise BadSettings(f"No vertex of {object_label(object)} is selected. Select some, or smooth everywhere")
    mask = mask * selected
    if not mask.any():
        raise BadSettings(f'No selected vertex has weight in the vertex group "{vertex_group}". Select others')
    return mask


def vertices_of_selected_faces(mesh) -> np.ndarray:
    """(N,) bool"""
    chosen, totals = np.empty(len(mesh.polygons), bool), np.empty(len(mesh.polygons), np.int32)
    corners = np.empty(len(mesh.loops), np.int32)
    mesh.polygons.foreach_get("select", chosen)
    mesh.polygons.foreach_get("loop_total", totals)
    mesh.loops.foreach_get("vertex_index", corners)
    selected = np.zeros(len(mesh.vertices), bool)
    selected[corners[np.repeat(chosen, totals)]] = True
    return selected


def creased_edges(mesh) -> np.ndarray:
    """(E,) bool: edges that are marked sharp, or have a crease of ``CREASE`` or more."""
    sharp = np.empty(len(mesh.edges), bool)
    mesh.edges.foreach_get("use_edge_sharp", sharp)
    crease = mesh.attributes.get("crease_edge")
    if crease is not None and (crease.domain, crease.data_type) == ("EDGE", "FLOAT"):
        values = np.empty(len(mesh.edges), np.float32)
        crease.data.foreach_get("value", values)
        sharp |= values >= CREASE
    return sharp


def changes(before: BoneWeights, bones, weights) -> np.ndarray:
    """(N,) the largest difference of a weight of each vertex from ``before``."""
    from ..core.deform.influences import weight_matrix

    difference = weight_matrix(before.bones, before.weights, len(before.names))
    difference = abs(weight_matrix(bones, weights, len(before.names)) - difference)
    return np.asarray(difference.max(axis=1).todense()).ravel()


@dataclass(frozen=True)
class Compression:
    """What compressed weights take and cost, for the panel.

    influences: the most of a vertex; byte_count: of a vertex; cut: vertices that had more influences than the limit;
    largest, mean: distances in the scene's units, at ``vertex`` and ``frame``; frames: how many were measured, 0 where
    the armature shows its rest position, and 1 with ``posed`` where it is not animated; vertex_count: of the mesh.
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


@dataclass(frozen=True)
class Compressed:
    """A finished compression of an object."""

    object_name: str
    figures: Compression
    seconds: float

    def summary(self, unit_system: str) -> str:
        """The result in one line."""
        figures = self.figures
        influences, size = counted(figures.influences, "influence"), counted(figures.byte_count, "byte")
        vertices = vertices_text(figures.vertex_count)
        parts = [f"{self.object_name}: {vertices} with up to {influences} in {figures.bits} bits, {size} each"]
        if figures.cut:
            parts.append(f"{vertices_text(figures.cut)} had more")
        if not figures.frames:
            parts.append("error not measured, as the armature shows its rest position")
        else:
            when = "in the present pose" if figures.posed else f"at frame {figures.frame}"
            distance = bpy.utils.units.to_string(unit_system, "LENGTH", figures.largest, precision=4)
            parts.append(f"largest error {distance} (vertex {figures.vertex} {when})")
        return "; ".join(parts)


def compress(
    context,
    object,
    bits: int = 8,
    max_influences: int = 4,
    threshold: float = 0.0,
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
) -> background.Steps:
    """Generator: round the bones' weights of ``object`` to ``bits``; yields (fraction, stage), returns Compressed.

    The error is measured over the frames (the scene's where not given), or in the present pose where nothing animates
    the armature; the user's frame and pose stay. Raises BadScene where a locked group would have to change.
    """
    from ..core.binding import compression as core

    begin = time.perf_counter()
    object = weighted_mesh(context, object)
    frames = frame_range(context.scene, frame_start, frame_end, frame_step)
    armature = armature_of(object)
    before = read_bone_weights(object, armature)
    mesh = object.data
    rows = before.bones, before.weights
    skin = Skin(object, armature, before.names, rest_positions(mesh), mesh_triangles(mesh), *rows)
    stretch, label = stretch_of(object), object_label(object)

    def compressing(progress):
        result = core.compress_weights(*rows, bits=bits, max_influences=max_influences, threshold=threshold)
        _check_locked(label, before, result)
        return result

    result = yield from background.run_in_worker(compressing)
    posed = not is_animated(armature)
    matrices, numbers = yield from _pose_matrices(context, skin, frames, posed)

    def measuring(progress):
        # To the units that the artist sees: stretch · (M · stretch⁻¹) on stretched positions.
        linear = stretch @ matrices[..., :3] @ np.linalg.inv(stretch)
        seen = np.concatenate([linear, stretch @ matrices[..., 3:]], axis=-1)
        after = result.bones, result.weights
        return core.positional_error(skin.rest @ stretch.T, rows, after, seen, progress)

    error = yield from background.run_in_worker(measuring)
    check_unchanged(object, len(before.bones))
    forget_figures(object)
    bound = np.flatnonzero(before.bound)
    write_bone_weights(object, before, result.bones[bound], result.weights[bound], bound)
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
        vertex_count=len(mesh.vertices),
    )
    write_record(object, COMPRESSION_PROPERTY, figures)
    return Compressed(object.name, figures, time.perf_counter() - begin)


def compression_figures(object) -> Compression | None:
    """Of the last compression, None where the weights or the mesh were changed by these tools since."""
    figures = read_record(object, COMPRESSION_PROPERTY, Compression)
    return figures if figures is not None and figures.vertex_count == len(object.data.vertices) else None


def forget_figures(object) -> None:
    """What was counted in the weights holds no more."""
    for key in (COMPRESSION_PROPERTY, PARTITION_PROPERTY):
        if key in object:
            del object[key]


def is_animated(armature) -> bool:
    """Whether frames can differ: actions, NLA strips, drivers or constraints may move the armature's bones."""
    for block in (armature, armature.data):
        animation = block.animation_data
        if animation is not None and (animation.action or animation.nla_tracks or animation.drivers):
            return True
    return any(bone.constraints for bone in armature.pose.bones)


def _check_locked(label: str, before: BoneWeights, result) -> None:
    """Raises BadScene where a locked group would hold other weights than it does."""
    for bone in np.flatnonzero(before.locked):
        stored = np.where(before.bones == bone, before.weights, 0.0).sum(axis=1) * before.totals
        rounded = np.where(result.bones == bone, result.weights, 0.0).sum(axis=1)
        wrong = np.abs(stored - rounded) > _SAME
        if wrong.any():
            raise BadScene(
                f'The vertex group "{before.names[bone]}" of {label} is locked, but its weights would have to change, '
                f"at vertex {int(np.argmax(wrong))} for one. Unlock it (the padlock in the list of vertex groups)"
            )


def _pose_matrices(context, skin: Skin, frames: range, posed: bool) -> background.Steps:
    """Generator: matrices (F, P, 3, 4) of the frames, or of the present pose where ``posed``, and the frames' numbers.

    None where the armature shows its rest position.
    """
    if skin.armature.data.pose_position == "REST":
        return np.zeros((0, len(skin.bone_names), 3, 4)), []
    if posed:
        return bone_matrices(skin, context.evaluated_depsgraph_get())[None], [context.scene.frame_current]
    matrices = []
    try:
        # Beside the user's scene: there a change of the frame would undo a pose that is not keyed.
        with temporary_scene(context.scene, [skin.object, skin.armature]) as scene:
            for number, frame in enumerate(frames):
                matrices.append(bone_matrices(skin, evaluate_frame(scene, frame)))
                yield (number + 1) / len(frames), "Reading poses"
    except ReferenceError as error:
        raise BadScene("The mesh or its armature was removed while its poses were read. Start again") from error
    return np.array(matrices), list(frames)


def vertices_text(count: int) -> str:
    """Such as "1 vertex" and "1,200 vertices"."""
    return "1 vertex" if count == 1 else f"{count:,} vertices"
