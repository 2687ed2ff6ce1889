# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips: several animations of one mesh, each of an object of its own, that become actions of one armature."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.animation_reader import SourceAnimation, read_animation
from ...blender.animation.several_sources import sources_label
from ...blender.clip_tracks import track_name
from ...blender.object_transform import world_matrices
from ...blender.preconditions import object_label, unmet
from ...core.animation import Animation, ErrorMeter, check_animation
from ...core.errors import BadMesh, BadScene
from .settings import ConvertSettings

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition


@dataclass(frozen=True)
class Clip:
    """One of the animations of a mesh. source: as read alone, but with the mesh of the first clip. rows: its frames
    among those of all clips. name: of its object when it was read."""

    source: SourceAnimation
    rows: slice
    name: str

    @property
    def frame_numbers(self) -> np.ndarray:
        return self.source.animation.frame_numbers

    def part_of(self, decomposition: "Decomposition") -> "Decomposition":
        """The decomposition with the motion of this clip alone."""
        residual = decomposition.residual
        if residual is not None:
            residual = replace(residual, values=residual.values[self.rows])
        return replace(decomposition, transforms=decomposition.transforms[self.rows], residual=residual)


def check_clips(context: bpy.types.Context, objects: Sequence[bpy.types.Object]) -> None:
    """Raise BadScene or BadMesh if the objects cannot be clips of one mesh as they are in the present frame."""
    check_clip_names(objects)
    depsgraph = context.evaluated_depsgraph_get()
    first, *others = objects
    for ob in others:
        _check_same_mesh(first, first.evaluated_get(depsgraph).data, ob, ob.evaluated_get(depsgraph).data)


def check_clip_names(objects: Sequence[bpy.types.Object]) -> None:
    """Raise BadScene for a single object, or where two have the same name; cheap enough for a panel."""
    if len(objects) < 2:
        raise BadScene(
            "As Clips needs at least two meshes with the same vertices, one for each clip. Select them all, or switch "
            "As Clips off"
        )
    names = [track_name(ob.name) for ob in objects]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadScene(
            f'Two of the clips have the name "{twice}", since they come from different files. Clips are called after '
            "their objects: rename one in its file"
        )


def _check_same_mesh(
    first: bpy.types.Object, first_mesh: bpy.types.Mesh, ob: bpy.types.Object, mesh: bpy.types.Mesh
) -> None:
    counts = len(first_mesh.vertices), len(mesh.vertices)
    if counts[0] != counts[1]:
        remedy = (
            "Clips of one mesh have the same vertices: deselect it, or switch off what changes the number of vertices, "
            "such as Subdivision Surface, in both"
        )
        label, other = object_label(first), object_label(ob)
        raise unmet("OTHER_VERTEX_COUNT", other=other, count=counts[1], object=label, expected=counts[0], remedy=remedy)
    if not all(np.array_equal(mine, own) for mine, own in zip(_faces(first_mesh), _faces(mesh), strict=True)):
        raise BadMesh(
            f"The {object_label(ob)} has as many vertices as {object_label(first)}, but other faces: its vertices have "
            "another order, or it is another mesh. Export or copy both from the same mesh, or deselect it"
        )


def _faces(mesh: bpy.types.Mesh) -> tuple[np.ndarray, np.ndarray]:
    """The first corner of each face, and the vertex of each corner."""
    starts, vertices = np.empty(len(mesh.polygons), np.int32), np.empty(len(mesh.loops), np.int32)
    mesh.polygons.foreach_get("loop_start", starts)
    mesh.loops.foreach_get("vertex_index", vertices)
    return starts, vertices


def read_clips(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], start: int | None, end: int | None, step: int
) -> background.Steps[tuple[SourceAnimation, tuple[Clip, ...]]]:
    """Generator: read each object in its own space; returns all frames as one animation of the first, and the clips.

    A clip has the frames of the range from the first to the last in which its mesh changes.
    Raises as ``read_animation``, BadAnimation for a clip that does not move, and BadMesh for another mesh; only the
    first one's mesh is left, and after an exception none.
    """
    sources: list[SourceAnimation] = []
    try:
        for number, ob in enumerate(objects):
            reading = read_animation(context, ob, start, end, step)
            source = yield from background.part_of(reading, number / len(objects), (number + 1) / len(objects))
            sources.append(source)
            _check_same_mesh(objects[0], sources[0].mesh, ob, source.mesh)
            check_animation(source.animation)
            sources[-1] = replace(source, animation=_moving(source.animation))
        stacked = np.concatenate([source.animation.frames for source in sources])
    except BaseException:
        bpy.data.batch_remove([source.mesh for source in sources])
        raise
    bpy.data.batch_remove([source.mesh for source in sources[1:]])
    first, clips, row = sources[0], [], 0
    for source in sources:
        rows = slice(row, row + len(source.animation.frames))
        # A view, so that no frame is in memory twice.
        animation = replace(source.animation, frames=stacked[rows])
        clips.append(Clip(replace(source, animation=animation, mesh=first.mesh), rows, source.object.name))
        row = rows.stop
    numbers = np.concatenate([clip.frame_numbers for clip in clips])
    whole = Animation(stacked, first.animation.triangles, numbers, sources_label(objects))
    omissions = tuple(dict.fromkeys(each for source in sources for each in source.omissions))
    return replace(first, animation=whole, omissions=omissions), tuple(clips)


def _moving(animation: Animation) -> Animation:
    """The frames without those that repeat the first one before the motion, or the last one after it."""
    frames = animation.frames
    changes = [row for row in range(1, len(frames)) if not np.array_equal(frames[row], frames[row - 1])]
    kept = slice(changes[0] - 1, changes[-1] + 1)
    return replace(animation, frames=frames[kept].copy(), frame_numbers=animation.frame_numbers[kept])


def notes_on_moving(context: bpy.types.Context, clips: Sequence[Clip]) -> list[str]:
    """A note for each clip but the first whose object itself moves, which is not part of the clip."""
    found = []
    for clip in clips[1:]:
        matrices = world_matrices(context, clip.source.object, clip.frame_numbers)
        if not np.allclose(matrices, matrices[0], rtol=1e-5, atol=1e-6):
            name = clip.name
            found.append(f"{name} itself moves in the scene: its clip has the motion of its vertices only")
    return found


def clips_record(
    scene: bpy.types.Scene, settings: ConvertSettings, clips: Sequence[Clip], meter: ErrorMeter
) -> dict[str, Any]:
    """What the figures of a conversion say of its clips, and the range that they were read in."""
    found, errors, largest = [], meter.frame_e_rms, meter.frame_max_error
    for clip in clips:
        found.append(
            {
                "source": clip.name,
                "source_data": clip.source.object.data.name,
                "frame_start": float(clip.frame_numbers[0]),
                "frame_count": len(clip.frame_numbers),
                "e_rms": float(np.sqrt(np.square(errors[clip.rows]).mean())),
                "max_error": float(largest[clip.rows].max()),
            }
        )
    start = scene.frame_start if settings.frame_start is None else settings.frame_start
    end = scene.frame_end if settings.frame_end is None else settings.frame_end
    worst = next(clip for clip in clips if clip.rows.start <= meter.worst_row < clip.rows.stop)
    return {"clips": found, "frame_start": float(start), "frame_end": float(end), "worst_clip": worst.name}
