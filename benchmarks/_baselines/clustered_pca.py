# SPDX-License-Identifier: GPL-3.0-or-later
"""Clustered principal component analysis (Sattler, Sarlette & Klein 2005).

Four components for each of P clusters, as much data per frame as P bones. Alternates between assigning vertices to the
cluster that reconstructs them best, and fitting clusters to their vertices' principal components. Starts from cells
around points spread over the rest pose.
"""

import numpy as np
import scipy.linalg

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition.segmentation import farthest_points, fill_empty_regions
from skinning_tools.core.dense import one_blas_thread, product, self_product

from .approximations import LowRank, trajectories
from .skinning_arbitrary_deformations import cells

COMPONENTS = 4
_MOST_ROUNDS = 30


@one_blas_thread()
def approximate(animation: Animation, bone_count: int) -> LowRank:
    data, rest = trajectories(animation), animation.frames[0].astype(float)
    labels = cells(rest, farthest_points(rest, bone_count))
    rows = np.arange(len(data))
    for _ in range(_MOST_ROUNDS):
        bases = np.array([_principal(data[labels == cluster]) for cluster in range(bone_count)])
        coefficients = product(data, np.hstack(bases)).reshape(len(data), bone_count, COMPONENTS)
        best = np.argmax(np.einsum("npr,npr->np", coefficients, coefficients), axis=1)
        best = fill_empty_regions(best, rest, bone_count)
        if np.array_equal(best, labels):
            break
        labels = best
    return LowRank(bases, coefficients[rows, labels], labels)


def _principal(members: np.ndarray) -> np.ndarray:
    """(3F, 4) orthonormal: the best basis of the rows of ``members`` (n, 3F); zero columns if fewer suffice."""
    basis = np.zeros((members.shape[1], COMPONENTS))
    small = members if len(members) < members.shape[1] else members.T
    some = max(len(small) - COMPONENTS, 0), len(small) - 1
    values, vectors = scipy.linalg.eigh(self_product(small.T), subset_by_index=some)
    values, vectors = values[::-1], vectors[:, ::-1]
    if small is members:
        kept = values > 1e-14 * values[0]
        vectors = product(members.T, vectors[:, kept] / np.sqrt(values[kept]))
    basis[:, : vectors.shape[1]] = vectors
    return basis
