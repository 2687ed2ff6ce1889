# SPDX-License-Identifier: GPL-3.0-or-later
"""Loose parts, which follow what they touch: eyes, teeth, buckles and swords."""

import itertools

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from .parts import Parts, by_label
from .types import Body

# Voxels that share a face or an edge, and the voxel itself.
_BESIDE = [step for step in itertools.product((-1, 0, 1), repeat=3) if np.abs(step).sum() <= 2]

# Rows that are compared with each other.
_MOST_ROWS = 200

# Rows that differ from the others as much, to this sum of weights, are alike.
_SAME = 1e-3


def attached(body: Body, parts: Parts, bones: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` and ``weights`` (W, M) with one row for all places of a loose part: of a place that it touches.

    It is a place of the part that it touches most, and of those the one that is most like the others.
    """
    if not parts.loose.any():
        return bones, weights
    bones, weights = bones.copy(), weights.copy()
    near, skin = _neighborhoods(parts)
    places = by_label(parts.of_place, len(parts.bones))
    for part, other in _order(body, parts, near, skin):
        touched = np.intersect1d(_column(near, part), _column(skin, other), assume_unique=True)
        points = parts.grid.centers(parts.voxels[touched]) if len(touched) else body.points[places[part]]
        rows = places[other][np.unique(cKDTree(body.points[places[other]]).query(points)[1])]
        found, values = _middle_row(bones[rows], weights[rows])
        bones[places[part]], weights[places[part]] = found, values
    return bones, weights


def _middle_row(bones: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row (M,), (M,) that differs least from all rows (n, M); if several do, such as left and right, their mean."""
    some = np.linspace(0, len(bones) - 1, min(len(bones), _MOST_ROWS)).astype(int)
    used, column = np.unique(bones[some], return_inverse=True)
    dense = np.zeros((len(some), len(used)))
    np.add.at(dense, (np.arange(len(some))[:, None], column.reshape(len(some), -1)), weights[some])
    off = np.abs(dense[:, None] - dense).sum(axis=(1, 2))
    mean = dense[off <= off.min() + _SAME * len(some)].mean(axis=0)
    order = np.argsort(-mean, kind="stable")[: bones.shape[1]]
    order = order[mean[order] > 0]
    missing = bones.shape[1] - len(order)
    values = mean[order] / mean[order].sum()
    return np.append(used[order], np.repeat(used[order[:1]], missing)), np.append(values, np.zeros(missing))


def _column(matrix: sparse.csc_matrix, column: int) -> np.ndarray:
    """The rows that are not zero in a column, in order."""
    return np.sort(matrix.indices[matrix.indptr[column] : matrix.indptr[column + 1]])


def _neighborhoods(parts: Parts) -> tuple[sparse.csc_matrix, sparse.csc_matrix]:
    """(V, C) bool: which parts are at each voxel of the skin or beside it, and which are at it."""
    voxel, part = parts.skin
    count = len(parts.voxels)
    skin = sparse.csc_matrix((np.ones(len(voxel), bool), (voxel, part)), shape=(count, len(parts.bones)))
    flat = np.ravel_multi_index(parts.voxels.T, parts.grid.shape)
    first, second = [], []
    for step in _BESIDE:
        # There is a voxel of air around the body, so that this stays within the grid.
        there = np.ravel_multi_index((parts.voxels + step).T, parts.grid.shape)
        at = np.minimum(np.searchsorted(flat, there), count - 1)
        same = np.flatnonzero(flat[at] == there)
        first.append(same)
        second.append(at[same])
    ends = np.concatenate(first), np.concatenate(second)
    links = sparse.csr_matrix((np.ones(len(ends[0]), bool), ends), shape=(count, count))
    return (links @ skin).tocsc(), skin


def _order(body: Body, parts: Parts, near: sparse.csc_matrix, skin: sparse.csc_matrix) -> list[tuple[int, int]]:
    """Loose parts and what each of them hangs on, in an order in which none comes before what it hangs on.

    The largest touching surfaces come first; a part that touches nothing hangs on the nearest one.
    """
    areas = (near.astype(np.int32).T @ skin.astype(np.int32)).tocsr()
    free, found = parts.loose.copy(), []
    best, best_other = np.zeros(len(free), dtype=int), np.full(len(free), -1)

    def reach(part: int) -> None:
        row = slice(areas.indptr[part], areas.indptr[part + 1])
        others, values = areas.indices[row], areas.data[row]
        larger = values > best[others]
        best[others[larger]], best_other[others[larger]] = values[larger], part

    for part in np.flatnonzero(~free):
        reach(part)
    while free.any():
        part = int(np.where(free, best, -1).argmax())
        other = int(best_other[part])
        if not best[part]:
            waiting, fixed = (np.flatnonzero(free[parts.of_place] == state) for state in (True, False))
            gaps, nearest = cKDTree(body.points[fixed]).query(body.points[waiting])
            first = int(gaps.argmin())
            part, other = int(parts.of_place[waiting[first]]), int(parts.of_place[fixed[nearest[first]]])
        free[part] = False
        found.append((part, other))
        reach(part)
    return found
