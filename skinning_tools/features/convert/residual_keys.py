# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual shapes as shape keys of the skinned mesh, and their values over time as keyframes."""

import bpy
import numpy as np

from ...blender import actions
from ...blender.actions import value_path

KEY_PREFIX = "Residual"
CURVE_GROUP = "Residual Shapes"


def add_residual_keys(mesh_object, shapes: np.ndarray) -> tuple[str, ...]:
    """Add a shape key for each of ``shapes`` (R, N, 3), offsets from the mesh as it is; returns their names.

    The armature modifier deforms what they make of the rest pose. Their values may go from −1 to 1.
    """
    mesh_object.shape_key_add(name="Basis", from_mix=False)
    rest = np.empty(shapes.shape[1:], np.float32)
    mesh_object.data.attributes["position"].data.foreach_get("vector", rest.ravel())
    digits = len(str(len(shapes)))
    names = []
    for number, offsets in enumerate(shapes, start=1):
        block = mesh_object.shape_key_add(name=f"{KEY_PREFIX} {number:0{digits}}", from_mix=False)
        block.points.foreach_set("co", (rest + offsets).astype(np.float32).ravel())
        block.slider_min, block.slider_max = -1.0, 1.0
        names.append(block.name)
    return tuple(names)


def assign_residual_action(mesh_objects, action, name: str) -> bpy.types.Action:
    """Give the shape keys of all the objects, which play alike, one action for their values; returns it.

    That is ``action``, the armature's, where actions have slots, so that bones and shapes are exported as one
    animation; a new one called ``name`` where they have none.
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


def key_residual_values(mesh_object, names: tuple[str, ...], values: np.ndarray, times: np.ndarray) -> None:
    """Key the shape keys ``names`` with ``values`` (F, R) at ``times`` (F,) in the action that they have.

    So are those of other objects that have the same action.
    """
    container = actions.curve_container(mesh_object.data.shape_keys)
    for name, column in zip(names, values.T, strict=True):
        actions.write_channels(container, value_path(name), column[:, None], times, CURVE_GROUP)


def value_curves(mesh_object, names: tuple[str, ...]) -> list:
    """The curves of the values of the shape keys ``names``."""
    if not names:
        return []
    paths = {value_path(name) for name in names}
    return [curve for curve in actions.existing_curves(mesh_object.data.shape_keys) if curve.data_path in paths]
