# SPDX-License-Identifier: GPL-3.0-or-later
"""Values on a part of a mesh, continued over the rest of it as heat would spread: never negative, independent of units,
and constant where all known values agree."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ..binding.laplacian import laplacian
from ..binding.types import Body
from ..dense import one_blas_thread
from ..progress import Progress, checkpoint, ignore
from ..sparse_rows import row_sums, scaled_rows

# As a share of the mean conduction: every edge conducts at least this much, so that no place is cut off by narrow
# triangles around it.
_LEAST = 1e-6

# Columns in one solve.
_COLUMNS = 32

# Smaller values are left out.
_NEGLIGIBLE = 1e-4


def continued(
    body: Body, known: np.ndarray, values: sparse.csr_matrix, progress: Progress = ignore
) -> sparse.csr_matrix:
    """(W, P) sparse: ``values`` (W, P) ≥ 0 at the places ``known`` (W,) bool, and their harmonic continuation at all
    others: L x = 0 there, with the tolerant Laplacian L.

    Each connected part needs a known place. Raises Cancelled.
    """
    free = np.flatnonzero(~known)
    values = scaled_rows(values, known.astype(float))
    if not len(free):
        return values
    conduction, _ = laplacian(body)
    graph = body.edge_graph
    least = _LEAST * conduction.diagonal().mean() or 1.0
    links = sparse.csr_matrix((np.full(graph.nnz, least), graph.indices, graph.indptr), graph.shape)
    rows = (conduction - links + sparse.diags(row_sums(links))).tocsr()[free]
    matrix, given = rows[:, free].tocsr(), -(rows @ values).tocsc()
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    used = np.flatnonzero(np.diff(given.indptr))
    back, blocks = np.argsort(order), []
    with one_blas_thread():
        factors = splu(
            matrix[order][:, order].tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    for start in range(0, len(used), _COLUMNS):
        checkpoint(progress, start / len(used), "Filling in weights")
        columns = used[start : start + _COLUMNS]
        with one_blas_thread():
            solved = factors.solve(given[:, columns].toarray()[order])[back]
        blocks.append(sparse.csc_matrix(np.where(solved > _NEGLIGIBLE, solved, 0.0)))
    place = sparse.csr_matrix((np.ones(len(free)), (free, np.arange(len(free)))), shape=(len(known), len(free)))
    chosen = sparse.csr_matrix((np.ones(len(used)), (np.arange(len(used)), used)), shape=(len(used), values.shape[1]))
    return (values + place @ sparse.hstack(blocks).tocsr() @ chosen).tocsr()
