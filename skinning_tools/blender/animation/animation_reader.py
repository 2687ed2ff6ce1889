# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the animation of mesh objects, whatever makes them move, as arrays and as new meshes."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import numpy as np

from ...core.animation import Animation, check_finite
from ...core.errors import BadAnimation, BadMesh
from ...core.geometry import transform_points
from ...core.memory import check_available
from ..attributes import read_attribute, remove_attributes, write_attribute
from ..data_blocks import is_alive, remove_living
from ..object_checks import (
    cache_stamps,
    check_cache_content,
    check_cache_unchanged,
    check_object,
    check_sequence_file,
    sequences,
)
from ..preconditions import check_mode, object_label, unmet
from ..skin_reader import mesh_triangles
from .frame_guard import frame_kept
from .frame_range import moving_range
from .omissions import Omission, Omissions
from .own_traces import remove_from_mesh
from .several_sources import check_sources, move_mesh, sources_label, to_space_of
from .shape_key_reader import ShapeKeyValues, read_shape_keys, shape_key_values
from .simulations import frames_to_play

POSITION_BYTES = 3 * np.dtype(np.float32).itemsize
# Describes the source's motion, not the result's: renderers use it for motion blur.
VELOCITY = "velocity"

__all__ = ["SourceAnimation", "SourcePart", "check_object", "read_animation"]


@dataclass(frozen=True)
class SourcePart:
    """One of the objects that were read, its new mesh, and its range of the animation's vertices."""

    object: bpy.types.Object
    mesh: bpy.types.Mesh
    vertices: slice


@dataclass(frozen=True)
class SourceAnimation:
    """The animation of an object, or of several objects in the space of the first.

    animation: positions in the object's own space, followed by those of ``others``. method: how it was read, in a few
    words. mesh: a new local mesh with the shape of the first frame, its materials, UVs and attributes, without vertex
    groups, shape keys, animation data and attributes of the old motion. The caller owns this mesh and those of the
    others, and removes them if it does not use them. omissions: what Blender left out of the shapes.
    """

    object: bpy.types.Object
    animation: Animation
    method: str
    mesh: bpy.types.Mesh
    others: tuple[SourcePart, ...] = ()
    omissions: tuple[Omission, ...] = ()

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        """All objects, the first one included."""
        count = self.others[0].vertices.start if self.others else self.animation.vertex_count
        return SourcePart(self.object, self.mesh, slice(0, count)), *self.others


def read_animation(
    context: bpy.types.Context,
    mesh_object: bpy.types.Object,
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
    others: tuple = (),
    omissions: Omissions | None = None,
) -> Generator[float, None, SourceAnimation]:
    """Generator: read the animation of ``mesh_object`` as the viewport shows it; returns a SourceAnimation.

    others: objects to read along with it, transformed into its space at every frame according to their place in the
    world. omissions: those of a caller that reads more of the scene. Yields the fraction done. The range includes its
    last frame; None stands for the scene's. The scene's current frame is restored in any case; unless the generator
    returns, everything that it made is removed.
    Raises BadScene, BadSettings, BadMesh, BadAnimation or NotEnoughMemory, at the first bad frame.
    """
    objects = (mesh_object, *others)
    check_sources(context, objects)
    scene, view_layer = context.scene, context.view_layer
    names = [ob.name for ob in objects]
    numbers = moving_range(scene, frame_start, frame_end, frame_step, object_label(mesh_object))
    try:
        watch = omissions or Omissions(context, objects, numbers)
        with watch.blamed():
            return (yield from _read(context, scene, view_layer, objects, numbers, watch))
    except ReferenceError as error:
        gone = next((name for name, ob in zip(names, objects, strict=True) if not is_alive(ob)), names[0])
        raise unmet("REMOVED", object=f'object "{gone}"') from error


def _read(
    context: bpy.types.Context,
    scene: bpy.types.Scene,
    view_layer: bpy.types.ViewLayer,
    objects: Sequence[bpy.types.Object],
    numbers: range,
    watch: Omissions,
) -> Generator[float, None, SourceAnimation]:
    # Several objects must be evaluated at every frame in any case, as they may move relative to each other.
    keys = shape_key_values(scene, objects[0], numbers) if len(objects) == 1 else None
    if keys is not None:
        return (yield from _read_keys(keys, numbers, watch))
    stamps = [cache_stamps(ob) for ob in objects]
    for ob in objects:
        check_cache_content(ob, context.evaluated_depsgraph_get())
    return (yield from _read_evaluated(scene, view_layer, objects, numbers, stamps, watch))


def _read_keys(keys: ShapeKeyValues, numbers: range, watch: Omissions) -> Generator[float, None, SourceAnimation]:
    mesh_object = keys.object
    frames = _allocate(object_label(mesh_object), len(numbers), len(mesh_object.data.vertices))
    yield from read_shape_keys(keys, frames)
    for number, positions in zip(numbers, frames, strict=True):
        check_finite(positions, str(number), object_label(mesh_object))
    with ExitStack() as undo:
        mesh = bpy.data.meshes.new_from_object(mesh_object)
        undo.callback(remove_living, [mesh])
        _make_independent(mesh_object, mesh)
        write_attribute(mesh, "position", "FLOAT_VECTOR", frames[0])
        mesh.update()
        parts = [SourcePart(mesh_object, mesh, slice(0, frames.shape[1]))]
        source = _source(parts, frames, numbers, "Shape keys", watch.finish())
        undo.pop_all()
        return source


def _read_evaluated(
    scene: bpy.types.Scene,
    view_layer: bpy.types.ViewLayer,
    objects: Sequence[bpy.types.Object],
    numbers: range,
    stamps: list[dict],
    watch: Omissions,
) -> Generator[float, None, SourceAnimation]:
    steps = frames_to_play(scene, view_layer, objects, numbers)
    label = sources_label(objects)
    vertex_count = sum(len(ob.evaluated_get(view_layer.depsgraph).data.vertices) for ob in objects)
    _check_memory(label, len(numbers), vertex_count)
    frames, row = None, 0
    with frame_kept(scene), ExitStack() as undo:
        for done, number in enumerate(steps):
            scene.frame_set(number)
            if number in numbers:
                evaluated = [_evaluated(view_layer, ob, number) for ob in objects]
                for ob, stamp in zip(objects, stamps, strict=True):
                    check_cache_unchanged(ob, stamp)
                watch.look(view_layer.depsgraph)
                counts = [_topology(ob.data) for ob in evaluated]
                for ob, own in zip(objects, counts, strict=True):
                    _check_vertices(own, object_label(ob), number)
                if frames is None:
                    expected, frames = counts, _allocate(label, len(numbers), sum(own[0] for own in counts))
                    parts = _copies(objects, evaluated, number, view_layer.depsgraph, undo)
                for ob, own, before in zip(objects, counts, expected, strict=True):
                    _check_topology(own, before, object_label(ob), number)
                _read_positions(parts, evaluated, number, frames[row])
                row += 1
            yield (done + 1) / len(steps)
        method = "Evaluated mesh" if steps is numbers else f"Evaluated mesh, simulated from frame {steps[0]}"
        assert frames is not None
        source = _source(parts, frames, numbers, method, watch.finish())
        undo.pop_all()
        return source


def _copies(
    objects: Sequence[bpy.types.Object],
    evaluated: Sequence[bpy.types.Object],
    number: int,
    depsgraph: bpy.types.Depsgraph,
    undo: ExitStack,
) -> list[SourcePart]:
    """The parts, each with a new mesh in the space of the first; ``undo`` removes these meshes."""
    parts, start = [], 0
    for ob, each in zip(objects, evaluated, strict=True):
        to_first = to_space_of(evaluated[0], each, number)
        mesh = _evaluated_copy(each, depsgraph)
        undo.callback(remove_living, [mesh])
        _make_independent(ob, mesh)
        if to_first is not None:
            move_mesh(mesh, to_first)
        parts.append(SourcePart(ob, mesh, slice(start, start + len(mesh.vertices))))
        start += len(mesh.vertices)
    return parts


def _read_positions(
    parts: list[SourcePart], evaluated: Sequence[bpy.types.Object], number: int, positions: np.ndarray
) -> None:
    """Fill ``positions`` (N, 3) float32 with the vertices of the parts' evaluated objects, in the first object's
    space."""
    for part, each in zip(parts, evaluated, strict=True):
        own = positions[part.vertices]
        read_attribute(each.data, "position", own)
        to_first = to_space_of(evaluated[0], each, number)
        if to_first is not None:
            own[:] = transform_points(own, to_first)
        check_finite(own, str(number), object_label(part.object))


def _evaluated(view_layer: bpy.types.ViewLayer, mesh_object: bpy.types.Object, number: int) -> bpy.types.Object:
    """The object as evaluated at the current frame, ``number``.

    Raises for what changed since the start: by the user between two steps, by animated visibility, by a removed file.
    """
    check_mode(mesh_object)
    if not mesh_object.visible_get(view_layer=view_layer):
        raise BadAnimation(
            f"The {object_label(mesh_object)} is hidden at frame {number}, so Blender does not evaluate its shape "
            "there. Start or end the range where it is visible, or mute the animation of its visibility in the viewport"
        )
    for modifier in sequences(mesh_object):
        check_sequence_file(mesh_object, modifier, number)
    return mesh_object.evaluated_get(view_layer.depsgraph)


def _topology(mesh: bpy.types.Mesh) -> tuple[int, int, int]:
    """Numbers of vertices, faces and face corners."""
    return len(mesh.vertices), len(mesh.polygons), len(mesh.loops)


def _check_vertices(counts: tuple[int, int, int], label: str, number: int) -> None:
    if counts[0] == 0:
        raise BadMesh(
            f"The {label} has no vertices at frame {number}. Leave that frame out of the range; "
            "if Geometry Nodes make its shape, realize the instances"
        )


def _check_topology(counts: tuple[int, int, int], expected: tuple[int, int, int], label: str, number: int) -> None:
    if counts != expected:
        told = (
            f"its vertices change from {expected[0]} to {counts[0]}",
            f"its faces change from {expected[1]} to {counts[1]}",
            f"its face corners change from {expected[2]} to {counts[2]}",
        )
        changes = ", ".join(text for text, before, now in zip(told, expected, counts, strict=True) if before != now)
        raise BadAnimation(
            f"The {label} does not keep its topology: at frame {number} {changes}. "
            "Skinning needs the same mesh in every frame; leave that frame out of the range, "
            "or remove what changes the mesh"
        )


def _check_memory(label: str, frame_count: int, vertex_count: int) -> None:
    """Raises NotEnoughMemory before the machine runs out of memory while reading."""
    what = f"The positions of {label} ({vertex_count} vertices, {frame_count} frames)"
    check_available(frame_count * vertex_count * POSITION_BYTES, what)


def _allocate(label: str, frame_count: int, vertex_count: int) -> np.ndarray:
    """An empty array for (F, N, 3) float32 positions."""
    _check_memory(label, frame_count, vertex_count)
    return np.empty((frame_count, vertex_count, 3), dtype=np.float32)


def _evaluated_copy(evaluated: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bpy.types.Mesh:
    return bpy.data.meshes.new_from_object(evaluated, preserve_all_data_layers=True, depsgraph=depsgraph)


def _make_independent(mesh_object: bpy.types.Object, mesh: bpy.types.Mesh) -> None:
    """Make a new copy of the object's mesh independent: named, with the materials that the object shows."""
    mesh.name = f"{mesh_object.name}_skinned"
    for index, slot in enumerate(mesh_object.material_slots):
        if slot.link != "OBJECT":
            continue
        if index < len(mesh.materials):
            mesh.materials[index] = slot.material
        else:
            mesh.materials.append(slot.material)
    remove_from_mesh(mesh)
    remove_attributes(mesh, (VELOCITY,))
    # The groups' names live in the mesh, but only an object can remove them.
    carrier = bpy.data.objects.new(mesh.name, mesh)
    try:
        carrier.vertex_groups.clear()
    finally:
        bpy.data.objects.remove(carrier)


def _source(
    parts: list[SourcePart], frames: np.ndarray, numbers: range, method: str, omissions: tuple[Omission, ...]
) -> SourceAnimation:
    first, *others = parts
    triangles = np.concatenate([mesh_triangles(part.mesh) + np.int32(part.vertices.start) for part in parts])
    label = sources_label([part.object for part in parts])
    animation = Animation(frames, triangles, np.array(numbers, dtype=np.float64), label)
    return SourceAnimation(first.object, animation, method, first.mesh, tuple(others), omissions)
