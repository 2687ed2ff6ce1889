# SPDX-License-Identifier: GPL-3.0-or-later
"""The rest shape that weights were solved for, as a shape key: the mesh itself stays as it is."""

from collections.abc import Iterator
from contextlib import contextmanager

import bpy
import numpy as np

from ...blender.control_points import read_positions
from ...blender.data_blocks import is_alive
from ...blender.preconditions import unmet
from ...blender.skin_reader import rest_positions

NAME = "Rest for Weights"
# Of the mesh's diagonal: how far a vertex may move.
MOST_SHIFT = 0.005


def check_can_have_key(mesh: bpy.types.Object) -> None:
    """Raises BadScene if the mesh cannot have the key."""
    keys = mesh.data.shape_keys
    if keys is not None and not keys.use_relative:
        raise unmet("ABSOLUTE_KEYS", object=mesh, consequence="the shifted rest shape cannot be added to them")


def _key(mesh: bpy.types.Object) -> bpy.types.ShapeKey | None:
    keys = mesh.data.shape_keys
    return keys.key_blocks.get(NAME) if keys is not None else None


def present_rest(mesh: bpy.types.Object) -> np.ndarray:
    """(N, 3) float64: the rest positions with the key of an earlier solve, if it is on."""
    key = _key(mesh)
    if key is None or key.mute or key.value != 1.0:
        return rest_positions(mesh.data)
    return read_positions(key.points, "co")


def write_key(mesh: bpy.types.Object, rest: np.ndarray) -> None:
    """Make the positions (N, 3) the mesh's rest shape for its weights, by the key at a value of 1."""
    if mesh.data.shape_keys is None:
        mesh.shape_key_add(name="Basis", from_mix=False)
    key = _key(mesh) or mesh.shape_key_add(name=NAME, from_mix=False)
    key.relative_key = mesh.data.shape_keys.reference_key
    key.points.foreach_set("co", np.ascontiguousarray(rest, np.float32).ravel())
    key.mute, key.value = False, 1.0


def mute_key(mesh: bpy.types.Object) -> list[str]:
    """Mute the key of an earlier solve, as new weights are for the mesh itself; returns a note."""
    key = _key(mesh)
    if key is None or key.mute:
        return []
    key.mute = True
    return [f'the shape key "{NAME}" of an earlier solve is muted now']


@contextmanager
def key_muted(mesh: bpy.types.Object) -> Iterator[None]:
    """Context in which the key does not change the mesh."""
    key = _key(mesh)
    if key is None or key.mute:
        yield
        return
    key.mute = True
    try:
        yield
    finally:
        key = _key(mesh) if is_alive(mesh) else None
        if key is not None:
            key.mute = False


def set_rest(copy: bpy.types.Object, rest: np.ndarray) -> None:
    """Move the vertices of a copy without shape keys."""
    copy.data.attributes["position"].data.foreach_set("vector", np.ascontiguousarray(rest, np.float32).ravel())
