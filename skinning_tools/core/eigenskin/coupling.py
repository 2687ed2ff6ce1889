# SPDX-License-Identifier: GPL-3.0-or-later
"""Where two joints act together, found by what single joints leave over, wherever it is.

The supports of the two need not meet: a wrist and an elbow pull the same muscles. What is left in examples that pose
these two alone is theirs. In examples that pose more, it is theirs where the examples, by functions of the two, predict
each other.
"""

import numpy as np

from .. import dense
from ..smooth_step import smooth_step
from .pairs import pair_predictors
from .pose_space import PoseSpace
from .supports import strengths, support_mask

# The share of the squared residuals that left-out examples must predict at a vertex, for some of the mask and for all.
_LEAST, _SURE = 0.3, 0.6

# Fewer examples say too little about each other.
_LEAST_EXAMPLES = 8


def coupling_mask(
    first: PoseSpace,
    second: PoseSpace,
    one: np.ndarray,
    other: np.ndarray,
    residuals: np.ndarray,
    alone: np.ndarray,
    threshold: float,
    least: float,
    most: int,
) -> np.ndarray:
    """(N,) from 0 to 1: where the two joints explain what is left.

    one and other (E, 4): their rotations in the examples that pose both; residuals (E, N, 3) there; alone (E,) bool:
    those that pose no other joint. threshold: of the supports; least: smaller lengths are rounding; most: centers.
    """
    mask = support_mask(strengths(residuals[alone]), threshold, least) if alone.any() else np.zeros(residuals.shape[1])
    if len(residuals) < _LEAST_EXAMPLES or alone.all():
        return mask
    flat = residuals.reshape(len(residuals), -1).astype(np.float64)
    energies, missed = np.einsum("eni,eni->n", residuals, residuals), np.inf
    # How closely the functions must follow the examples differs from place to place: elsewhere may be what no function
    # of the two explains.
    for predictor in pair_predictors(first, second, one, other, most):
        left = (flat - dense.product(predictor, flat)).reshape(residuals.shape)
        missed = np.minimum(missed, np.einsum("eni,eni->n", left, left))
    predicted = 1 - np.divide(missed, energies, out=np.ones(len(energies)), where=energies > len(residuals) * least**2)
    return np.maximum(mask, smooth_step((predicted - _LEAST) / (_SURE - _LEAST)))
