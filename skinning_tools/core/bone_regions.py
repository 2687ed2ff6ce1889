# SPDX-License-Identifier: GPL-3.0-or-later
"""The vertices of each bone of a decomposition: which bones are near each other, and where they meet."""

import numpy as np
from scipy.spatial import cKDTree

from .grouping import members
from .joint_hierarchy import moments
from .strongest import strongest_bones

# Sum of the products of weights, as a share of the lesser bone's weight or of one vertex, up to which two bones have no
# vertex in common: stray weights are not where bones meet.
_SHARED = 1e-3
# Vertices of a bone by which the gap to another one is found, and the share of them that is nearest to it.
_SAMPLES, _NEAREST = 48, 0.2
# With very many bones, only this many near bones are candidates for the parent of each.
_NEAR_BONES = 64


class BoneRegions:
    """The vertices of each bone: those that it moves most, or all that it moves where it is never the strongest."""

    def __init__(self, points: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int):
        self.bones, self.weights = bones, weights
        self.vertices = members(strongest_bones(bones, weights), bone_count)
        for bone in range(bone_count):
            if not len(self.vertices[bone]):
                self.vertices[bone] = np.flatnonzero(np.where(bones == bone, weights, 0.0).max(axis=1) > 0)
        self.points = points
        self.mass = np.bincount(bones.ravel(), weights.ravel(), bone_count)
        self.moments = moments(points, bones, weights, bone_count)
        self.means = self.moments[:, 3, :3]
        self.count = bone_count
        self._trees: dict[int, cKDTree] = {}

    def extents(self, seen: np.ndarray) -> np.ndarray:
        """(P,) how far the vertices that each bone moves most are from its middle; seen (3,): the share of each axis
        that counts."""
        bones = strongest_bones(self.bones, self.weights)
        extents = np.zeros(self.count)
        np.maximum.at(extents, bones, np.linalg.norm((self.points - self.means[bones]) * seen, axis=1))
        return extents

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """(C,), (C,): pairs of bones that may be joined, the first the lower."""
        first, second = np.triu_indices(self.count, 1)
        if self.count > _NEAR_BONES + 1:
            _, near = cKDTree(self.means).query(self.means, _NEAR_BONES + 1)
            allowed = np.zeros((self.count, self.count), dtype=bool)
            allowed[np.arange(self.count)[:, None], near] = True
            kept = (allowed | allowed.T)[first, second]
            first, second = first[kept], second[kept]
        return first, second

    def meeting(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(C, 3) where the bones of a pair meet: the middle of their shared vertices, or of the gap; (C,) bool:
        shared."""
        amounts = np.zeros(self.count * self.count)
        places = np.zeros((self.count * self.count, 3))
        for i, j in np.ndindex(2 * self.bones.shape[1:]):
            low, high = self.bones[:, i].astype(np.int64), self.bones[:, j]
            both = self.weights[:, i] * self.weights[:, j] * (low < high)
            keys = low * self.count + high
            amounts += np.bincount(keys, both, len(amounts))
            for axis in range(3):
                places[:, axis] += np.bincount(keys, both * self.points[:, axis], len(amounts))
        keys = first * self.count + second
        amount = amounts[keys]
        shared = amount > _SHARED * np.maximum(1.0, np.minimum(self.mass[first], self.mass[second]))
        result = places[keys] / np.where(amount > 0, amount, 1.0)[:, None]
        for pair in np.flatnonzero(~shared):
            result[pair] = self.gap(first[pair], second[pair])
        return result, shared

    def gap(self, one: int, other: int) -> np.ndarray:
        """(3,) where two bones without vertices in common meet: the middle of those of either that are nearest to the
        other. A smaller end, as a wing's root, says more than a larger one, as the back that it meets."""
        ends = []
        for bone, beside in ((one, other), (other, one)):
            mine = self.samples(bone)
            near = np.argsort(self.tree(beside).query(mine)[0], kind="stable")[: max(1, int(_NEAREST * len(mine)))]
            ends.append(mine[near])
        extents = np.array([np.square(np.ptp(end, axis=0)).sum() for end in ends])
        shares = 1.0 / np.maximum(extents, 1e-12)
        return np.average([end.mean(axis=0) for end in ends], axis=0, weights=shares)

    def tree(self, bone: int) -> cKDTree:
        """Of the vertices of a bone; of its middle where it has none."""
        if bone not in self._trees:
            mine = self.vertices[bone]
            self._trees[bone] = cKDTree(self.points[mine] if len(mine) else self.means[bone : bone + 1])
        return self._trees[bone]

    def samples(self, bone: int) -> np.ndarray:
        """(≤ _SAMPLES, 3) evenly from the list of a bone's vertices; its middle where it has none."""
        mine = self.vertices[bone]
        if len(mine) == 0:
            return self.means[bone : bone + 1]
        return self.points[mine[np.linspace(0, len(mine) - 1, min(len(mine), _SAMPLES)).astype(int)]]

    def distance(self, bones: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(C,) from each of ``places`` (C, 3) to the nearest vertex of the bone beside it in ``bones`` (C,)."""
        result = np.empty(len(bones))
        for bone, asked in enumerate(members(bones, self.count)):
            if len(asked):
                result[asked] = self.tree(bone).query(places[asked])[0]
        return result
