# SPDX-License-Identifier: GPL-3.0-or-later
"""How bones are related."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from ..bone_order import depths, parents_first
from .types import Skeleton


def hops(skeleton: Skeleton) -> np.ndarray:
    """(P, P) steps from parent to child or back between two bones; more than any other where they share no root."""
    count = len(skeleton)
    children = np.flatnonzero(skeleton.parents >= 0)
    tree = sparse.coo_matrix((np.ones(len(children)), (children, skeleton.parents[children])), shape=(count, count))
    steps = shortest_path(tree.tocsr(), directed=False, unweighted=True)
    return np.where(np.isfinite(steps), steps, 2 * count)


def lineage(skeleton: Skeleton) -> np.ndarray:
    """(P, P) bool: for each bone itself and its ancestors."""
    result = np.eye(len(skeleton), dtype=bool)
    for bone in parents_first(skeleton.parents):
        if skeleton.parents[bone] >= 0:
            result[bone] |= result[skeleton.parents[bone]]
    return result


def common_ancestors(tied: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    """(n,) the nearest common ancestor of the bones in each row of ``tied`` (n, P) bool, which may be one of them.

    The first of the tied bones where they have no common ancestor. So a vertex in the mirror plane, equally near to the
    left bone and the right, takes neither.
    """
    descends = lineage(skeleton)
    missed = tied.astype(np.float32) @ (~descends).astype(np.float32)
    found = np.where(missed == 0, depths(skeleton.parents) + 1, 0)
    return np.where(found.any(axis=1), found.argmax(axis=1), tied.argmax(axis=1))
