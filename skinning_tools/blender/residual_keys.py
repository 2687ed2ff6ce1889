# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual shapes as shape keys of the skinned mesh, and their values over time as keyframes."""

import re
from collections.abc import Sequence, Set

import bpy
import numpy as np

from . import actions
from .actions import value_path
from .control_points import read_positions
from .skin_reader import rest_positions

KEY_PREFIX = "Residual"
OFFSET = "Residual Offset"
CURVE_GROUP = "Residual Shapes"
_NUMBERED = re.compile(rf"{KEY_PREFIX} \d+")


def residual_names(mesh_object: bpy.types.Object) -> tuple[str, ...]:
    """The shape keys of residual shapes, without their offset."""
    keys = mesh_object.data.shape_keys
    return tuple(block.name for block in keys.key_blocks if _NUMBERED.fullmatch(block.name)) if keys is not None else ()


def put_residual_keys(
    mesh_object: bpy.types.Object, shapes: np.ndarray, offset: np.ndarray | None, names: Sequence[str] = ()
) -> tuple[str, ...]:
    """A shape key for each of ``shapes`` (R, N, 3), offsets from the mesh at rest; returns their names.

    names: of the keys, of which those that exist are overwritten; by default "Residual 1" and so on. The shape keys
    change the rest pose before the armature modifier deforms it. Their values range from 0 to 1. offset (N, 3): the
    shape of a further key, whose value is always 1.
    """
    digits = len(str(len(shapes)))
    names = tuple(names) or tuple(f"{KEY_PREFIX} {number:0{digits}}" for number in range(1, len(shapes) + 1))
    if mesh_object.data.shape_keys is None:
        mesh_object.shape_key_add(name="Basis", from_mix=False)
    rest, blocks = rest_positions(mesh_object.data), mesh_object.data.shape_keys.key_blocks
    if offset is not None or OFFSET in blocks:
        _put_key(mesh_object, OFFSET, rest if offset is None else rest + offset).value = 1.0
    for name, offsets in zip(names, shapes, strict=True):
        _put_key(mesh_object, name, rest + offsets)
    return names


def _put_key(mesh_object: bpy.types.Object, name: str, positions: np.ndarray) -> bpy.types.ShapeKey:
    found = mesh_object.data.shape_keys.key_blocks.get(name)
    block = mesh_object.shape_key_add(name=name, from_mix=False) if found is None else found
    block.points.foreach_set("co", positions.astype(np.float32).ravel())
    return block


def assign_residual_action(
    mesh_objects: Sequence[bpy.types.Object], action: bpy.types.Action, name: str
) -> bpy.types.Action:
    """Assign the shape keys of all the objects, which share their values, one action; returns it.

    If actions have slots, it is ``action``, the armature's, so that bones and shapes are exported as one animation;
    otherwise a new action called ``name``.
    """
    first, *others = (ob.data.shape_keys for ob in mesh_objects)
    if hasattr(action, "slots"):
        first.animation_data_create().action = action
        first.animation_data.action_slot = action.slots.new(id_type=first.id_type, name=mesh_objects[0].name)
    else:
        action = actions.new_action(first, name)
    for keys in others:
        keys.animation_data_create().action = action
        if hasattr(action, "slots"):
            keys.animation_data.action_slot = first.animation_data.action_slot
    return action


def play_residual_keys(mesh_object: bpy.types.Object, other: bpy.types.Object, names: Sequence[str]) -> None:
    """Let the mesh have the residual shapes ``names`` of ``other``, which has the same vertices, and play their action.

    The curves of its other shape keys come along; its present action stays in the file.
    """
    keys, played = mesh_object.data.shape_keys, other.data.shape_keys.animation_data
    container, paths = actions.curve_container(other.data.shape_keys), {value_path(name) for name in names}
    for curve in [each for each in actions.existing_curves(keys) if each.data_path not in paths]:
        group = curve.group.name if curve.group is not None else CURVE_GROUP
        actions.copy_curve(container, curve, curve.data_path, group)
    rest, blocks = rest_positions(other.data), other.data.shape_keys.key_blocks
    shapes = [read_positions(blocks[name].points, "co") - rest for name in (OFFSET, *names) if name in blocks]
    offset = shapes.pop(0) if OFFSET in blocks else None
    put_residual_keys(mesh_object, np.array(shapes), offset, names)
    animation = keys.animation_data or keys.animation_data_create()
    if animation.action is not None and animation.action.library is None:
        animation.action.use_fake_user = True
    animation.action = played.action
    if hasattr(played, "action_slot"):
        animation.action_slot = played.action_slot
        played.action_slot.name_display = mesh_object.name


def key_residual_values(
    mesh_object: bpy.types.Object, names: tuple[str, ...], values: np.ndarray, times: np.ndarray
) -> None:
    """Key the shape keys ``names`` with ``values`` (F, R) at ``times`` (F,) in their action.

    This also keys other objects with the same action.
    """
    container = actions.curve_container(mesh_object.data.shape_keys)
    for name, column in zip(names, values.T, strict=True):
        actions.write_channels(container, value_path(name), column[:, None], times, CURVE_GROUP)


def key_no_residuals(mesh_object: bpy.types.Object, time: float) -> None:
    """Key all residual shapes and their offset as off in the action that their mesh plays."""
    present = [block.name for block in mesh_object.data.shape_keys.key_blocks]
    names = *(name for name in (OFFSET,) if name in present), *residual_names(mesh_object)
    key_residual_values(mesh_object, names, np.zeros((1, len(names))), np.array([time]))


def key_offset(
    mesh_object: bpy.types.Object, container: "bpy.types.Action | bpy.types.ActionChannelbag", paths: Set[str]
) -> None:
    """Let an action with the values of residual shapes, whose curves have ``paths``, turn on their offset itself."""
    first = next((name for name in residual_names(mesh_object) if value_path(name) in paths), None)
    if first is None or value_path(OFFSET) in paths or OFFSET not in mesh_object.data.shape_keys.key_blocks:
        return
    time = next(curve for curve in container.fcurves if curve.data_path == value_path(first)).range()[0]
    actions.write_channels(container, value_path(OFFSET), np.ones((1, 1)), np.array([time]), CURVE_GROUP)


def value_curves(mesh_object: bpy.types.Object, names: tuple[str, ...]) -> list:
    """The F-curves of the shape keys ``names``."""
    if not names:
        return []
    paths = {value_path(name) for name in names}
    return [curve for curve in actions.existing_curves(mesh_object.data.shape_keys) if curve.data_path in paths]
