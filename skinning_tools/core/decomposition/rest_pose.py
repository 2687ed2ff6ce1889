# SPDX-License-Identifier: GPL-3.0-or-later
"""Rest positions for given transforms and weights (Kavan et al. 2010, section 4.3)."""

import numpy as np

from .bone_model import BoneModel, monomials, unpack
from .weights import solve_small

# Share of the system's trace that holds a rest position where the bones do not care (a blend that flattens space).
_HOLD = 1e-7


class OwnBones:
    """What the vertex step needs of the bones (n, K) of some vertices, gathered once for all its parts."""

    def __init__(self, model: BoneModel, data_products: np.ndarray, bones: np.ndarray):
        """data_products (n, P, 4) from ``BoneModel.data_products``."""
        self._first, self._second = np.tril_indices(bones.shape[1])
        self._blocks = model.pair_blocks(bones.T[self._first], bones.T[self._second])
        self._products = data_products[np.arange(len(bones))[:, None], bones]

    def system(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normal equations of each vertex's homogeneous rest position: matrices (4, 4, n) and right sides (n, 4)."""
        factors = weights.T[self._first] * weights.T[self._second]
        factors[self._first != self._second] *= 2.0
        packed = np.einsum("qn,qni->ni", factors, self._blocks)
        return unpack(packed), np.einsum("nk,nki->ni", weights, self._products)

    def fit(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of what the bones predict for rest ``points`` (n, 4): all pairs (K, K, n), the data (K, n)."""
        size = self._products.shape[1]
        gram = np.empty((size, size, len(points)))
        gram[self._first, self._second] = np.einsum("qni,ni->qn", self._blocks, monomials(points))
        gram[self._second, self._first] = gram[self._first, self._second]
        return gram, np.einsum("nki,ni->kn", self._products, points)


def blended_system(
    model: BoneModel, data_products: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``OwnBones.system`` of vertices with ``bones`` and ``weights`` (n, K)."""
    return OwnBones(model, data_products, bones).system(weights)


def fit_rest_positions(matrices: np.ndarray, right: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Move homogeneous rest ``points`` (n, 4) to the least-squares optimum of ``blended_system``: new (n, 4).

    The step, not the position, is solved for, and lightly held: a direction that the blend flattens, where the paper
    falls back to a pseudo-inverse, stays where it was.
    """
    system = matrices[:3, :3].copy()
    hold = _HOLD * (system[0, 0] + system[1, 1] + system[2, 2])
    for axis in range(3):
        system[axis, axis] += hold
    residual = right.T[:3] - np.einsum("ijn,nj->in", matrices[:3], points)
    step, solid = solve_small(system, residual, 0.0)
    moved = points.copy()
    for axis in range(3):
        moved[:, axis] += np.where(solid, step[axis], 0.0)
    return moved


def squared_errors(matrices: np.ndarray, right: np.ndarray, points: np.ndarray) -> np.ndarray:
    """‖prediction − y‖² − ‖y‖² of each vertex (n,)."""
    return np.einsum("ni,ijn,nj->n", points, matrices, points) - 2.0 * np.einsum("ni,ni->n", right, points)
