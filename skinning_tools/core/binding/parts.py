# SPDX-License-Identifier: GPL-3.0-or-later
"""Loose parts of a body: one that several bones run in bends, one that encloses a bone follows it whole, and any other
follows what it touches, as eyes, teeth, buckles and swords do."""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.ndimage import distance_transform_edt
from scipy.spatial import cKDTree

from .assignment import Assignment, Request, nearly_best
from .distances import TIE, BoneDistances, Rows, blocks
from .skeleton import common_ancestors, lineage
from .solid import Grid, Solid, filled
from .types import Body, Skeleton

# A bone runs through a part if more than this share of the bone is inside, or if the length inside is at least so many
# times the radius of the part; otherwise it only ends there. From the middle of a joint's ball to its surface the
# length is one radius.
_MOSTLY = 0.5
_FAR = 2.0

# A part that holds less of any bone than this share of its own size touches it by chance.
_ENCLOSES = 0.1

# Voxels that share a face or an edge, and the voxel itself.
_BESIDE = [step for step in itertools.product((-1, 0, 1), repeat=3) if np.abs(step).sum() <= 2]

# Of the bones that run in a part, those up to this share farther than the nearest one take part.
_MARGIN = 0.1

# Clothes overlap up to this share of the diagonal.
_OVERLAP = 0.02

# Rows that are compared with each other.
_MOST_ROWS = 200

# Rows that differ from the others as much, to this sum of weights, are alike.
_SAME = 1e-3


@dataclass(frozen=True, eq=False)
class Parts:
    """The C connected parts of a body. of_place (W,): each place's part.

    bones (C,): the one that a part follows whole, −1 for others; loose (C,) bool: follows what it touches; the
    remaining parts bend. held (C, P) bool: the bones that run in each part; pieces (C, P, 2): from which share of a
    bone's length to which.
    skin: (S,) indices of voxels and (S,) the parts that pass through them. grid: of the voxels; voxels (V, 3) int.
    """

    of_place: np.ndarray
    bones: np.ndarray
    loose: np.ndarray
    held: np.ndarray
    pieces: np.ndarray
    grid: Grid
    voxels: np.ndarray
    skin: tuple[np.ndarray, np.ndarray]

    def scores(self, distances: BoneDistances, rows: Rows) -> np.ndarray:
        """(n, P) ``distances.facing`` of a block of places to the pieces of bones in their part; infinite to bones that
        do not run in a part where others do.

        So an arm that hangs beside a chest does not belong to the chest because its shoulder is inside.
        """
        part = self.of_place[rows]
        held = self.held[part]
        held |= ~held.any(axis=1, keepdims=True)
        result = np.where(held, distances.facing(rows), np.inf)
        whole = (self.pieces == (0, 1)).all(axis=2)
        place, bone = np.nonzero(held & ~whole[part])
        pieces = self.pieces[part[place], bone]
        result[place, bone] = distances.facing_pieces(np.arange(len(self.of_place))[rows][place], bone, pieces)
        return result


def parts_of(body: Body, skeleton: Skeleton, solid: Solid) -> Parts:
    """How each part moves. If no part holds a bone, all of them bend."""
    of_place = body.place_components
    count = int(of_place.max()) + 1
    bones, held = np.full(count, -1), np.zeros((count, len(skeleton)), dtype=bool)
    pieces = np.tile([0.0, 1.0], (*held.shape, 1))
    grid = solid.grid
    if count == 1:
        nothing, no_voxels = np.zeros(0, dtype=int), np.zeros((0, 3), dtype=int)
        return Parts(of_place, bones, np.zeros(1, bool), ~held, pieces, grid, no_voxels, (nothing, nothing))
    loose = np.zeros(count, dtype=bool)
    skins = []
    stations, owners, spans, spacing = _stations(skeleton, grid)
    ancestors = lineage(skeleton)
    station_voxels, head_voxels = grid.voxels(stations), grid.voxels(skeleton.heads)
    places = _split(of_place, count)
    part_of_triangle = of_place[body.place_triangles[:, 0]] if len(body.place_triangles) else np.zeros(0, int)
    triangles = _split(part_of_triangle, count)
    for part in range(count):
        surface = grid.surface(body.points, body.place_triangles[triangles[part]])
        skins.append(np.unique(np.concatenate([grid.voxels(body.points[places[part]]), surface]), axis=0))
        box = _Box(skins[-1], grid.size)
        inside = box.holds(station_voxels)
        lengths = np.bincount(owners[inside], spacing[owners[inside]], len(skeleton))
        size = np.linalg.norm(np.ptp(body.points[places[part]], axis=0))
        lengths[lengths < _ENCLOSES * np.minimum(size, skeleton.lengths)] = 0
        held[part] = lengths > 0
        if not held[part].any():
            loose[part] = True
            continue
        heads = box.holds(head_voxels)
        widths = np.zeros(len(skeleton))
        np.maximum.at(widths, owners[inside], box.widths(station_voxels[inside]))
        ends = np.tile([1.0, 0.0], (len(skeleton), 1))
        np.minimum.at(ends[:, 0], owners[inside], spans[inside, 0])
        np.maximum.at(ends[:, 1], owners[inside], spans[inside, 1])
        # Beyond an opening, as of a sleeve, it goes on for a radius.
        more = widths / np.maximum(skeleton.lengths, grid.size)
        ends = np.clip(ends + np.outer(more, [-1, 1]), 0, 1)
        pieces[part, held[part]] = ends[held[part]]
        if (lengths[held[part]] > np.minimum(_FAR * widths, _MOSTLY * skeleton.lengths)[held[part]]).sum() < 2:
            # A part turns about the joint that is in it.
            own = heads & held[part]
            runs = np.where(own if own.any() else held[part], lengths, 0)
            longest = (runs > 0) & (runs >= runs.max() - grid.size)
            first = common_ancestors(longest[None], skeleton)[0]
            # Left and right alike, and no bone between them: it bends.
            alike = longest.sum() > 1 and not ancestors[longest][:, first].all()
            bones[part] = -1 if alike else first
    if loose.all():
        loose[:] = False
        held[:], pieces[:] = True, (0, 1)
    flat, voxel = np.unique(np.ravel_multi_index(np.concatenate(skins).T, grid.shape), return_inverse=True)
    voxels = np.column_stack(np.unravel_index(flat, grid.shape))
    skin = voxel.reshape(-1), np.repeat(np.arange(count), [len(each) for each in skins])
    return Parts(of_place, bones, loose, held, pieces, grid, voxels, skin)


def with_parts(assignment: Assignment, request: Request) -> Assignment:
    """``assignment`` where places of a part that follows a bone whole belong to it, and others to the bones that run in
    their part: to the nearest of these, where the assignment has none of them."""
    parts, distances = request.parts, request.distances
    shares = assignment.shares.multiply(parts.held[parts.of_place]).tocsr()
    total = np.asarray(shares.sum(axis=1)).ravel()
    whole, bends = parts.bones[parts.of_place], ~parts.loose[parts.of_place]
    rows = np.flatnonzero(whole >= 0)
    kept = sparse.diags(np.where(whole >= 0, 0, np.divide(1, total, out=np.zeros_like(total), where=total > 0)))
    free = sparse.diags((~bends).astype(float))
    of_bone = sparse.csr_matrix((np.ones(len(rows)), (rows, whole[rows])), shape=shares.shape)
    result, reached = kept @ shares + free @ assignment.shares + of_bone, assignment.distances.copy()
    lost = np.flatnonzero((total == 0) & (whole < 0) & bends)
    for some in blocks(len(lost), shares.shape[1]):
        places = lost[some]
        scores = request.limits.applied(places, parts.scores(distances, places))
        reached[places] = scores.min(axis=1)
        near = nearly_best(scores, _MARGIN)
        near /= near.sum(axis=1, keepdims=True)
        place, bone = np.nonzero(near)
        result += sparse.csr_matrix((near[place, bone], (places[place], bone)), shape=shares.shape)
    return Assignment(result.tocsr(), reached)


def contacts(body: Body, parts: Parts, owners: np.ndarray) -> np.ndarray:
    """(n, 2) places inside a part of another mesh and the nearest place of that part, so that clothes that overlap bend
    alike; only where both parts bend. owners (W,): the mesh of each place."""
    bending = np.flatnonzero((parts.bones < 0) & ~parts.loose)
    if len(bending) < 2 or (owners == owners[0]).all():
        return np.zeros((0, 2), dtype=int)
    places, voxel_lists = _split(parts.of_place, len(parts.bones)), _split(parts.skin[1], len(parts.bones))
    found = [np.zeros((0, 2), dtype=int)]
    for part in bending:
        own = places[part]
        box = _Box(parts.voxels[parts.skin[0][voxel_lists[part]]], parts.grid.size)
        others = np.concatenate([places[other] for other in bending if other != part])
        others = others[box.holds(parts.grid.voxels(body.points[others]))]
        if not len(others):
            continue
        # Two of them where they are equally near, as left and right are.
        gaps, nearest = cKDTree(body.points[own]).query(body.points[others], k=2)
        row, rank = np.nonzero(gaps <= np.minimum(gaps[:, :1] * (1 + TIE), _OVERLAP * body.diagonal))
        pairs = np.column_stack([others[row], own[nearest[row, rank]]])
        found.append(pairs[owners[pairs[:, 0]] != owners[pairs[:, 1]]])
    return np.concatenate(found)


class _Box:
    """A part alone, in the voxels around it."""

    def __init__(self, skin: np.ndarray, size: float):
        self._low = skin.min(axis=0) - 1
        self._size = size
        surface = np.zeros(skin.max(axis=0) - self._low + 2, dtype=bool)
        surface[tuple((skin - self._low).T)] = True
        self.filled = filled(surface)

    def holds(self, voxels: np.ndarray) -> np.ndarray:
        local = voxels - self._low
        result = ((local >= 0) & (local < self.filled.shape)).all(axis=1)
        result[result] = self.filled[tuple(local[result].T)]
        return result

    def widths(self, voxels: np.ndarray) -> np.ndarray:
        """(n,) distances from voxels (n, 3) of the part to the nearest voxel outside of it."""
        if not len(voxels):
            return np.zeros(0)
        return self._size * distance_transform_edt(self.filled)[tuple((voxels - self._low).T)]


def _stations(skeleton: Skeleton, grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points (S, 3) along the bones, a voxel apart, the bone of each (S,), from which share of its length to which each
    stands for it (S, 2), and (P,) how far they are apart."""
    counts = np.clip(np.ceil(skeleton.lengths / grid.size), 1, sum(grid.shape)).astype(int)
    owners = np.repeat(np.arange(len(skeleton)), counts)
    rank = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    spans = np.column_stack([rank, rank + 1]) / counts[owners, None]
    points = skeleton.heads[owners] + spans.mean(axis=1)[:, None] * (skeleton.tails - skeleton.heads)[owners]
    # A bone without a length is as long as its voxel.
    return points, owners, spans, np.maximum(skeleton.lengths / counts, 1e-3 * grid.size)


def attached(body: Body, parts: Parts, bones: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` and ``weights`` (W, M) with one row for all places of a loose part: of a place that it touches.

    It is a place of the part that it touches most, and of those the one that is most like the others.
    """
    if not parts.loose.any():
        return bones, weights
    bones, weights = bones.copy(), weights.copy()
    near, skin = _neighborhoods(parts)
    places = _split(parts.of_place, len(parts.bones))
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


def _split(labels: np.ndarray, count: int) -> list[np.ndarray]:
    """For each of ``count`` labels, the indices with that label."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=count))[:-1])


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
