# SPDX-License-Identifier: GPL-3.0-or-later
"""The sums over the surface that give centers of rotation (Le & Hodgins 2016, equation 1), pair of bones by pair."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .bone_pairs import BonePairs
from .geometry import triangle_areas
from .grouping import ranges
from .progress import Progress, checkpoint
from .similarity_sums import INTERPOLATION_ERROR, Shares, similarity_sums
from .virtual_subdivision import Pieces, subdivide, weight_differences


@dataclass(frozen=True)
class Targets:
    """The different rows of weights with two bones or more. weights (U, P); own (N,): each vertex's row or −1."""

    weights: sparse.csr_matrix
    own: np.ndarray
    pairs: BonePairs

    @classmethod
    def of(cls, matrix: sparse.csr_matrix) -> "Targets":
        lengths = np.diff(matrix.indptr)
        blended = np.flatnonzero(lengths > 1)
        slots = np.arange(lengths.max())
        entries = np.minimum(matrix.indptr[blended, None] + slots, len(matrix.data) - 1)
        used = slots < lengths[blended, None]
        # Bone and weight of each slot as bytes: equal rows are equal to the last bit.
        padded = np.stack(
            [np.where(used, matrix.indices[entries], -1), np.where(used, matrix.data[entries], 0)], axis=-1
        )
        rows = np.ascontiguousarray(padded.reshape(len(blended), -1))
        _, first, inverse = np.unique(
            rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel(),
            return_index=True,
            return_inverse=True,
        )
        own = np.full(matrix.shape[0], -1)
        own[blended] = inverse.ravel()
        return cls._with_pairs(matrix[blended[first]], own)

    @classmethod
    def _with_pairs(cls, weights: sparse.csr_matrix, own: np.ndarray) -> "Targets":
        return cls(weights, own, BonePairs.of(weights.indptr, weights.indices, weights.shape[1]))

    def only(self, chosen: np.ndarray) -> "Targets":
        """The targets where ``chosen`` (U,) is True."""
        places = np.append(np.where(chosen, np.cumsum(chosen) - 1, -1), -1)
        # A vertex without a row has own −1: the last place.
        return self._with_pairs(self.weights[chosen], places[self.own])

    def shares(self, part: slice) -> tuple[np.ndarray, np.ndarray, Shares]:
        """Rows, products of the two weights, and the two weights, of a part of the pairs."""
        first, second = self.weights.data[self.pairs.first[part]], self.weights.data[self.pairs.second[part]]
        return self.pairs.rows[part], first * second, Shares.of(first, second)


@dataclass(frozen=True)
class Surface:
    """The faces that blend bones, around ``origin``, in units of the diagonal and of the whole area.

    corners (T, 3, 3), areas (T,); pattern (T, P) sparse: where any corner follows a bone; corner_weights (entries, 3):
    the weights of the three corners for each entry of the pattern.
    """

    corners: np.ndarray
    areas: np.ndarray
    pattern: sparse.csr_matrix
    corner_weights: np.ndarray
    differences: np.ndarray
    epsilon: float
    origin: np.ndarray
    scale: float

    @classmethod
    def of(cls, rest: np.ndarray, triangles: np.ndarray, matrix: sparse.csr_matrix, epsilon: float) -> "Surface | None":
        low, high = rest.min(axis=0), rest.max(axis=0)
        origin, scale = 0.5 * (low + high), float(np.linalg.norm(high - low))
        corners = (rest - origin)[triangles] / (scale or 1.0)
        areas = triangle_areas(corners)
        if not areas.any():
            return None
        incidence = sparse.csr_matrix(
            (np.ones(triangles.size), triangles.ravel(), np.arange(0, triangles.size + 1, 3)),
            shape=(len(triangles), len(rest)),
        )
        pattern = incidence @ matrix
        pattern.sort_indices()
        blended = np.flatnonzero((np.diff(pattern.indptr) > 1) & (areas > 0))
        # Faces with the same strongest bone together, so that a batch of pieces meets few pairs of bones.
        order = blended[np.argsort(_strongest(pattern)[blended], kind="stable")]
        pattern, triangles = pattern[order], triangles[order]
        return cls(
            corners[order],
            areas[order] / areas.sum(),
            pattern,
            _corner_weights(pattern, triangles, matrix),
            weight_differences(matrix, triangles),
            epsilon,
            origin,
            scale,
        )

    def to_object_space(self, points: np.ndarray) -> np.ndarray:
        return points * self.scale + self.origin

    def pieces(self, progress: Progress) -> Iterator[Pieces]:
        return subdivide(self.differences, self.epsilon, progress=progress)


def summed(
    targets: Targets, surface: Surface, sigma: float, exact: bool, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """(U, 4) the similarity-weighted sums of position and area; (U,) bounds of their interpolation errors."""
    sums, doubt = np.zeros((targets.weights.shape[0], 4)), np.zeros(targets.weights.shape[0])
    groups = targets.pairs.groups()
    done = 0.0

    def subdividing(fraction: float, stage: str) -> bool | None:
        # Pieces are made ahead of their sums: only summed pieces count as done.
        return progress(done, stage)

    for pieces in surface.pieces(subdividing):
        batch = _Batch.of(surface, pieces)
        share = float(pieces.shares.sum()) / len(surface.areas)
        shared = [(key, part) for key, part in batch.pairs.groups().items() if key in groups]
        for i, (key, part) in enumerate(shared):

            def pulse(fraction: float = min(done + share * i / len(shared), 1.0)) -> None:
                checkpoint(progress, fraction, "Summing over the surface")

            _add_pair(targets, groups[key], batch, part, sigma, exact, sums, doubt, pulse)
        done = min(done + share, 1.0)
    return sums, doubt


def _add_pair(
    targets: Targets,
    target_part: slice,
    batch: "_Batch",
    part: slice,
    sigma: float,
    exact: bool,
    sums: np.ndarray,
    doubt: np.ndarray,
    pulse: Callable[[], None],
) -> None:
    """Adds one pair of bones in one batch of pieces to ``sums`` and ``doubt``."""
    pulse()
    rows, factors, target_shares = targets.shares(target_part)
    source_shares, moments = batch.sources(part)
    values, direct = similarity_sums(target_shares, source_shares, moments, sigma, exact, pulse)
    sums[rows] += factors[:, None] * values
    if not direct:
        doubt[rows] += factors * (20 * INTERPOLATION_ERROR * moments[:, 3].sum())


@dataclass(frozen=True)
class _Batch:
    """Some pieces, and the data of their F faces.

    starts, counts (F,): each face's range of the pieces. positions (L, 3): middles of the pieces. pairs: of the faces;
    entries: for each entry of the pairs' own pattern, its index in the surface's pattern.
    """

    surface: Surface
    pieces: Pieces
    starts: np.ndarray
    counts: np.ndarray
    positions: np.ndarray
    pairs: BonePairs
    entries: np.ndarray

    @classmethod
    def of(cls, surface: Surface, pieces: Pieces) -> "_Batch":
        faces, starts, counts = np.unique(pieces.triangles, return_index=True, return_counts=True)
        positions = np.einsum("li,lij->lj", pieces.middles, surface.corners[pieces.triangles])
        pointers = surface.pattern.indptr
        lengths = pointers[faces + 1] - pointers[faces]
        entries = ranges(pointers[faces], lengths)
        own_pointers = np.concatenate([[0], np.cumsum(lengths)])
        pairs = BonePairs.of(own_pointers, surface.pattern.indices[entries], surface.pattern.shape[1])
        return cls(surface, pieces, starts, counts, positions, pairs, entries)

    def sources(self, part: slice) -> tuple[Shares, np.ndarray]:
        """The pieces that have both bones: the two weights, and moments (n, 4) of position and area times both."""
        faces = self.pairs.rows[part]
        counts = self.counts[faces]
        chosen = ranges(self.starts[faces], counts)
        middles = self.pieces.middles[chosen]
        first, second = (
            np.einsum(
                "li,li->l", middles, np.repeat(self.surface.corner_weights[self.entries[which[part]]], counts, axis=0)
            )
            for which in (self.pairs.first, self.pairs.second)
        )
        areas = self.pieces.shares[chosen] * self.surface.areas[self.pieces.triangles[chosen]]
        masses = areas * first * second
        moments = np.column_stack([self.positions[chosen] * masses[:, None], masses])
        return Shares.of(first, second), moments


def _strongest(matrix: sparse.csr_matrix) -> np.ndarray:
    """(n,) the column of the largest entry in each row, the last of equal ones; 0 in empty rows."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.data, rows))
    result = np.zeros(matrix.shape[0], int)
    result[rows[order]] = matrix.indices[order]
    return result


def _corner_weights(pattern: sparse.csr_matrix, triangles: np.ndarray, matrix: sparse.csr_matrix) -> np.ndarray:
    """(entries, 3) the weights that the corners of each face have for each bone of the pattern."""
    bone_count = matrix.shape[1]
    known = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * np.int64(bone_count) + matrix.indices
    vertices = np.repeat(triangles, np.diff(pattern.indptr), axis=0)
    wanted = vertices * np.int64(bone_count) + pattern.indices[:, None]
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, matrix.data[places], 0.0)
