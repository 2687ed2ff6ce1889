# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual shapes as shape keys of the skinned mesh, and their values over time as keyframes."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender import actions
from ...blender.actions import value_path
from ...blender.attributes import read_attribute

KEY_PREFIX = "Residual"
OFFSET = "Residual Offset"
CURVE_GROUP = "Residual Shapes"


def add_residual_keys(
    mesh_object: bpy.types.Object, shapes: np.ndarray, offset: np.ndarray | None = None
) -> tuple[str, ...]:
    """Add a shape key for each of ``shapes`` (R, N, 3), offsets from the present mesh; returns their names.

    The shape keys change the rest pose before the armature modifier deforms it. Their values range from 0 to 1.
    offset (N, 3): the shape of a further key, whose value is always 1.
    """
    mesh_object.shape_key_add(name="Basis", from_mix=False)
    rest = read_attribute(mesh_object.data, "position")
    digits = len(str(len(shapes)))
    names = []
    if offset is not None:
        _add_key(mesh_object, OFFSET, rest + offset).value = 1.0
    for number, offsets in enumerate(shapes, start=1):
        names.append(_add_key(mesh_object, f"{KEY_PREFIX} {number:0{digits}}", rest + offsets).name)
    return tuple(names)


def _add_key(mesh_object: bpy.types.Object, name: str, positions: np.ndarray) -> bpy.types.ShapeKey:
    block = mesh_object.shape_key_add(name=name, from_mix=False)
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


def key_residual_values(
    mesh_object: bpy.types.Object, names: tuple[str, ...], values: np.ndarray, times: np.ndarray
) -> None:
    """Key the shape keys ``names`` with ``values`` (F, R) at ``times`` (F,) in their action.

    This also keys other objects with the same action.
    """
    container = actions.curve_container(mesh_object.data.shape_keys)
    for name, column in zip(names, values.T, strict=True):
        actions.write_channels(container, value_path(name), column[:, None], times, CURVE_GROUP)


def value_curves(mesh_object: bpy.types.Object, names: tuple[str, ...]) -> list:
    """The F-curves of the shape keys ``names``."""
    if not names:
        return []
    paths = {value_path(name) for name in names}
    return [curve for curve in actions.existing_curves(mesh_object.data.shape_keys) if curve.data_path in paths]
