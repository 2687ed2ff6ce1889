# SPDX-License-Identifier: GPL-3.0-or-later
"""The animation of a mesh object, whatever makes it move, as arrays and as a mesh of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.animation import Animation, check_finite
from ..core.errors import BadAnimation, BadMesh, BadScene
from ..core.memory import check_available
from .data_blocks import is_alive
from .frame_guard import frame_kept
from .frame_range import frame_range
from .object_checks import (
    check_cache_content,
    check_cache_files,
    check_mode,
    check_object,
    check_sequence_file,
    object_label,
    sequences,
)
from .own_traces import remove_from_mesh
from .shape_key_reader import ShapeKeyValues, read_shape_keys, shape_key_values
from .simulations import forget_skipped_frames, simulation_start

POSITION_BYTES = 3 * np.dtype(np.float32).itemsize
# Of the source's motion, not the result's: renderers blur by it.
VELOCITY = "velocity"

__all__ = ["SourceAnimation", "check_object", "read_animation"]


@dataclass(frozen=True)
class SourceAnimation:
    """What was read from an object.

    animation: positions in the object's own space. method: a few words on how it was read. mesh: a new local mesh
    with the shape of the first frame, its materials, UVs and attributes, without vertex groups, shape keys, animation
    data and what only described the old motion; who reads the animation owns it, and removes it where it has no use.
    """

    object: bpy.types.Object
    animation: Animation
    method: str
    mesh: bpy.types.Mesh


def read_animation(
    context, object, frame_start: int | None = None, frame_end: int | None = None, frame_step: int = 1
) -> Iterator[float]:
    """Generator: read the animation of ``object`` as the viewport shows it; returns a SourceAnimation.

    Yields the fraction done. The range includes its last frame; None stands for the scene's. However it ends, the
    scene's current frame is restored; where it does not end by returning, nothing that it made is left.
    Raises BadScene, BadSettings, BadMesh, BadAnimation or NotEnoughMemory, at the first frame that is bad.
    """
    check_object(context, object)
    scene, view_layer = context.scene, context.view_layer
    name = object.name
    numbers = _frame_numbers(scene, object, frame_start, frame_end, frame_step)
    try:
        return (yield from _read(context, scene, view_layer, object, numbers))
    except ReferenceError as error:
        raise BadScene(f'The object "{name}" was removed while its animation was being read') from error


def _frame_numbers(scene, object, frame_start, frame_end, frame_step) -> range:
    label = object_label(object)
    numbers = frame_range(scene, frame_start, frame_end, frame_step, label)
    if len(numbers) < 2:
        end = scene.frame_end if frame_end is None else frame_end
        raise BadAnimation(
            f"The range from frame {numbers.start} to frame {end} with step {frame_step} has only one frame "
            f"of {label}; at least two are needed. Widen the frame range, or choose a smaller step"
        )
    return numbers


def _read(context, scene, view_layer, object, numbers: range) -> Iterator[float]:
    keys = shape_key_values(scene, object, numbers)
    if keys is not None:
        return (yield from _read_keys(keys, numbers))
    check_cache_content(object, context.evaluated_depsgraph_get())
    return (yield from _read_evaluated(scene, view_layer, object, numbers))


def _read_keys(keys: ShapeKeyValues, numbers: range) -> Iterator[float]:
    object = keys.object
    frames = _allocate(object, len(numbers), len(object.data.vertices))
    yield from read_shape_keys(keys, frames)
    for number, positions in zip(numbers, frames, strict=True):
        check_finite(positions, str(number), object_label(object))
    with ExitStack() as undo:
        mesh = bpy.data.meshes.new_from_object(object)
        undo.callback(_remove_mesh, mesh)
        _make_independent(object, mesh)
        mesh.attributes["position"].data.foreach_set("vector", frames[0].ravel())
        mesh.update()
        source = _source(object, frames, numbers, mesh, "Shape keys")
        undo.pop_all()
        return source


def _read_evaluated(scene, view_layer, object, numbers: range) -> Iterator[float]:
    simulation = simulation_start(scene, view_layer, object)
    # A simulation is right only where every frame since its start has been played, one after the other.
    steps = numbers if simulation is None else range(min(simulation, numbers[0]), numbers[-1] + 1)
    if simulation is not None:
        forget_skipped_frames(object)
    label = object_label(object)
    _check_memory(object, len(numbers), len(object.evaluated_get(view_layer.depsgraph).data.vertices))
    frames, row = None, 0
    with frame_kept(scene), ExitStack() as undo:
        for done, number in enumerate(steps):
            scene.frame_set(number)
            if number in numbers:
                evaluated = _evaluated(view_layer, object, number)
                counts = _topology(evaluated.data)
                _check_vertices(counts, label, number)
                if frames is None:
                    expected, frames = counts, _allocate(object, len(numbers), counts[0])
                    mesh = _evaluated_copy(evaluated, view_layer.depsgraph)
                    undo.callback(_remove_mesh, mesh)
                    _make_independent(object, mesh)
                _check_topology(counts, expected, label, number)
                evaluated.data.attributes["position"].data.foreach_get("vector", frames[row].ravel())
                check_finite(frames[row], str(number), label)
                row += 1
            yield (done + 1) / len(steps)
        method = "Evaluated mesh" if simulation is None else f"Evaluated mesh, simulated from frame {steps[0]}"
        source = _source(object, frames, numbers, mesh, method)
        undo.pop_all()
        return source


def _evaluated(view_layer, object, number: int) -> bpy.types.Object:
    """The object as evaluated at the current frame, ``number``.

    Refuses what has come up since the start: the user's doing between two steps, an animated visibility, a file gone.
    """
    check_mode(object)
    if not object.visible_get(view_layer=view_layer):
        raise BadAnimation(
            f"The {object_label(object)} is hidden at frame {number}, so Blender does not evaluate its shape there. "
            "Start or end the range where it is visible, or mute the animation of its visibility in the viewport"
        )
    check_cache_files(object)
    for modifier in sequences(object):
        check_sequence_file(object, modifier, number)
    return object.evaluated_get(view_layer.depsgraph)


def _topology(mesh) -> tuple[int, int, int]:
    """Numbers of vertices, faces and face corners."""
    return len(mesh.vertices), len(mesh.polygons), len(mesh.loops)


def _check_vertices(counts: tuple[int, int, int], label: str, number: int) -> None:
    if counts[0] == 0:
        raise BadMesh(
            f"The {label} has no vertices at frame {number}. Leave that frame out of the range; "
            "if geometry nodes make its shape, realize their instances"
        )


def _check_topology(counts: tuple[int, int, int], expected: tuple[int, int, int], label: str, number: int) -> None:
    if counts != expected:
        changes = [
            f"{what} change from {before} to {now}"
            for what, before, now in zip(("vertices", "faces", "face corners"), expected, counts, strict=True)
            if before != now
        ]
        raise BadAnimation(
            f"The {label} does not keep its topology: at frame {number} its {' and its '.join(changes)}. "
            "Skinning needs the same mesh in every frame; leave that frame out of the range, "
            "or remove what changes the mesh"
        )


def _check_memory(object, frame_count: int, vertex_count: int) -> None:
    """Raises NotEnoughMemory rather than let the machine run out while it reads."""
    what = f"The positions of {object_label(object)} ({vertex_count} vertices, {frame_count} frames)"
    check_available(frame_count * vertex_count * POSITION_BYTES, what)


def _allocate(object, frame_count: int, vertex_count: int) -> np.ndarray:
    """Room for (F, N, 3) float32 positions."""
    _check_memory(object, frame_count, vertex_count)
    return np.empty((frame_count, vertex_count, 3), dtype=np.float32)


def _evaluated_copy(evaluated, depsgraph) -> bpy.types.Mesh:
    return bpy.data.meshes.new_from_object(evaluated, preserve_all_data_layers=True, depsgraph=depsgraph)


def _make_independent(object, mesh: bpy.types.Mesh) -> None:
    """Make a fresh copy of the object's mesh stand on its own: named, with the materials that the object shows."""
    mesh.name = f"{object.name}_skinned"
    for index, slot in enumerate(object.material_slots):
        if slot.link != "OBJECT":
            continue
        if index < len(mesh.materials):
            mesh.materials[index] = slot.material
        else:
            mesh.materials.append(slot.material)
    remove_from_mesh(mesh)
    if VELOCITY in mesh.attributes:
        mesh.attributes.remove(mesh.attributes[VELOCITY])
    # The groups' names live in the mesh, but only an object can remove them.
    carrier = bpy.data.objects.new(mesh.name, mesh)
    try:
        carrier.vertex_groups.clear()
    finally:
        bpy.data.objects.remove(carrier)


def _source(object, frames, numbers: range, mesh, method: str) -> SourceAnimation:
    mesh.calc_loop_triangles()
    triangles = np.empty((len(mesh.loop_triangles), 3), dtype=np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles.ravel())
    animation = Animation(frames, triangles, np.array(numbers, dtype=np.float64), object_label(object))
    return SourceAnimation(object, animation, method, mesh)


def _remove_mesh(mesh) -> None:
    if is_alive(mesh):
        bpy.data.meshes.remove(mesh)
