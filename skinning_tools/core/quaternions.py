# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit quaternions (w, x, y, z) in bulk: conversions and products over any leading shape."""

import numpy as np

# A component, or a cosine between two quaternions, counts as zero below this: bones come in single precision.
NEARLY_ZERO = 1e-6


def from_matrices(rotations: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) of rotation matrices (..., 3, 3); either of the two signs.

    Of the four columns of 4 q qᵀ, the one with the largest diagonal entry is normalized, which avoids cancellation.
    """
    m = np.asarray(rotations, dtype=np.float64)
    outer = np.empty((*m.shape[:-2], 4, 4))
    trace = np.trace(m, axis1=-2, axis2=-1)
    outer[..., 0, 0] = 1 + trace
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        outer[..., i + 1, i + 1] = 1 + 2 * m[..., i, i] - trace
        outer[..., 0, i + 1] = outer[..., i + 1, 0] = m[..., k, j] - m[..., j, k]
        outer[..., j + 1, k + 1] = outer[..., k + 1, j + 1] = m[..., j, k] + m[..., k, j]
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    column = np.take_along_axis(outer, largest[..., None, None], axis=-1)[..., 0]
    return normalized(column)


def to_matrices(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternions, dtype=np.float64), -1, 0)
    result = np.empty((*w.shape, 3, 3))
    result[..., 0, 0], result[..., 0, 1], result[..., 0, 2] = (
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
    )
    result[..., 1, 0], result[..., 1, 1], result[..., 1, 2] = (
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
    )
    result[..., 2, 0], result[..., 2, 1], result[..., 2, 2] = (
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    )
    return result


def normalized(quaternions: np.ndarray) -> np.ndarray:
    """``quaternions`` (..., 4) divided by their lengths."""
    return quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)


def conjugate(quaternions: np.ndarray) -> np.ndarray:
    """The inverses of unit quaternions (..., 4)."""
    return quaternions * np.array([1.0, -1.0, -1.0, -1.0])


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Quaternion products left · right, (..., 4): the rotation ``right`` first, then ``left``."""
    a, b, c, d = np.moveaxis(left, -1, 0)
    w, x, y, z = np.moveaxis(right, -1, 0)
    return np.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ],
        axis=-1,
    )


def canonical(quaternions: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) with the sign for which the first component that is not nearly zero is positive.

    Half turns have w = 0 up to rounding, which therefore does not decide their direction.
    """
    significant = np.abs(quaternions) > NEARLY_ZERO
    leading = np.take_along_axis(quaternions, np.argmax(significant, axis=-1)[..., None], axis=-1)
    return np.where(leading < 0, -quaternions, quaternions)


def same_hemisphere(quaternions: np.ndarray) -> np.ndarray:
    """``quaternions`` (F, ..., 4) with signs that put each on the side of the previous one, the first with w ≥ 0."""
    dots = np.einsum("f...i,f...i->f...", quaternions[1:], quaternions[:-1])
    first = quaternions[:1, ..., 0]
    signs = np.cumprod(np.where(np.concatenate([first, dots]) < 0, -1.0, 1.0), axis=0)
    return quaternions * signs[..., None]


def rotation_angles(rotations: np.ndarray) -> np.ndarray:
    """(...) radians from 0 to π of unit quaternions ``rotations`` (..., 4); exact for small angles, too."""
    return 2 * np.arctan2(np.linalg.norm(rotations[..., 1:], axis=-1), np.abs(rotations[..., 0]))


def halfway(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The value of an animation channel halfway between two keys (..., 4): the normalized sum, the shorter way
    around."""
    nearer = np.where(np.einsum("...i,...i->...", first, second)[..., None] < 0, -second, second)
    return normalized(first + nearer)
