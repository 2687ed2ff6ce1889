# SPDX-License-Identifier: GPL-3.0-or-later
"""Distances from the places of a body to bones."""

from collections.abc import Callable, Iterator

import numpy as np

from ..geometry import diagonal
from ..progress import Progress, checkpoint, ignore
from ..segments import offsets_from_segments, segment_distances
from .body import Surface, facing_outward, with_others
from .types import Body, Skeleton

# Numbers in one block of rows times bones: 32 MB, of which a few are alive at a time.
_BLOCK = 1 << 22

# Bones nearer than this share of the diagonal count as on the surface.
_LEAST_DISTANCE = 1e-4

# The least cosine, for bones beside or in front of the surface: such a bone still counts, as if √10 times as far.
_LEAST_COSINE = 0.1

# Distances that differ by less, as a share of the smaller, are the same.
TIE = 1e-6


# Which places: a block of them, or their indices.
Rows = slice | np.ndarray


def blocks(count: int, width: int) -> Iterator[slice]:
    """Slices over ``count`` rows of ``width`` numbers that bound the memory of a dense block."""
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _faced(distances: np.ndarray, cosine: np.ndarray) -> np.ndarray:
    """``distances`` over the root of ``cosine``; both are overwritten."""
    np.clip(cosine, _LEAST_COSINE, 1, out=cosine)
    distances /= np.sqrt(cosine, out=cosine)
    return distances


class BoneDistances:
    """Distances from the places of a body to the segments between heads and tails.

    points (W, 3): the places about ``middle`` (3,). scale: of lengths in this problem; never zero.
    surface: which way is out. farther (P,): ``Segments.farther``, ones by default.
    """

    def __init__(
        self, body: Body, skeleton: Skeleton, progress: Progress = ignore, *, farther: np.ndarray | None = None
    ):
        joints = np.concatenate([skeleton.heads, skeleton.tails])
        self.scale = body.diagonal or diagonal(joints) or 1.0
        # About the middle, to keep digits: distances come from scalar products.
        self.middle = 0.5 * (body.rest.min(axis=0) + body.rest.max(axis=0))
        self.points = body.points - self.middle
        self.count = len(skeleton)
        self._farther = np.ones(len(skeleton)) if farther is None else farther
        self._heads, self._axes = skeleton.heads - self.middle, skeleton.axes
        self._squares = np.einsum("ij,ij->i", self._axes, self._axes)
        self._along = np.where(self._squares > 0, 1 / np.where(self._squares > 0, self._squares, 1), 0)
        self._offsets = np.einsum("ij,ij->i", self._heads, self._axes)
        inner = body.points - self._from_nearest(progress)
        self.surface = Surface(self.points, with_others(body, facing_outward(body, inner)), body.shares)

    def blocks(self) -> Iterator[slice]:
        return blocks(len(self.points), self.count)

    def plain(self, rows: Rows) -> np.ndarray:
        """(n, P) distances of a block of places, none below a ten-thousandth of the scale."""
        return self._distances(self.points[rows])[0]

    def facing(self, rows: Rows) -> np.ndarray:
        """(n, P) distances d / √cos θ, with the angle θ at the surface between the way in and the way to the bone.

        A surface receives cos θ / d² of a source's light: bones that it faces away from count as farther. So the side
        of a chest beside an arm does not belong to the arm. d where no normal is known.
        d: the ``plain`` distance, times ``farther``.
        """
        points, normals = self.points[rows], self.surface.normals[rows]
        distances, share = self._distances(points)
        cosine = np.einsum("ij,ij->i", normals, points)[:, None] - normals @ self._heads.T
        cosine -= share * (normals @ self._axes.T)
        cosine /= distances
        cosine[~normals.any(axis=1)] = 1
        distances *= self._farther
        return _faced(distances, cosine)

    def facing_pieces(self, places: np.ndarray, bones: np.ndarray, pieces: np.ndarray) -> np.ndarray:
        """(n,) as ``facing``, from ``places`` (n,) to one piece of a bone each: ``bones`` (n,), from share pieces[:, 0]
        to share pieces[:, 1] of their lengths."""
        heads, axes, normals = self._heads[bones], self._axes[bones], self.surface.normals[places]
        starts, lengths = pieces[:, :1], pieces[:, 1:] - pieces[:, :1]
        offsets = offsets_from_segments(self.points[places], heads + starts * axes, lengths * axes)
        distances = np.maximum(np.linalg.norm(offsets, axis=1), _LEAST_DISTANCE * self.scale)
        cosine = np.einsum("ij,ij->i", normals, offsets) / distances
        cosine[~normals.any(axis=1)] = 1
        return _faced(distances * self._farther[bones], cosine)

    def owned(self, measure: Callable[[slice], np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each bone, the places to which no other bone is nearer, and its distances from them.

        measure: ``plain`` or ``facing``. A place that is equally near to several bones belongs to all of them.
        """
        bone_parts, place_parts, value_parts = [], [], []
        for rows in self.blocks():
            scores = measure(rows)
            row, bone = np.nonzero(scores <= scores.min(axis=1, keepdims=True) * (1 + TIE))
            bone_parts.append(bone)
            place_parts.append(row + rows.start)
            value_parts.append(scores[row, bone])
        bones, places, values = (np.concatenate(parts) for parts in (bone_parts, place_parts, value_parts))
        order = np.argsort(bones, kind="stable")
        starts = np.searchsorted(bones[order], np.arange(1, self.count))
        return zip(np.split(places[order], starts), np.split(values[order], starts), strict=True)

    def pairs(self, bones: np.ndarray) -> np.ndarray:
        """(W, M) distances from each place to its own ``bones`` (W, M)."""
        result = np.empty(bones.shape)
        for column, chosen in enumerate(bones.T):
            result[:, column] = segment_distances(self.points, self._heads[chosen], self._axes[chosen])
        return result

    def _distances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = points @ self._axes.T
        along -= self._offsets
        share = np.clip(along * self._along, 0, 1)
        squares = points @ self._heads.T
        squares *= -2
        squares += np.einsum("ij,ij->i", points, points)[:, None] + np.einsum("ij,ij->i", self._heads, self._heads)
        along *= 2
        along -= share * self._squares
        along *= share
        squares -= along
        np.maximum(squares, (_LEAST_DISTANCE * self.scale) ** 2, out=squares)
        return np.sqrt(squares, out=squares), share

    def _from_nearest(self, progress: Progress) -> np.ndarray:
        """(W, 3) from the nearest point of any bone to each place; the middle of equally near points."""
        result = np.empty_like(self.points)
        for rows in self.blocks():
            checkpoint(progress, rows.start / len(result), "Measuring distances")
            distances, share = self._distances(self.points[rows])
            near = (distances <= distances.min(axis=1, keepdims=True) * (1 + TIE)).astype(float)
            near /= near.sum(axis=1, keepdims=True)
            result[rows] = self.points[rows] - near @ self._heads - (near * share) @ self._axes
        return result
