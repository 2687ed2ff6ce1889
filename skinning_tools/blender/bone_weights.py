# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of an armature's deforming bones on a mesh: reads them as arrays, and writes them without changing locked
groups."""

from collections.abc import Iterable
from dataclasses import dataclass

import bpy
import numpy as np

from .bodies import deforming_bones
from .control_points import point_count
from .preconditions import object_label
from .vertex_groups import active_group_kept, fill_group, read_weights


@dataclass(frozen=True, eq=False)
class BoneWeights:
    """bones (N, K) int32, indices into ``names``; weights (N, K) float64, rows that sum to 1, or to 0 where no bone
    moves the vertex; totals (N,): sums of the stored weights of each row; locked (P,) bool: bones with a locked
    group."""

    names: tuple[str, ...]
    bones: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    locked: np.ndarray

    @property
    def bound(self) -> np.ndarray:
        """(N,) bool: the vertices that any bone moves."""
        return np.any(self.weights, axis=1)


def read_bone_weights(
    mesh_object: bpy.types.Object, armature: bpy.types.Object, names: Iterable[str] | None = None
) -> BoneWeights:
    """The weights of the bones ``names`` (all deforming ones, whether they have a group or not). Raises BadWeights."""
    from ..core.deform import convex_influences

    names = deforming_bones(armature) if names is None else tuple(names)
    bones, weights = read_weights(mesh_object, names)
    totals = weights.sum(axis=1)
    bones, weights = convex_influences(bones, weights, point_count(mesh_object), len(names), object_label(mesh_object))
    return BoneWeights(names, bones, weights, totals, locked_bones(mesh_object, names))


def locked_bones(mesh_object: bpy.types.Object, names: Iterable[str]) -> np.ndarray:
    """(P,) bool: whether the vertex group of each bone exists and is locked."""
    groups = mesh_object.vertex_groups
    return np.array([name in groups and groups[name].lock_weight for name in names], dtype=bool)


def notes_on_users(mesh_object: bpy.types.Object) -> list[str]:
    """A note for the user if other objects have the same mesh, and so its new weights."""
    users = mesh_object.data.users
    return [f"the mesh has {users} users, which all have the new weights"] if users > 1 else []


def write_bone_weights(
    mesh_object: bpy.types.Object,
    before: BoneWeights,
    bones: np.ndarray,
    weights: np.ndarray,
    vertices: np.ndarray | None = None,
    *,
    keep_totals: bool = False,
) -> None:
    """Write rows ``bones`` and ``weights`` (n, K) that sum to 1, indices into ``before.names``, in place of ``before``.

    vertices (n,): the vertices of the rows, None for all; others keep their stored weights exactly. Locked groups do
    not change; if one holds part of a row, the other weights are scaled to keep its share. keep_totals: all rows keep
    their sums, unless a weight would exceed 1. Missing groups of bones are made if needed; all other groups stay.
    """
    count = len(before.bones)
    vertices = np.arange(count) if vertices is None else np.asarray(vertices)
    bones, weights = np.asarray(bones).astype(np.int64), np.asarray(weights, dtype=np.float64)
    totals = before.totals[vertices]
    # Blender divides by the total: a row with a locked weight must keep its total.
    held = (before.locked[bones] & (weights > 0)).any(axis=1)
    if keep_totals:
        held |= (weights * totals[:, None]).max(axis=1) <= 1
    weights = (weights * np.where(held & (totals > 0), totals, 1.0)[:, None]).astype(np.float32)
    used = (weights > 0) & ~before.locked[bones]
    keys, slot = np.unique((bones * count + vertices[:, None])[used], return_inverse=True)
    values = np.bincount(slot.reshape(-1), weights=weights[used], minlength=len(keys)).astype(np.float32)
    members = before.bones[vertices].astype(np.int64)
    left = np.setdiff1d((members * count + vertices[:, None])[~before.locked[members]], keys)
    bounds = np.arange(len(before.names) + 1) * count
    kept, gone = np.searchsorted(keys, bounds), np.searchsorted(left, bounds)
    groups = mesh_object.vertex_groups
    with active_group_kept(mesh_object):
        for index, name in enumerate(before.names):
            group = groups.get(name)
            added = slice(kept[index], kept[index + 1])
            removed = left[gone[index] : gone[index + 1]] % count
            if group is not None and len(removed):
                group.remove(removed.tolist())
            if added.start < added.stop:
                group = groups.new(name=name) if group is None else group
                fill_group(group, keys[added] % count, values[added])
