# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs that are each other's mirror image on a body that is posed at rest, told by what no pose changes.

That is how long limbs are, and where they leave a bone of the trunk, whose vertices it carries as one piece: two limbs
mirror each other if this piece is symmetric in the plane between their joints.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from .bone_order import parents_first
from .grouping import members
from .joint_hierarchy import JointHierarchy
from .strongest import strongest_bones

# The least length of a limb, as a share of its image's, and how far a piece of the trunk may be from its own mirror
# image on average, as a share of its spread: measured on characters with named bones.
_ALIKE, _ASYMMETRIC = 0.93, 0.18
# Of the distance between the joints of two limbs: what is no farther from the plane between them is in the middle.
_MIDDLE = 0.15
# Of the longest way down the skeleton: fingers are shorter than limbs.
_LONG = 0.2
# Fewer vertices show no symmetry.
_FEWEST = 6


def with_limb_pairs(
    hierarchy: JointHierarchy, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> JointHierarchy:
    """``hierarchy`` with the ``partners`` of a ``posed`` body, if that is not symmetric at rest but has such limbs.

    rest (N, 3); bones, weights (N, K).
    """
    if hierarchy.partners is not None:
        return hierarchy
    search = _Search(hierarchy, rest, strongest_bones(bones, weights))
    for root in np.flatnonzero(hierarchy.parents < 0):
        search.follow_trunk(int(root))
    return replace(hierarchy, partners=search.partners, posed=True) if (search.partners >= 0).any() else hierarchy


@dataclass(frozen=True)
class _Plane:
    """Between two joints: a point of it, the unit normal (3,), and the distance of the joints."""

    middle: np.ndarray
    normal: np.ndarray
    width: float

    @classmethod
    def between(cls, one: np.ndarray, other: np.ndarray) -> "_Plane":
        width = max(float(np.linalg.norm(one - other)), np.finfo(float).tiny)
        return cls(0.5 * (one + other), (one - other) / width, width)

    def mirrored(self, points: np.ndarray) -> np.ndarray:
        return points - 2.0 * ((points - self.middle) @ self.normal)[:, None] * self.normal

    def contains(self, point: np.ndarray) -> bool:
        return abs((point - self.middle) @ self.normal) <= _MIDDLE * self.width


class _Search:
    """Finds ``partners`` (P,), from the root on: −1 for a bone without one."""

    def __init__(self, hierarchy: JointHierarchy, rest: np.ndarray, strongest: np.ndarray):
        """strongest (N,): the bone that moves each vertex of ``rest`` (N, 3) most."""
        self.parents, self.joints = hierarchy.parents, hierarchy.joints
        self.partners = np.full(len(self.parents), -1)
        self._skins = [rest[each] for each in members(strongest, len(self.parents))]
        reaches = [self._distances(bone, skin).max(initial=0.0) for bone, skin in enumerate(self._skins)]
        self._lengths = np.array(reaches)
        for bone in reversed(parents_first(self.parents)):
            below = self._below(bone)
            ways = self._distances(bone, self.joints[below]) + self._lengths[below]
            self._lengths[bone] = ways.max(initial=self._lengths[bone])

    def follow_trunk(self, root: int) -> None:
        """Pair the limbs that leave the trunk from ``root`` on."""
        # With each bone, whether it is certainly in the middle. Where it is not, it may be the hand of an arm without a
        # partner, so that only long limbs count.
        waiting = [(root, False)]
        while waiting:
            bone, central = waiting.pop()
            plane = None
            for one, other in self._images(bone):
                if central or self._lengths[one] >= _LONG * self._lengths.max():
                    self.partners[[one, other]] = other, one
                    plane = plane or _Plane.between(*self.joints[[one, other]])
            ancestor = bone if plane else -1
            while ancestor >= 0:
                self.partners[ancestor] = ancestor
                ancestor = self.parents[ancestor]
            children = self._below(bone)
            for child in children[self.partners[children] < 0].tolist():
                inner = plane.contains(self.joints[child]) if plane else central and len(children) == 1
                if inner:
                    self.partners[child] = child
                waiting.append((child, inner))

    def _images(self, bone: int) -> list[tuple[int, int]]:
        """Pairs of limbs that leave ``bone`` on opposite sides, each with no better partner, the longest first."""
        children, skin = self._below(bone), self._skins[bone]
        if len(children) < 2 or len(skin) < _FEWEST or not np.ptp(skin, axis=0).any():
            return []
        tree, spread = cKDTree(skin), np.sqrt(skin.var(axis=0).sum())
        off = np.full((len(children), len(children)), np.inf)
        for i, j in zip(*np.triu_indices(len(children), 1), strict=True):
            one, other = children[[i, j]]
            if self._alike(one, other):
                plane = _Plane.between(*self.joints[[one, other]])
                off[i, j] = off[j, i] = tree.query(plane.mirrored(skin))[0].mean() / spread
        best = off.argmin(axis=1)
        found = [(i, j) for i, j in enumerate(best) if i < j and best[j] == i and off[i, j] <= _ASYMMETRIC]
        pairs = [(int(children[i]), int(children[j])) for i, j in found]
        return sorted(pairs, key=lambda pair: -self._lengths[pair[0]])

    def _alike(self, one: int, other: int) -> bool:
        lengths = self._lengths[[one, other]]
        return bool(lengths.min() >= _ALIKE * lengths.max())

    def _distances(self, bone: int, points: np.ndarray) -> np.ndarray:
        return np.linalg.norm(points - self.joints[bone], axis=1)

    def _below(self, bone: int) -> np.ndarray:
        return np.flatnonzero(self.parents == bone)
