# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations nearest to linear maps, and the stretches that they leave. Needs numpy only."""

import numpy as np

# A smaller ratio of the singular values than this leaves the sign of the determinant to rounding: bones come from
# Blender in single precision.
_FLAT = 1e-6
# The number of matrices from which a closed form saves time. It is as exact as singular values where the product of the
# stretches' sums is above this, of a matrix of norm 1, and where its last step was as small as this; and where the
# squares of the matrix have all digits.
_MANY, _FIRM, _CONVERGED, _LEAST_NORM = 48, 5e-4, 1e-8, 1e-150
_NEWTON_STEPS = 6
# The rows, or columns, after each one.
_SECOND, _THIRD = [1, 2, 0], [2, 0, 1]


def nearest_rotations(linear: np.ndarray) -> np.ndarray:
    """The rotations R (..., 3, 3) nearest to ``linear`` (..., 3, 3) in the Frobenius norm; never reflections.

    The same R has the largest trace of Rᵀ · linear: it aligns two sets of points whose covariance ``linear`` is
    (Kabsch 1976). By singular values, or for many at once in closed form where that is as exact.
    """
    maps = np.ascontiguousarray(linear.reshape(-1, 3, 3).transpose(1, 2, 0))
    return np.ascontiguousarray(nearest_rotations_along(maps).transpose(2, 0, 1)).reshape(linear.shape)


def nearest_rotations_along(maps: np.ndarray) -> np.ndarray:
    """``nearest_rotations`` of ``maps`` (3, 3, n), whose last axis counts them: a step for all of them is a step along
    memory."""
    if maps.shape[2] < _MANY:
        return nearest_rotations_and_firmness(maps.transpose(2, 0, 1))[0].transpose(1, 2, 0)
    rotations, exact = _nearest_in_closed_form(maps)
    left = np.flatnonzero(~exact)
    if len(left):
        rotations[..., left] = nearest_rotations_and_firmness(maps[..., left].transpose(2, 0, 1))[0].transpose(1, 2, 0)
    return rotations


def _nearest_in_closed_form(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest rotations (3, 3, n) from the invariants of the stretch, and which of them (n,) are exact.

    With A = R U and U symmetric, of trace i, minors' sum j and determinant k, the theorem of Cayley and Hamilton gives
    (i j − k) R = i cof A + (i² − j) A − A Aᵀ A. If ‖A‖ = 1, i is the largest root of (i² − 1)² − 8 k i = 4 ‖cof A‖²
    (Horn 1987 has it as an eigenvalue), and j = (i² − 1) / 2; k is negative where A mirrors. The factor i j − k is the
    product of the sums of two stretches: where it vanishes, no rotation is nearer than all others.
    """
    lengths = np.sqrt(np.einsum("ijn,ijn->n", maps, maps))
    maps = maps / np.where(lengths > _LEAST_NORM, lengths, 1.0)
    cubes = np.einsum("ijn,jkn->ikn", maps, np.einsum("jin,jkn->ikn", maps, maps))
    second, third = maps[_SECOND], maps[_THIRD]
    cofactors = second[:, _SECOND] * third[:, _THIRD] - second[:, _THIRD] * third[:, _SECOND]
    determinant = (maps[0] * cofactors[0]).sum(axis=0)
    squares = np.einsum("ijn,ijn->n", cofactors, cofactors)
    # The minors' sum is at most as large as if all were equal: Newton's method comes down to the root from there.
    trace = np.sqrt(1.0 + 2.0 * np.sqrt(3.0 * squares))
    for _ in range(_NEWTON_STEPS):
        above = trace * trace - 1.0
        value = above * above - 8.0 * determinant * trace - 4.0 * squares
        slope = 4.0 * above * trace - 8.0 * determinant
        step = value / np.where(slope > 0, slope, np.inf)
        trace -= step
        converged = np.abs(step) < _CONVERGED
        # Each step squares what is left: nothing but rounding.
        if converged.all():
            break
    factor = 0.5 * trace * (trace * trace - 1.0) - determinant
    exact = (factor > _FIRM) & converged
    rotations = trace * cofactors + 0.5 * (trace * trace + 1.0) * maps - cubes
    rotations /= np.where(exact, factor, 1.0)
    return rotations, exact


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
