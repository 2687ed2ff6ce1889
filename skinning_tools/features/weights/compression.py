# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of a skinned mesh, rounded to what few bits hold, and how far that moves its vertices."""

import time
from dataclasses import dataclass

import numpy as np

from ...blender import background
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.bodies import stretch_of
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.fit_poses import differ
from ...blender.lengths import length_text
from ...blender.preconditions import object_label
from ...blender.records import read_record, write_record
from ...blender.skin_reader import Skin, armature_of, bone_matrices, mesh_triangles, rest_positions
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.weight_tools import COMPRESSION_PROPERTY, check_unchanged, forget_figures, weighted_mesh
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene

# Weights that differ by less are the same: they are stored in single precision.
_SAME = 1e-7


@dataclass(frozen=True)
class Compression:
    """What compressed weights take and cost, for the panel.

    influences: the most of a vertex; byte_count: of a vertex; cut: vertices that had more influences than the limit;
    largest, mean: distances in the scene's units, at ``vertex`` and ``frame``; frames: how many were measured, 0 where
    the armature is at rest, and 1 with ``posed`` where it is posed but not animated; vertex_count: of the mesh.
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
    notes: tuple[str, ...] = ()

    def summary(self, scene) -> str:
        """The result in one line."""
        figures = self.figures
        influences, size = counted(figures.influences, "influence"), counted(figures.byte_count, "byte")
        vertices = vertices_text(figures.vertex_count)
        parts = [f"{self.object_name}: {vertices} with up to {influences} in {figures.bits} bits, {size} each"]
        if figures.cut:
            parts.append(f"{vertices_text(figures.cut)} had more")
        if not figures.frames:
            parts.append("error not measured, as the armature is at rest: pose or animate it first")
        else:
            when = "in the present pose" if figures.posed else f"at frame {figures.frame}"
            distance = length_text(scene, figures.largest)
            parts.append(f"largest error {distance} (vertex {figures.vertex} {when})")
        return "; ".join([*parts, *self.notes])


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
    from ...core.binding import compression as core

    begin = time.perf_counter()
    object = weighted_mesh(context, object)
    frames = frame_range(context.scene, frame_start, frame_end, frame_step)
    armature = armature_of(object)
    before = read_bone_weights(object, armature)
    # Of the poses that the error is measured in.
    omissions = Omissions(context, [], frames, [armature])
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
    matrices, numbers = yield from _pose_matrices(context, skin, frames, posed, omissions)

    def measuring(progress):
        # To the units that the artist sees: stretch · (M · stretch⁻¹) on stretched positions.
        linear = stretch @ matrices[..., :3] @ np.linalg.inv(stretch)
        seen = np.concatenate([linear, stretch @ matrices[..., 3:]], axis=-1)
        after = result.bones, result.weights
        return core.positional_error(skin.rest @ stretch.T, rows, after, seen, progress)

    error = yield from background.run_in_worker(measuring)
    notes = texts_of(omissions.finish())
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
    return Compressed(object.name, figures, time.perf_counter() - begin, notes)


def compression_figures(object) -> Compression | None:
    """Of the last compression, None where the weights or the mesh were changed by these tools since."""
    figures = read_record(object, COMPRESSION_PROPERTY, Compression)
    return figures if figures is not None and figures.vertex_count == len(object.data.vertices) else None


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


def _pose_matrices(context, skin: Skin, frames: range, posed: bool, omissions: Omissions) -> background.Steps:
    """Generator: matrices (F, P, 3, 4) of the frames, or of the present pose where ``posed``, and the frames' numbers.

    None where the armature is at rest: whatever the weights are, no vertex moves.
    """
    if skin.armature.data.pose_position == "REST":
        return np.zeros((0, len(skin.bone_names), 3, 4)), []
    if posed:
        matrices = bone_matrices(skin, context.evaluated_depsgraph_get())
        if differ(matrices, skin.rest):
            return matrices[None], [context.scene.frame_current]
        return matrices[None][:0], []
    matrices = []
    try:
        # Beside the user's scene: there a change of the frame would undo a pose that is not keyed.
        with temporary_scene(context.scene, [skin.object, skin.armature]) as scene:
            for number, frame in enumerate(frames):
                depsgraph = evaluate_frame(scene, frame)
                matrices.append(bone_matrices(skin, depsgraph))
                yield (number + 1) / len(frames), "Reading poses"
            omissions.look_at_drivers(depsgraph)
    except ReferenceError as error:
        raise BadScene("The mesh or its armature was removed while its poses were read. Start again") from error
    return np.array(matrices), list(frames)
