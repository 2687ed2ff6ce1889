# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives the weights of helper bones without notes to the other bones of the same vertices."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ...core.errors import BadWeights
from ..bodies import deforming_bones
from ..bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ..preconditions import object_label
from ..vertex_groups import remove_groups
from ..wording import vertices_text


@dataclass(frozen=True, eq=False)
class NewWeights:
    """Rows ``bones`` and ``weights`` (n, K), as ``write_bone_weights`` takes them, for the ``vertices`` (n,)."""

    mesh_object: bpy.types.Object
    before: BoneWeights
    bones: np.ndarray
    weights: np.ndarray
    vertices: np.ndarray

    def write(self, helpers: Sequence[str]) -> None:
        """Write them, and remove the vertex groups of the helpers."""
        write_bone_weights(self.mesh_object, self.before, self.bones, self.weights, self.vertices, keep_totals=True)
        remove_groups(self.mesh_object, helpers)


def shared_again(mesh_object: bpy.types.Object, armature: bpy.types.Object, helpers: Sequence[str]) -> NewWeights:
    """The weights of a mesh object without the bones ``helpers``.

    Their weights go to the other bones of the same vertices: locked weights stay, the others are scaled to keep the
    rows' sums. If no other bone can take them, the helper's nearest deforming ancestor gets them, or the bone that
    shares most vertices with it. Raises BadWeights.
    """
    names = [name for name in deforming_bones(armature) if name not in helpers]
    count = len(names)
    before = read_bone_weights(mesh_object, armature, [*names, *helpers])
    vertices = np.flatnonzero(((before.bones >= count) & (before.weights > 0)).any(axis=1))
    bones, weights = before.bones[vertices].astype(np.int64), before.weights[vertices]
    helping = bones >= count
    free = ~helping & ~before.locked[bones]
    given = np.where(helping, weights, 0.0).sum(axis=1, keepdims=True)
    taking = np.where(free, weights, 0.0).sum(axis=1, keepdims=True)
    alone = taking <= 0
    scale = np.divide(taking + given, taking, out=np.ones_like(taking), where=~alone)
    new_bones, new_weights = bones.copy(), np.where(free, weights * scale, np.where(helping, 0.0, weights))
    left = helping & (weights > 0) & alone
    for slot in np.unique(bones[left]):
        here = left & (bones == slot)
        new_bones[here] = _receiver(armature, before, int(slot), count, int(here.any(axis=1).sum()), mesh_object)
        new_weights[here] = weights[here]
    return NewWeights(mesh_object, before, new_bones, new_weights, vertices)


def _receiver(
    armature: bpy.types.Object,
    before: BoneWeights,
    helper: int,
    count: int,
    vertices: int,
    mesh_object: bpy.types.Object,
) -> int:
    """The index, below ``count``, of the bone of ``before`` that takes a helper's weights if no other bone of the
    vertex can. Raises BadWeights."""
    free = [name for name, locked in zip(before.names[:count], before.locked, strict=False) if not locked]
    above = next(
        (bone.name for bone in armature.data.bones[before.names[helper]].parent_recursive if bone.name in free), ""
    )
    if above:
        return before.names.index(above)
    if count:
        beside = weights_beside(before.bones, before.weights, count, helper)
        beside[before.locked[:count]] = 0.0
        if beside.any():
            return int(np.argmax(beside))
    raise BadWeights(
        f'No unlocked bone can take the weights of "{before.names[helper]}" at {vertices_text(vertices)} of '
        f"{object_label(mesh_object)}. Unlock vertex groups (the padlock), or assign such vertices to another bone"
    )


def weights_beside(bones: np.ndarray, weights: np.ndarray, count: int, bone: int) -> np.ndarray:
    """(count,): how much each of the first ``count`` bones of the rows ``bones`` and ``weights`` (N, K) shares vertices
    with ``bone``."""
    share = np.where(bones == bone, weights, 0.0).sum(axis=1)
    beside = np.where(bones < count, weights, 0.0) * share[:, None]
    return np.bincount(np.minimum(bones, count - 1).ravel(), beside.ravel(), count)
