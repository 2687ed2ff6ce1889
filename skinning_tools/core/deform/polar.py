# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotation and stretch of a linear map."""

import numpy as np

# A smaller ratio of the singular values than this leaves the sign of the determinant to rounding: bones come from
# Blender in single precision.
_FLAT = 1e-6


def polar_decomposition(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations R and symmetric stretches S, both (..., 3, 3), of ``linear`` (..., 3, 3): linear = R · S, det R = 1.

    A map that mirrors has all its stretches negative: to negate one axis only, one of several would have to be chosen.
    A map that flattens has the rotation nearest to it; where that leaves a choice (a bone scaled to nothing) some
    rotation.
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
