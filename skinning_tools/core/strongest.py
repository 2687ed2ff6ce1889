# SPDX-License-Identifier: GPL-3.0-or-later
"""The strongest of a vertex's influences. Without SciPy, as what a panel needs at each redraw."""

import numpy as np


def strongest_first(bones: np.ndarray, weights: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` and ``weights`` (N, K), the largest weights first, K at most ``most``; equal weights keep their order.

    Slots of weight 0 repeat the strongest bone.
    """
    order = np.argsort(-weights, axis=1, kind="stable")[:, :most]
    bones, weights = np.take_along_axis(bones, order, axis=1), np.take_along_axis(weights, order, axis=1)
    return np.where(weights > 0, bones, bones[:, :1]), weights


def strongest_bones(bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(N,) the bone with the largest weight of each row (N, K), K ≥ 1; the first of equal ones."""
    return np.take_along_axis(bones, np.argmax(weights, axis=1)[:, None], axis=1)[:, 0]
