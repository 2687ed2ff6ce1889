# SPDX-License-Identifier: GPL-3.0-or-later
"""Rest positions for given transforms and weights (Kavan et al. 2010, section 4.3)."""

import numpy as np

from .bone_model import BoneModel, unpack
from .weights import solve_small

# Share of the system's trace that holds a rest position where the bones do not care (a blend that flattens space).
_HOLD = 1e-7


def blended_system(
    model: BoneModel, data_products: np.ndarray, bones: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Normal equations of each vertex's homogeneous rest position: matrices (4, 4, n) and right sides (n, 4).

    data_products (n, P, 4) from ``BoneModel.data_products``; bones and weights (n, K).
    """
    count, influences = bones.shape
    rows = np.arange(count)
    packed = np.zeros((count, 10))
    right = np.zeros((count, 4))
    for i in range(influences):
        right += weights[:, i, None] * data_products[rows, bones[:, i]]
        for j in range(i + 1):
            factor = weights[:, i] * weights[:, j] * (1.0 if i == j else 2.0)
            packed += factor[:, None] * model.packed[bones[:, i], bones[:, j]]
    return unpack(packed), right


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
