# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinship among bones."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from .types import Skeleton


def hops(skeleton: Skeleton) -> np.ndarray:
    """(P, P) steps from parent to child or back between two bones; more than any other where they share no root."""
    count = len(skeleton)
    children = np.flatnonzero(skeleton.parents >= 0)
    tree = sparse.coo_matrix((np.ones(len(children)), (children, skeleton.parents[children])), shape=(count, count))
    steps = shortest_path(tree.tocsr(), directed=False, unweighted=True)
    return np.where(np.isfinite(steps), steps, 2 * count)


def common_ancestors(tied: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    """(n,) for each row of ``tied`` (n, P) bool the bone that is ancestor of all of them, or is it itself.

    The nearest such bone; the first of the tied bones where they have none in common. So a vertex in the mirror plane,
    as near to the left bone as to the right, takes neither.
    """
    count = len(skeleton)
    descends = np.eye(count, dtype=bool)
    ancestor = skeleton.parents.copy()
    depth = np.zeros(count, int)
    while (ancestor >= 0).any():
        have = np.flatnonzero(ancestor >= 0)
        descends[have, ancestor[have]] = True
        depth[have] += 1
        ancestor = np.where(ancestor >= 0, skeleton.parents[ancestor], -1)
    missed = tied.astype(np.float32) @ (~descends).astype(np.float32)
    found = np.where(missed == 0, depth + 1, 0)
    return np.where(found.any(axis=1), found.argmax(axis=1), tied.argmax(axis=1))
