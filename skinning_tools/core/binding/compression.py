# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights in steps of 8 or 16 bits, and the error that this causes (smooth skinning chapter, section on memory).

A row is stored as whole steps that sum to exactly 255 or 65535, so the last one need not be stored.
"""

from dataclasses import dataclass

import numpy as np

from ..deform.influences import weight_matrix
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore
from .influence_rows import tidy_influences

STEPS = {8: 255, 16: 65535}


@dataclass(frozen=True, eq=False)
class CompressedWeights:
    """bones (N, K) int32, strongest first; steps (N, K) uint8 or uint16, rows that sum to exactly 255 or 65535 (0 where
    a vertex follows no bone); bits 8 or 16.

    largest_error: the largest rounding error of a weight, after pruning and the limit. With n influences
    in a row it is below (1 − 1/n) steps, the least that an exact sum allows: 0.196 % for two influences at 8 bits,
    0.261 % for three, 0.294 % for four.
    """

    bones: np.ndarray
    steps: np.ndarray
    bits: int
    largest_error: float

    @property
    def weights(self) -> np.ndarray:
        """(N, K) float64: steps as shares of 255 or 65535."""
        return self.steps / float(STEPS[self.bits])


def compress_weights(
    bones: np.ndarray, weights: np.ndarray, *, bits: int = 8, max_influences: int = 4, threshold: float = 0.0
) -> CompressedWeights:
    """``bones`` and ``weights`` (N, K'), rows that sum to 1 or 0, in steps of 1/255 or 1/65535.

    Weights below ``threshold`` are dropped, never a vertex's strongest, then all but ``max_influences``; the rest is
    scaled to 1 and rounded down, and the steps that are missing go to the largest remainders (Hamilton's method), of
    equals to the stronger weight. No rounding with exact sums has a smaller largest error.
    Raises BadSettings on other numbers of bits, and thresholds that are not from 0 to below 1.
    """
    if bits not in STEPS:
        raise BadSettings(f"Weights are stored in 8 or 16 bits, not {bits}")
    if not 0 <= threshold < 1:
        raise BadSettings(f"The threshold must be from 0 to below 1, not {threshold:g}")
    # Twice: weights below the threshold must not count for the limit, and a bone that occurs twice counts once with
    # both.
    bones, weights = tidy_influences(bones, weights, max(np.shape(bones)[1], 1))
    weights = np.where((weights >= threshold) | (np.arange(weights.shape[1]) == 0), weights, 0.0)
    bones, weights = tidy_influences(bones, weights, max_influences)
    exact = weights * STEPS[bits]
    steps = np.floor(exact)
    missing = np.where(weights.any(axis=1), STEPS[bits] - steps.sum(axis=1), 0)
    remainders = np.where(weights > 0, exact - steps, -1.0)
    rank = np.argsort(np.argsort(-remainders, axis=1, kind="stable"), axis=1)
    steps += rank < missing[:, None]
    error = float(np.abs(steps - exact).max(initial=0.0)) / STEPS[bits]
    order = np.lexsort((bones, -steps), axis=1)
    bones, steps = np.take_along_axis(bones, order, axis=1), np.take_along_axis(steps, order, axis=1)
    bones = np.where(steps > 0, bones, bones[:, :1])
    return CompressedWeights(bones, steps.astype(np.uint8 if bits == 8 else np.uint16), bits, error)


def bytes_per_vertex(influences: int, bits: int, bone_count: int) -> int:
    """Bytes for the bones and weights of a vertex: one index each, of 1 byte up to 256 bones and 2 above, and one
    weight each but the last, which the others imply. 7 for four influences at 8 bits, as in the chapter."""
    return influences * (1 if bone_count <= 256 else 2) + (influences - 1) * bits // 8


@dataclass(frozen=True)
class PositionalError:
    """largest: distance in the mesh's units, at ``vertex`` in the row ``frame`` of the matrices; mean: over all."""

    largest: float
    frame: int
    vertex: int
    mean: float


def positional_error(
    rest: np.ndarray,
    before: tuple[np.ndarray, np.ndarray],
    after: tuple[np.ndarray, np.ndarray],
    matrices: np.ndarray,
    progress: Progress = ignore,
) -> PositionalError:
    """How far linear blend skinning moves vertices ``rest`` (N, 3) apart with two sets of (bones, weights).

    Each (N, K), K may differ, rows that sum to 1; matrices (F, P, 3, 4) from rest pose to frame. Raises Cancelled.
    """
    matrices = np.asarray(matrices, dtype=np.float64)
    count, bone_count = len(rest), matrices.shape[1]
    difference = weight_matrix(*after, bone_count) - weight_matrix(*before, bone_count)
    difference.eliminate_zeros()
    largest, frame, vertex, total = 0.0, 0, 0, 0.0
    for row, frame_matrices in enumerate(matrices):
        blended = (difference @ frame_matrices.reshape(bone_count, 12)).reshape(count, 3, 4)
        offsets = np.einsum("nij,nj->ni", blended[..., :3], rest) + blended[..., 3]
        distances = np.linalg.norm(offsets, axis=1)
        worst = int(np.argmax(distances)) if count else 0
        if count and distances[worst] > largest:
            largest, frame, vertex = float(distances[worst]), row, worst
        total += float(distances.sum())
        checkpoint(progress, (row + 1) / len(matrices), "Measuring")
    return PositionalError(largest, frame, vertex, total / max(count * len(matrices), 1))
