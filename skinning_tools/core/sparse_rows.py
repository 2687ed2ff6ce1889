# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of sparse matrices, such as the weights of a vertex."""

import numpy as np
from scipy import sparse


def row_sums(matrix: sparse.csr_matrix) -> np.ndarray:
    """(n,) of a matrix (n, P)."""
    return np.asarray(matrix.sum(axis=1)).ravel()


def scaled_rows(matrix: sparse.csr_matrix, factors: np.ndarray) -> sparse.csr_matrix:
    """``matrix`` (n, P) with each row times its own of ``factors`` (n,)."""
    return (sparse.diags(factors) @ matrix).tocsr()


def ratio(above: np.ndarray | float, below: np.ndarray) -> np.ndarray:
    """``above`` / ``below`` (n,), 0 where that is 0."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)
