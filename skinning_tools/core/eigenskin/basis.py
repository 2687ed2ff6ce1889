# SPDX-License-Identifier: GPL-3.0-or-later
"""Eigendisplacements: the principal components of a support's displacements (EigenSkin, section 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import dense

# As a share of the largest singular value: smaller ones are rounding.
_RANK_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Basis:
    """singular_values (R,) descending, vectors (R, n, 3) orthonormal, coordinates (M, R) of the displacements."""

    singular_values: np.ndarray
    vectors: np.ndarray
    coordinates: np.ndarray


def eigendisplacements(displacements: np.ndarray, prediction: np.ndarray | None = None) -> Basis:
    """The singular value decomposition of ``displacements`` (M, n, 3), one row an observation, with all components.

    prediction (S, M): decompose the S displacements that this matrix predicts from the observations, scaled as if there
    were M of them. The paper decomposes the observations themselves; few of them do not represent the poses in between.

    Computed from the small Gram matrix (M, M), whose rounding hides components below 1e-8 of the largest: less than the
    single precision of the displacements.
    """
    count, vertex_count = displacements.shape[:2]
    observed = np.asarray(displacements, dtype=np.float64).reshape(count, 3 * vertex_count)
    # Any rows with the inner products of the predictions have the same decomposition.
    square_root = np.eye(count) if prediction is None else root(prediction.T @ prediction * (count / len(prediction)))
    rows = dense.product(square_root, observed)
    squares, turned = np.linalg.eigh(dense.product(rows, rows.T))
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    turned = turned[:, ::-1]
    rank = int(np.count_nonzero(values > _RANK_TOLERANCE * values[0])) if len(values) and values[0] > 0 else 0
    vectors = dense.product(turned[:, :rank].T, rows)
    # More accurate than the roots of small eigenvalues.
    values = np.linalg.norm(vectors, axis=1)
    vectors /= values[:, None]
    # The sign is free: the largest observation is positive, so that sliders mean the same on both sides of a body.
    coordinates = dense.product(observed, vectors.T)
    signs = np.sign(np.take_along_axis(coordinates, np.argmax(np.abs(coordinates), axis=0)[None], axis=0)[0])
    return Basis(values, (signs[:, None] * vectors).reshape(rank, vertex_count, 3), coordinates * signs)


def root(square: np.ndarray) -> np.ndarray:
    """A matrix (M, M) that times its transpose is ``square`` (M, M), which is positive semidefinite."""
    values, vectors = np.linalg.eigh(square)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def component_counts(
    singular_values: Sequence[np.ndarray], components: int | Sequence[int], budget: int = 0
) -> np.ndarray:
    """How many components each support keeps.

    singular_values: (R,) of each support. ``components`` of all, or of each, or where ``budget`` is given, the largest
    singular values of all supports up to that many together: the least error for the memory.
    """
    ranks = np.array([len(values) for values in singular_values], dtype=int)
    if budget <= 0:
        return np.minimum(ranks, components)
    support = np.repeat(np.arange(len(ranks)), ranks)
    order = np.argsort(-np.concatenate([*singular_values, np.zeros(0)]), kind="stable")[:budget]
    return np.bincount(support[order], minlength=len(ranks))
