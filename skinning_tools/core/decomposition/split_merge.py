# SPDX-License-Identifier: GPL-3.0-or-later
"""Regions that gain little are merged, and regions that need another bone are split.

A region's affine motion and its error depend on three sums only: S = Σ v vᵀ (4, 4), D = Σ v yᵀ (4, d) and Y = Σ ‖y‖².
So the error that merging two regions would cost, and what cutting one in two would save, are known exactly without
fitting anything to vertices. Spread by distance alone, bones go where there is much surface; this moves them to where
there is much deformation.
"""

import operator
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import numpy as np
import scipy.spatial

from ..dense import product, self_product
from ..grouping import members, pieces
from ..solve_memory import BLOCK_VERTICES
from ..threads import mapped
from .reduction import Rows

_NEIGHBORS = 10
_CUTS = (0.35, 0.5, 0.65)
_SMALLEST_TO_CUT = 16
# Share of all bones that may move in one round, and the least ratio of gain to cost.
_MOVED_AT_ONCE = 1 / 6
_WORTHWHILE = 1.05
_RIDGE = 1e-8


@dataclass(frozen=True)
class _Sums:
    """moments (P, 4, 4), products (P, 4, d), norms (P,) of P sets of vertices."""

    moments: np.ndarray
    products: np.ndarray
    norms: np.ndarray

    def __getitem__(self, index: np.ndarray | slice) -> "_Sums":
        return _Sums(self.moments[index], self.products[index], self.norms[index])

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(self.moments + other.moments, self.products + other.products, self.norms + other.norms)

    def __sub__(self, other: "_Sums") -> "_Sums":
        return _Sums(self.moments - other.moments, self.products - other.products, self.norms - other.norms)

    def errors(self) -> np.ndarray:
        """Squared error (P,) of each set under the affine motion that fits it best."""
        size = np.einsum("pii->p", self.moments)
        system = self.moments + (_RIDGE * size + 1e-12)[:, None, None] * np.eye(4)
        return self.norms - np.einsum("pid,pid->p", self.products, np.linalg.solve(system, self.products))


@dataclass(frozen=True)
class Cloud:
    """points (N, 4) homogeneous rest positions, source: their data (N, d); importance (N,): how often each counts, None
    for once."""

    points: np.ndarray
    source: Rows
    importance: np.ndarray | None = None

    def sums(self, vertices: np.ndarray) -> _Sums:
        """Of the ``vertices`` (n,), as one set: moments (4, 4), products (4, d), norms ()."""
        return reduce(operator.add, map(self._sums, pieces(vertices, BLOCK_VERTICES)))

    def _sums(self, vertices: np.ndarray) -> _Sums:
        points, data = self.points[vertices], self.source.rows(vertices)
        if self.importance is not None:
            root = np.sqrt(self.importance[vertices])[:, None]
            points, data = root * points, root * data
        return _Sums(product(points.T, points), product(points.T, data), np.vdot(data, data))


def move_bones(cloud: Cloud, labels: np.ndarray, bone_count: int) -> tuple[np.ndarray, int]:
    """One round of merging pairs of regions and splitting as many others, each move of them lowering the error.

    labels (N,). Returns new labels and the number of moves.
    """
    regions, sums = _of_regions(cloud, labels, bone_count)
    errors = sums.errors()
    pairs = _neighboring(sums)
    costs = (sums[pairs[:, 0]] + sums[pairs[:, 1]]).errors() - errors[pairs[:, 0]] - errors[pairs[:, 1]]
    cuts = mapped(lambda bone: _best_cut(cloud, regions[bone], sums[bone : bone + 1], errors[bone]), range(bone_count))
    gains = np.array([gain for gain, _ in cuts])
    labels = labels.copy()
    touched = np.zeros(bone_count, dtype=bool)
    most, moves = max(1, int(bone_count * _MOVED_AT_ONCE)), 0
    for pair in np.argsort(costs, kind="stable"):
        kept, freed = pairs[pair]
        if touched[kept] or touched[freed]:
            continue
        free_gains = np.where(touched, 0.0, gains)
        free_gains[[kept, freed]] = 0.0
        split = int(np.argmax(free_gains))
        if moves == most or free_gains[split] <= _WORTHWHILE * costs[pair]:
            break
        labels[regions[freed]] = kept
        labels[regions[split][cuts[split][1]]] = freed
        touched[[kept, freed, split]] = True
        moves += 1
    return labels, moves


def squared_error(cloud: Cloud, labels: np.ndarray, bone_count: int) -> float:
    """Of all regions together, each under the affine motion that fits it best; arguments as those of ``move_bones``."""
    return float(_of_regions(cloud, labels, bone_count)[1].errors().sum())


def _of_regions(cloud: Cloud, labels: np.ndarray, bone_count: int) -> tuple[list[np.ndarray], _Sums]:
    regions = members(labels, bone_count)
    return regions, _stack(mapped(cloud.sums, regions))


def _stack(parts: list[_Sums]) -> _Sums:
    columns = zip(*((part.moments, part.products, part.norms) for part in parts), strict=True)
    return _Sums(*(np.array(column) for column in columns))


def _neighboring(sums: _Sums) -> np.ndarray:
    """Pairs (Q, 2) of regions whose centers are near each other."""
    mass = np.maximum(sums.moments[:, 3, 3], 1.0)
    centers = sums.moments[:, :3, 3] / mass[:, None]
    count = min(_NEIGHBORS + 1, len(centers))
    nearest = scipy.spatial.cKDTree(centers).query(centers, k=count)[1].reshape(len(centers), count)
    pairs = np.stack([np.repeat(np.arange(len(centers)), count), nearest.ravel()], axis=1)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def _best_cut(cloud: Cloud, region: np.ndarray, sums: _Sums, error: float) -> tuple[float, np.ndarray | None]:
    """What the best plane across one of a region's own axes saves, and the side (n,) bool it gives to a new bone.

    sums: of the region, as one set of several.
    """
    points = cloud.points[region, :3]
    if len(points) < _SMALLEST_TO_CUT:
        return 0.0, None
    offsets = points - points.mean(axis=0)
    along = offsets @ np.linalg.eigh(self_product(offsets))[1]
    above, parts = [], []
    for heights, levels in zip(along.T, np.quantile(along, _CUTS, axis=0).T, strict=True):
        # The slices between the planes: those above a plane add up to one side, and the other is what is left.
        slices = np.searchsorted(levels, heights)
        beyond = [cloud.sums(region[slices == number]) for number in range(len(levels), 0, -1)]
        parts += list(accumulate(beyond))[::-1]
        above += [slices >= number for number in range(1, len(levels) + 1)]
    halves = _stack(parts)
    gains = error - halves.errors() - (sums - halves).errors()
    counts = np.array([side.sum() for side in above])
    gains[(counts == 0) | (counts == len(points))] = 0.0
    best = int(np.argmax(gains))
    return (float(gains[best]), above[best]) if gains[best] > 0 else (0.0, None)
