# SPDX-License-Identifier: GPL-3.0-or-later
"""Transferred weights and those that a mesh has already, in one set of rows."""

import numpy as np
from scipy import sparse

from ..sparse_rows import ratio, row_sums, scaled_rows


def merged_weights(
    before: sparse.csr_matrix, after: sparse.csr_matrix, shares: np.ndarray, chosen: np.ndarray, locked: np.ndarray
) -> sparse.csr_matrix:
    """(n, P) ``before`` with ``shares`` (n,) of the way to ``after``, both (n, P) with rows that sum to 1, ``before``
    also to 0: such rows go the whole way.

    Only bones ``chosen`` (P,) get weights of ``after``; the other weights of a row share what these leave, and where it
    has none, its sum stays below 1. Weights of bones ``locked`` (P,) stay, and the rest of ``after`` shares what they
    leave.
    """
    held = _columns(before, locked)
    room = 1.0 - row_sums(held)
    free = _columns(after, ~locked)
    new = scaled_rows(_columns(free, chosen), ratio(room, row_sums(free)))
    others = _columns(before, ~locked & ~chosen)
    new = new + scaled_rows(others, ratio(np.maximum(room - row_sums(new), 0.0), row_sums(others)))
    shares = np.where(row_sums(before) > 0, shares, 1.0)
    return (scaled_rows(_columns(before, ~locked), 1.0 - shares) + scaled_rows(new, shares) + held).tocsr()


def _columns(matrix: sparse.csr_matrix, kept: np.ndarray) -> sparse.csr_matrix:
    return (matrix @ sparse.diags(kept.astype(float))).tocsr()
