# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of influences in their normal form: no bone twice, at most K, sums of 1."""

import numpy as np
from scipy import sparse

from ..errors import BadSettings
from ..strongest import strongest_first

_BLOCK = 65536


def tidy_influences(
    bones: np.ndarray, weights: np.ndarray, most: int, locked: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` int32 and ``weights`` float64 (N, K), K at most ``most``, from rows (N, M) with weights ≥ 0.

    The strongest bones of each row, strongest first, of equals the one with the smaller index; a bone that occurs twice
    counts once with both weights. Rows sum to 1, unused slots repeat the strongest bone with weight 0; a row without
    any weight stays so. Weights of the bones ``locked`` (P,) stay, and the others share the rest; locked weights change
    only where they alone are more than ``most``, or where no other bone has any weight. Raises BadSettings where
    ``most`` is below 1.
    """
    if most < 1:
        raise BadSettings(f"The influence limit must be at least 1, not {most}")
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    parts = [slice(start, start + _BLOCK) for start in range(0, max(len(bones), 1), _BLOCK)]
    done = [_tidy(bones[part], weights[part], most, locked) for part in parts]
    return np.concatenate([part[0] for part in done]), np.concatenate([part[1] for part in done])


def matrix_influences(
    matrix: sparse.csr_matrix, most: int, locked: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``tidy_influences`` of the rows of a sparse ``matrix`` (N, P) of weights ≥ 0."""
    lengths = np.diff(matrix.indptr)
    done = []
    for start in range(0, max(len(lengths), 1), _BLOCK):
        width = max(int(lengths[start : start + _BLOCK].max(initial=1)), 1)
        filled = np.arange(width) < lengths[start : start + _BLOCK, None]
        stored = slice(matrix.indptr[start], matrix.indptr[min(start + _BLOCK, len(lengths))])
        bones, weights = np.zeros(filled.shape, np.int32), np.zeros(filled.shape)
        bones[filled], weights[filled] = matrix.indices[stored], matrix.data[stored]
        done.append(padded_influences(*tidy_influences(bones, weights, most, locked), min(most, matrix.shape[1])))
    return np.concatenate([part[0] for part in done]), np.concatenate([part[1] for part in done])


def padded_influences(bones: np.ndarray, weights: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` and ``weights`` (N, K) with unused slots added up to ``width``."""
    missing = max(width - np.shape(bones)[1], 0)
    return np.hstack([bones, np.repeat(bones[:, :1], missing, axis=1)]), np.pad(weights, ((0, 0), (0, missing)))


def _tidy(
    bones: np.ndarray, weights: np.ndarray, most: int, locked: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(bones, axis=1, kind="stable")
    bones, weights = np.take_along_axis(bones, order, axis=1), np.take_along_axis(weights, order, axis=1)
    for slot in range(1, bones.shape[1]):
        same = bones[:, slot] == bones[:, slot - 1]
        weights[:, slot] += np.where(same, weights[:, slot - 1], 0.0)
        weights[same, slot - 1] = 0.0
    fixed = np.zeros(bones.shape, bool) if locked is None else np.asarray(locked)[bones] & (weights > 0)
    # No weight is above 1, so the locked ones come first.
    kept = np.argsort(-(weights + 2.0 * fixed), axis=1, kind="stable")[:, :most]
    bones, weights, fixed = (np.take_along_axis(rows, kept, axis=1) for rows in (bones, weights, fixed))
    held = (weights * fixed).sum(axis=1, keepdims=True)
    free = (weights * ~fixed).sum(axis=1, keepdims=True)
    scale = np.divide(np.maximum(1.0 - held, 0.0), free, out=np.zeros_like(free), where=free > 0)
    weights = np.where(fixed, weights, weights * scale)
    sums = weights.sum(axis=1, keepdims=True)
    alone = (free <= 0) & (sums > 0)
    weights = np.divide(weights, sums, out=weights, where=alone)
    bones, weights = strongest_first(bones, weights)
    return bones.astype(np.int32), weights
