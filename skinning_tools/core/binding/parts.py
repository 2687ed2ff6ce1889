# SPDX-License-Identifier: GPL-3.0-or-later
"""Loose parts of a body: one that several bones run in bends, one that encloses a bone follows it whole, and any other
follows what it touches, as eyes, teeth, buckles and swords do."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.ndimage import distance_transform_edt
from scipy.spatial import cKDTree

from ..geometry import diagonal
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

# Of the bones that run in a part, those up to this share farther than the nearest one take part.
_MARGIN = 0.1

# Clothes overlap up to this share of the diagonal.
_OVERLAP = 0.02


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
    stations = _Stations(skeleton, grid)
    places = by_label(of_place, count)
    part_of_triangle = of_place[body.place_triangles[:, 0]] if len(body.place_triangles) else np.zeros(0, int)
    triangles = by_label(part_of_triangle, count)
    for part in range(count):
        points = body.points[places[part]]
        surface = grid.surface(body.points, body.place_triangles[triangles[part]])
        skins.append(np.unique(np.concatenate([grid.voxels(points), surface]), axis=0))
        run = stations.run_in(_Box(skins[-1], grid.size), diagonal(points))
        held[part] = run.held
        loose[part] = not run.held.any()
        pieces[part, held[part]] = run.pieces[held[part]]
        bones[part] = run.only_bone()
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
    places, voxel_lists = by_label(parts.of_place, len(parts.bones)), by_label(parts.skin[1], len(parts.bones))
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


class _Stations:
    """Points along the bones, a voxel apart, each of which stands for the piece of its bone around it."""

    def __init__(self, skeleton: Skeleton, grid: Grid):
        self.skeleton, self.size = skeleton, grid.size
        counts = np.clip(np.ceil(skeleton.lengths / grid.size), 1, sum(grid.shape)).astype(int)
        self._owners = np.repeat(np.arange(len(skeleton)), counts)
        rank = np.arange(len(self._owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        # From which share of the bone's length to which.
        self._spans = np.column_stack([rank, rank + 1]) / counts[self._owners, None]
        points = skeleton.heads[self._owners] + self._spans.mean(axis=1)[:, None] * skeleton.axes[self._owners]
        self._voxels, self._head_voxels = grid.voxels(points), grid.voxels(skeleton.heads)
        # A bone without a length is as long as its voxel.
        self._spacing = np.maximum(skeleton.lengths / counts, 1e-3 * grid.size)
        self.ancestors = lineage(skeleton)

    def run_in(self, box: "_Box", size: float) -> "_Run":
        """Where the bones run in a part of the given size."""
        count = len(self.skeleton)
        inside = box.holds(self._voxels)
        owners = self._owners[inside]
        lengths = np.bincount(owners, self._spacing[owners], count)
        lengths[lengths < _ENCLOSES * np.minimum(size, self.skeleton.lengths)] = 0
        widths, pieces = np.zeros(count), np.tile([1.0, 0.0], (count, 1))
        if lengths.any():
            np.maximum.at(widths, owners, box.widths(self._voxels[inside]))
            np.minimum.at(pieces[:, 0], owners, self._spans[inside, 0])
            np.maximum.at(pieces[:, 1], owners, self._spans[inside, 1])
            # Beyond an opening, as of a sleeve, it goes on for a radius.
            more = widths / np.maximum(self.skeleton.lengths, self.size)
            pieces = np.clip(pieces + np.outer(more, [-1, 1]), 0, 1)
        return _Run(self, lengths, widths, pieces, box.holds(self._head_voxels))


@dataclass(frozen=True, eq=False)
class _Run:
    """The bones in one part: lengths (P,) inside, the part's radius (P,) about them, pieces (P, 2) from which share of
    their length to which, heads (P,) bool: the head is inside."""

    stations: _Stations
    lengths: np.ndarray
    widths: np.ndarray
    pieces: np.ndarray
    heads: np.ndarray

    @property
    def held(self) -> np.ndarray:
        """(P,) bool: the bones that run in the part."""
        return self.lengths > 0

    def only_bone(self) -> int:
        """The bone that the part follows whole; −1 where it bends, or holds none."""
        held, lengths, skeleton = self.held, self.lengths, self.stations.skeleton
        through = lengths[held] > np.minimum(_FAR * self.widths, _MOSTLY * skeleton.lengths)[held]
        if not held.any() or through.sum() > 1:
            return -1
        # A part turns about the joint that is in it.
        own = self.heads & held
        runs = np.where(own if own.any() else held, lengths, 0)
        longest = (runs > 0) & (runs >= runs.max() - self.stations.size)
        first = common_ancestors(longest[None], skeleton)[0]
        # Left and right alike, and no bone between them: it bends.
        alike = longest.sum() > 1 and not self.stations.ancestors[longest][:, first].all()
        return -1 if alike else int(first)


def by_label(labels: np.ndarray, count: int) -> list[np.ndarray]:
    """For each of ``count`` labels, the indices with that label."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=count))[:-1])
