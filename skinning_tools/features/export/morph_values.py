# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys of exported meshes with values between 0 and 1, which players of morph targets expect, as keyframes."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import actions
from ...blender.actions import value_path
from ...blender.animation.shape_key_reader import key_coordinates
from ...blender.data_blocks import clear_shape_keys
from ...blender.preconditions import check_movable, object_label
from ...blender.shapes import key_displacements
from ...blender.temporary_scene import evaluate_frame

OFFSET = "Offset"
# A value outside the range by less moves nothing that shows.
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class PlayedKeys:
    """A mesh object, and the values (F, K) of its shape keys, which its file has to hold as keyframes between 0 and
    1."""

    object: bpy.types.Object
    values: np.ndarray


def unplayable_keys(
    objects: Sequence[bpy.types.Object], scene: bpy.types.Scene, frames: Sequence[int]
) -> Generator[float, None, list[PlayedKeys]]:
    """Generator: the PlayedKeys of the meshes in ``scene`` whose shape keys have drivers, or values outside of 0 to 1,
    at ``frames``. Yields the fraction done. Raises BadScene if such a mesh is of a linked object, whose data cannot be
    exchanged."""
    keyed = {ob.data: ob for ob in objects if _plays(ob.data.shape_keys)}
    read = {mesh: np.empty((len(frames), len(mesh.shape_keys.key_blocks)), np.float32) for mesh in keyed}
    for row, frame in enumerate(frames if read else ()):
        depsgraph = evaluate_frame(scene, frame)
        for mesh, values in read.items():
            mesh.shape_keys.evaluated_get(depsgraph).key_blocks.foreach_get("value", values[row])
        yield (row + 1) / len(frames)
    found = [PlayedKeys(keyed[mesh], values) for mesh, values in read.items() if _needs_change(mesh, values)]
    for played in found:
        check_movable(
            played.object,
            object_label(played.object),
            "its shape keys cannot be written with keyframes between 0 and 1",
        )
    return found


def _plays(keys: bpy.types.Key | None) -> bool:
    return keys is not None and keys.use_relative and len(keys.key_blocks) > 1


def _needs_change(mesh: bpy.types.Mesh, values: np.ndarray) -> bool:
    animation = mesh.shape_keys.animation_data
    if animation is not None and (len(animation.drivers) or any(not each.mute for each in animation.nla_tracks)):
        return True
    heard = [not block.mute for block in mesh.shape_keys.key_blocks[1:]]
    shown = values[:, 1:][:, heard]
    return bool(shown.size) and bool(shown.min() < -_SAME or shown.max() > 1 + _SAME)


@contextmanager
def playable(found: Sequence[PlayedKeys], times: np.ndarray) -> Iterator[None]:
    """Context in which the meshes of ``found`` are copies, under their names, whose shape keys have linear keyframes
    between 0 and 1 at ``times`` (F,)."""
    with ExitStack() as undo:
        for played in found:
            undo.enter_context(_replaced(played, times))
        yield


@contextmanager
def _replaced(played: PlayedKeys, times: np.ndarray) -> Iterator[None]:
    ob, original = played.object, played.object.data
    users = [each for each in bpy.data.objects if each.data == original]
    active = {each: each.active_shape_key_index for each in users}
    name, copy = original.name, original.copy()
    if original.library is None:
        original.name = f"{name[:50]}.original"
    copy.name = name
    try:
        for each in users:
            each.data = copy
        _rewrite(ob, played.values, times)
        yield
    finally:
        animation = copy.shape_keys.animation_data
        action = animation.action if animation is not None else None
        if action is not None:
            animation.action = None
        ob.data = copy
        clear_shape_keys(ob)
        for each in users:
            each.data = original
            each.active_shape_key_index = active[each]
        bpy.data.meshes.remove(copy)
        if action is not None and not action.users:
            bpy.data.actions.remove(action)
        if original.library is None:
            original.name = name


def _rewrite(ob: bpy.types.Object, values: np.ndarray, times: np.ndarray) -> None:
    """Give the object's shape keys ranges from 0 to 1 and keyframes that play ``values`` (F, K) of their present
    ones."""
    keys = ob.data.shape_keys
    keys.animation_data_clear()
    blocks, basis = list(keys.key_blocks[1:]), key_coordinates(keys.reference_key).astype(np.float64)
    displacements = [key_displacements(ob, block) for block in blocks]
    offset = np.zeros_like(basis)
    curves = []
    for block, displacement, column in zip(blocks, displacements, values[:, 1:].T.astype(np.float64), strict=True):
        if block.mute:
            column = np.zeros_like(column)
        lowest, highest = min(column.min(), 0.0), max(column.max(), 0.0)
        # Where nothing is out of range, the artist's values stay.
        size = highest - lowest if lowest < 0 or highest > 1 else 1.0
        offset += lowest * displacement
        block.points.foreach_set("co", (basis + size * displacement).astype(np.float32).ravel())
        block.relative_key, block.vertex_group = keys.reference_key, ""
        block.slider_min, block.slider_max = 0.0, 1.0
        block.value = (column[0] - lowest) / size
        curves.append((block.name, (column - lowest) / size))
    if offset.any():
        block = ob.shape_key_add(name=OFFSET, from_mix=False)
        block.points.foreach_set("co", (basis + offset).astype(np.float32).ravel())
        block.value = 1.0
    actions.new_action(keys, keys.name)
    container = actions.curve_container(keys)
    assert container is not None
    for name, column in curves:
        actions.write_channels(container, value_path(name), column[:, None], times, "Shape Keys")
