# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone transforms in reduced coordinates, and their inner products, which all steps of the solver use.

With T (d, 4P) the reduced transforms of all bones and C (d, N) the reduced animation, bone k alone predicts a vertex of
rest position v as t_k [v; 1]. Everything the rest pose and the weights need is in G = TᵀT (4P, 4P) and H = TᵀC (4P, N):
‖t_k v‖² = vᵀ G_kk v, the inner product of two bones' predictions vᵀ G_kl v, and that with the data vᵀ H_k. The blocks
of G are symmetrised and packed to the ten products of (x, y, z, 1), so that no step ever touches d numbers a vertex.
"""

from functools import cached_property

import numpy as np
import scipy.sparse

from ..dense import product

# Row and column of each of the ten entries of a symmetric 4 × 4 matrix, in the order of ``monomials``.
_ROWS, _COLUMNS = np.triu_indices(4)
_DOUBLED = np.where(_ROWS == _COLUMNS, 1.0, 2.0)


def homogeneous(positions: np.ndarray) -> np.ndarray:
    """(n, 3) to (n, 4) with a last coordinate of 1."""
    return np.concatenate([positions, np.ones((len(positions), 1))], axis=1)


def monomials(points: np.ndarray) -> np.ndarray:
    """The ten products (n, 10) of homogeneous ``points`` (n, 4), such that packed blocks times them is pᵀ G p."""
    return points[:, _ROWS] * points[:, _COLUMNS]


def unpack(packed: np.ndarray) -> np.ndarray:
    """Packed blocks (n, 10) as symmetric matrices (4, 4, n), the vertices along the last axis."""
    matrices = np.empty((4, 4, len(packed)))
    halved = (packed / _DOUBLED).T
    matrices[_ROWS, _COLUMNS] = halved
    matrices[_COLUMNS, _ROWS] = halved
    return matrices


class BoneModel:
    """transforms: Tᵀ (4P, d) float64, four rows a bone. gram: TᵀT of the whole transforms, where they are not in the
    reduced space, of which ``transforms`` then are the projections."""

    def __init__(self, transforms: np.ndarray, gram: np.ndarray | None = None):
        self.transforms = transforms
        self.bone_count = len(transforms) // 4
        self.gram = product(transforms, transforms.T) if gram is None else gram
        blocks = self.gram.reshape(self.bone_count, 4, self.bone_count, 4)
        upper = blocks[:, _ROWS, :, _COLUMNS]
        lower = blocks[:, _COLUMNS, :, _ROWS]
        self.packed = np.ascontiguousarray((0.5 * _DOUBLED[:, None, None] * (upper + lower)).transpose(1, 2, 0))
        self.packed_own = np.ascontiguousarray(np.einsum("kki->ik", self.packed))

    def data_products(self, data: np.ndarray) -> np.ndarray:
        """H of some vertices: ``data`` (n, d) to (n, P, 4)."""
        return product(data, self.transforms.T).reshape(len(data), self.bone_count, 4)

    def pair_blocks(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The packed block (..., n, 10) of each pair of bones (..., n)."""
        return self.packed.reshape(-1, 10).take(first * self.bone_count + second, axis=0)

    def products_with_blends(self, powers: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The inner products (n, P) of all bones' predictions with what the vertices' own bones, (n, K), blend to."""
        count, influences = bones.shape
        values = (weights[:, :, None] * powers[:, None]).ravel()
        # In the integers that scipy would convert others to.
        columns = (10 * bones[:, :, None].astype(np.int32) + np.arange(10, dtype=np.int32)).ravel()
        starts = np.arange(0, len(values) + 1, 10 * influences, dtype=np.int32)
        # A row has few bones: sparse, this is a small part of the work.
        blends = scipy.sparse.csr_matrix((values, columns, starts), shape=(count, 10 * self.bone_count))
        return blends @ self._packed_rows

    @cached_property
    def _packed_rows(self) -> np.ndarray:
        """``packed`` (10P, P), ten rows a bone."""
        return np.ascontiguousarray(self.packed.transpose(0, 2, 1)).reshape(-1, self.bone_count)

    def squared_distances(self, points: np.ndarray, data: np.ndarray) -> np.ndarray:
        """‖t_k v − y‖² (n, P): how far each bone alone puts each vertex from its data.

        points (n, 4), data (n, d). Comparable between vertices, too, as each one's own ‖y‖² is in it.
        """
        norms = np.einsum("ij,ij->i", data, data)
        return np.maximum(self.errors_alone(points, self.data_products(data)) + norms[:, None], 0.0)

    def errors_alone(self, points: np.ndarray, products: np.ndarray) -> np.ndarray:
        """‖t_k v − y‖² − ‖y‖² (n, P), from the ``data_products``."""
        return product(monomials(points), self.packed_own) - 2.0 * np.einsum("npi,ni->np", products, points)
