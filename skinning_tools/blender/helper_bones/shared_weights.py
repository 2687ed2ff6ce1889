# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights that helpers of joints take from a mesh's bones, collected before anything is written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..bodies import deforming_bones
from ..bone_weights import read_bone_weights
from ..vertex_groups import ABSENT, Memberships, put_columns
from .weight_notes import Change, note_change

if TYPE_CHECKING:
    from scipy import sparse

# Rows keep to this number of bones unless they already have more.
_MOST_INFLUENCES = 4

# Smaller changes of a weight are rounding.
_NO_CHANGE = 1e-6


class SharedWeights:
    """A mesh object's weights while helpers take their shares, one after the other, until ``write``.

    names: the deforming bones, then the helpers' bones in the order of addition. bones (N, K): indices into them;
    weights (N, K): rows that sum to 1, or to 0 if no bone moves the vertex. changed (N,) bool: rows that differ
    from the stored ones.
    """

    def __init__(self, mesh_object: bpy.types.Object, armature: bpy.types.Object):
        read = read_bone_weights(mesh_object, armature)
        self.mesh_object = mesh_object
        self.names = list(deforming_bones(armature))
        self.bones, self.weights = read.bones, read.weights
        self.locked = read.locked
        self.changes: dict[int, Change] = {}
        self.changed = np.zeros(len(self.bones), bool)
        self._totals = read.totals
        # ``take`` runs in a worker thread and must not read groups.
        self._memberships = Memberships.read(mesh_object)
        self._columns: dict[str, np.ndarray] = {}
        self.max_influences = max(_MOST_INFLUENCES, int(np.count_nonzero(self.weights, axis=1).max(initial=0)))

    def index(self, name: str) -> int:
        return self.names.index(name)

    def has_weights(self, names: Sequence[str]) -> bool:
        """Whether any of the bones moves a vertex."""
        return bool((np.isin(self.bones, [self.index(name) for name in names]) & (self.weights > 0)).any())

    def weights_of(self, name: str) -> np.ndarray:
        """(N,) the weights of a bone."""
        return np.where(self.bones == self.index(name), self.weights, 0.0).sum(axis=1)

    def add_names(self, names: Sequence[str]) -> list[int]:
        """Add new bones; returns their indices."""
        first = len(self.names)
        self.names += names
        self.locked = np.append(self.locked, np.zeros(len(names), bool))
        return list(range(first, len(self.names)))

    def take(self, number: int, own: list[int], ends: list[int], bones: np.ndarray, weights: np.ndarray) -> None:
        """Replace the rows with ``bones`` and ``weights``, which sum to 1, for the helper ``number``.

        own: the helper's bones; ends: the bones to which its weights return. Other changed bones are found here.
        """
        rows = np.diff(_changes(self.bones, self.weights, bones, weights, len(self.names)).indptr) > 0
        if not rows.any():
            return
        # Blender stores weights up to 1: a row that would exceed this is normalized to a sum of 1.
        scale = np.where(rows & (weights.max(axis=1) * self._totals > 1), 1.0, self._totals)
        changes = _changes(
            self.bones, self.weights * self._totals[:, None], bones, weights * scale[:, None], len(self.names)
        )
        others = [*ends, *(int(bone) for bone in np.unique(changes.indices) if bone not in {*ends, *own})]
        groups = tuple(self.names[bone] for bone in [*others, *own])
        unread = [name for name in groups if name not in self._columns]
        self._columns |= dict(zip(unread, self._memberships.columns(unread), strict=True))
        former = np.array([self._columns[name] for name in groups])
        latter = former.copy()
        for slot, bone in enumerate([*others, *own]):
            column = (np.where(bones == bone, weights, 0.0).sum(axis=1) * scale).astype(np.float32)
            latter[slot] = np.where(rows, column, former[slot])
        # A weight of zero is not written.
        latter[latter <= 0] = ABSENT
        self._columns |= dict(zip(groups, latter, strict=True))
        self._totals, self.bones, self.weights = scale, bones, weights
        self.changed |= rows
        self.changes[number] = Change(groups, len(others), former, latter)

    def write(self) -> None:
        """Write the weights, and the previous ones, to the mesh."""
        if not self.changes:
            return
        groups = self.mesh_object.vertex_groups
        made = {name for change in self.changes.values() for name in change.groups if name not in groups}
        # The weights read before are out of date.
        put_columns(self.mesh_object, self._columns)
        for number, change in self.changes.items():
            others = change.groups[: change.others]
            note_change(self.mesh_object.data, number, change, [name for name in others if name in made])


def _changes(
    bones: np.ndarray, weights: np.ndarray, new_bones: np.ndarray, new_weights: np.ndarray, bone_count: int
) -> "sparse.csr_matrix":
    """(N, P) sparse: the change of each bone's weight, without rounding."""
    from scipy import sparse

    def matrix(bones: np.ndarray, weights: np.ndarray) -> "sparse.csr_matrix":
        rows = np.repeat(np.arange(len(bones)), bones.shape[1])
        return sparse.coo_matrix((weights.ravel(), (rows, bones.ravel())), shape=(len(bones), bone_count)).tocsr()

    difference = abs(matrix(new_bones, new_weights) - matrix(bones, weights))
    difference.data[difference.data <= _NO_CHANGE] = 0.0
    difference.eliminate_zeros()
    return difference
