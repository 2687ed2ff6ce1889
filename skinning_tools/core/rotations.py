# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations nearest to linear maps, and the stretches that they leave. Needs numpy only."""

import numpy as np

# A smaller ratio of the singular values than this leaves the sign of the determinant to rounding: bones come from
# Blender in single precision.
_FLAT = 1e-6


def nearest_rotations(linear: np.ndarray) -> np.ndarray:
    """The rotations R (..., 3, 3) nearest to ``linear`` (..., 3, 3) in the Frobenius norm; never reflections.

    The same R has the largest trace of Rᵀ · linear: it aligns two sets of points whose covariance ``linear`` is
    (Kabsch 1976).
    """
    return nearest_rotations_and_firmness(linear)[0]


def nearest_rotations_and_firmness(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``nearest_rotations``, and how much (...) that trace resists a turn about the axis that resists least."""
    left, sizes, right = np.linalg.svd(linear)
    side = np.where(np.linalg.det(left @ right) < 0, -1.0, 1.0)
    left[..., 2] *= side[..., None]
    return left @ right, sizes[..., 1] + side * sizes[..., 2]


def polar_decomposition(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations R and symmetric stretches S, both (..., 3, 3), of ``linear`` (..., 3, 3): linear = R · S, det R = 1.

    A map that mirrors has only negative stretches, since there is no reason to negate one axis rather than another.
    A map that flattens has the nearest rotation; a map that leaves several equally near (a bone scaled to zero) has
    one of these.
    """
    linear = np.asarray(linear, dtype=np.float64)
    left, scale, right = np.linalg.svd(linear)
    improper = np.linalg.det(left @ right) < 0
    flat = scale[..., 2] <= _FLAT * scale[..., 0]
    left[..., 2] *= np.where(improper & flat, -1.0, 1.0)[..., None]
    signs = np.where(improper & ~flat, -1.0, 1.0)[..., None, None]
    rotations = signs * (left @ right)
    stretches = signs * (np.swapaxes(right, -1, -2) @ (scale[..., None] * right))
    return rotations, stretches


def right_handed(axes: np.ndarray) -> np.ndarray:
    """``axes`` (..., 3, 3), columns, with the last one reversed where they are left-handed."""
    result = np.array(axes, dtype=np.float64)
    result[..., 2] *= np.where(np.linalg.det(result) < 0, -1.0, 1.0)[..., None]
    return result
