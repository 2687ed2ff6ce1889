# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads shape keys in bulk: if only keyed relative shape keys move a mesh, its frames need no evaluation.

The sum is Blender's own, in its order and precision: basis, plus for each key block, in their order,
value × group weight × (block − the block it is relative to).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import bmesh
import bpy
import numpy as np

from ...core.errors import BadScene
from ..object_checks import visible_modifiers
from ..preconditions import object_label

# Channels of an object that do not change its mesh.
_OBJECT_CHANNELS = re.compile(r'(delta_)?(location|rotation_|scale)|hide_|color$|show_|display_|constraints\[|\["')
# Parents of these types deform their children as a modifier does.
_DEFORMING_PARENTS = {"ARMATURE", "LATTICE"}


@dataclass(frozen=True)
class ShapeKeyValues:
    """The key blocks' values (F, K) float32 at each frame, found without evaluating the scene."""

    object: bpy.types.Object
    values: np.ndarray


def shape_key_values(
    scene: bpy.types.Scene, mesh_object: bpy.types.Object, frame_numbers: Sequence[int]
) -> ShapeKeyValues | None:
    """The values of the object's shape keys at ``frame_numbers``, or None where they require Blender's evaluation.

    None whenever anything else may shape the mesh (a modifier, a deforming parent, a driver, the NLA, a handler),
    for absolute keys, and where the object is pinned to one shape.
    """
    if not _only_keys_deform(scene, mesh_object):
        return None
    key = mesh_object.data.shape_keys
    curves = _value_curves(key)
    if curves is None:
        return None
    values = np.empty((len(frame_numbers), len(key.key_blocks)), dtype=np.float32)
    for column, block in enumerate(key.key_blocks):
        curve = curves.get(block.path_from_id("value"))
        if block.mute or block == key.reference_key:
            values[:, column] = 0.0
        elif curve is None:
            values[:, column] = block.value
        else:
            values[:, column] = [curve.evaluate(number) for number in frame_numbers]
            # Blender does the same when it writes an animated value.
            np.clip(values[:, column], block.slider_min, block.slider_max, out=values[:, column])
    return ShapeKeyValues(mesh_object, values)


def read_shape_keys(keys: ShapeKeyValues, frames: np.ndarray) -> Iterator[float]:
    """Generator: fill ``frames`` (F, N, 3) float32; yields the fraction done.

    Raises BadScene if key blocks are added or removed between two steps.
    """
    blocks = keys.object.data.shape_keys.key_blocks
    weights = group_weights(keys.object, {block.vertex_group for block in blocks} - {""})
    frames[:] = key_coordinates(keys.object.data.shape_keys.reference_key)
    count = keys.values.shape[1]
    for column in range(count):
        _add_block(keys, column, weights, frames)
        yield (column + 1) / count


def _add_block(keys: ShapeKeyValues, column: int, weights: dict[str, np.ndarray], frames: np.ndarray) -> None:
    # Looked up again at every step: Blender frees key blocks without notifying Python.
    key = keys.object.data.shape_keys
    if key is None or len(key.key_blocks) != keys.values.shape[1]:
        raise BadScene(f"The shape keys of {object_label(keys.object)} were changed while they were being read")
    rows = np.flatnonzero(keys.values[:, column])
    if not len(rows):
        return
    block = key.key_blocks[column]
    difference = key_coordinates(block.relative_key)
    difference -= key_coordinates(block)
    mask = weights.get(block.vertex_group)
    for row in rows:
        value = keys.values[row, column]
        frames[row] -= (value if mask is None else (mask * value)[:, None]) * difference


def _only_keys_deform(scene: bpy.types.Scene, mesh_object: bpy.types.Object) -> bool:
    mesh = mesh_object.data
    key = mesh.shape_keys
    if key is None or not key.use_relative or mesh_object.show_only_shape_key or visible_modifiers(mesh_object):
        return False
    if mesh_object.parent is not None and mesh_object.parent_type in _DEFORMING_PARENTS:
        return False
    if any(len(block.points) != len(mesh.vertices) for block in key.key_blocks):
        return False
    if scene.render.frame_map_old != scene.render.frame_map_new:
        return False
    if bpy.app.handlers.frame_change_pre or bpy.app.handlers.frame_change_post:
        # A handler may change anything, including these values.
        return False
    if mesh.animation_data is not None and not _channels_match(mesh.animation_data, re.compile(r"(?!)")):
        return False
    return mesh_object.animation_data is None or _channels_match(mesh_object.animation_data, _OBJECT_CHANNELS)


def _channels_match(animation: bpy.types.AnimData, pattern: re.Pattern) -> bool:
    """Whether the animation data has only known curves and drivers, whose data paths begin with ``pattern``."""
    curves = _action_curves(animation)
    if curves is None or len(animation.nla_tracks):
        return False
    return all(pattern.match(curve.data_path) for curve in (*curves, *animation.drivers))


def _value_curves(key: bpy.types.Key) -> dict[str, bpy.types.FCurve] | None:
    """Curve of each animated ``key_blocks[...].value`` by its path; None if anything else is animated."""
    animation = key.animation_data
    if animation is None:
        return {}
    curves = _action_curves(animation)
    if curves is None or len(animation.drivers) or len(animation.nla_tracks):
        return None
    paths = {block.path_from_id("value") for block in key.key_blocks}
    if not all(curve.data_path in paths and _is_plain(curve) for curve in curves):
        return None
    by_path = {curve.data_path: curve for curve in curves}
    return by_path if len(by_path) == len(curves) else None


def _is_plain(curve: bpy.types.FCurve) -> bool:
    muted = curve.mute or (curve.group is not None and curve.group.mute)
    return curve.is_valid and not muted and not curve.is_empty


def _action_curves(animation: bpy.types.AnimData) -> list | None:
    """The curves that the action applies; None if the action has an unknown structure."""
    action = animation.action
    if action is None:
        return []
    if not hasattr(animation, "action_slot"):  # before 4.4 an action had no slots
        return list(action.fcurves)
    strips = [strip for layer in action.layers for strip in layer.strips]
    if animation.action_slot is None or not strips:
        return []
    if len(strips) > 1 or strips[0].type != "KEYFRAME":
        return None
    channels = strips[0].channelbag(animation.action_slot)
    return list(channels.fcurves) if channels else []


def key_coordinates(block: bpy.types.ShapeKey) -> np.ndarray:
    """(N, 3) float32 coordinates of a key block."""
    coordinates = np.empty((len(block.points), 3), dtype=np.float32)
    block.points.foreach_get("co", coordinates.ravel())
    return coordinates


def group_weights(mesh_object: bpy.types.Object, names: set[str]) -> dict[str, np.ndarray]:
    """(N,) float32 weights of each named vertex group that exists; Blender ignores missing groups, so they are left
    out."""
    indices = {name: mesh_object.vertex_groups[name].index for name in names if name in mesh_object.vertex_groups}
    if not indices:
        return {}
    grid = bmesh.new()
    try:
        grid.from_mesh(mesh_object.data, face_normals=False, vertex_normals=False)
        layer = grid.verts.layers.deform.active
        if layer is None:
            return {}
        # Blender has no bulk call for vertex groups; only the masked key blocks' groups are read, once each.
        return {
            name: np.fromiter((vertex[layer].get(index, 0.0) for vertex in grid.verts), np.float32, len(grid.verts))
            for name, index in indices.items()
        }
    finally:
        grid.free()
