# SPDX-License-Identifier: GPL-3.0-or-later
"""Points, vectors and triangles: one affine map for all, mirror images, unit length, sizes and areas."""

import numpy as np

# What a vector is multiplied by for its mirror image in X.
MIRROR_X = np.array([-1.0, 1.0, 1.0])


def transform_points(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """``points`` (..., 3), all moved by the affine ``matrix`` (4, 4) or (3, 4)."""
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def diagonal(points: np.ndarray) -> float:
    """The length of the diagonal of the box around ``points`` (N, 3); 0 where they are all at one place.

    Tolerances and sizes are relative to it, so that results do not depend on the unit of length.
    """
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def unit(vectors: np.ndarray) -> np.ndarray:
    """``vectors`` (..., 3) at unit length, zero ones left zero; lengths may be anywhere in the range of float64."""
    vectors = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    return np.divide(scaled, np.linalg.norm(scaled, axis=-1, keepdims=True), out=scaled, where=largest > 0)


def mirrored(points: np.ndarray, plane: float) -> np.ndarray:
    """``points`` (..., 3) mirrored in x = ``plane``."""
    return points * MIRROR_X + [2.0 * plane, 0.0, 0.0]


def triangle_areas(corners: np.ndarray) -> np.ndarray:
    """(T,) of triangles with ``corners`` (T, 3, 3): by triangle, corner and axis."""
    first = corners[:, 0]
    return 0.5 * np.linalg.norm(np.cross(corners[:, 1] - first, corners[:, 2] - first), axis=1)


def vertex_areas(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(N,) a third of the area of the ``triangles`` (T, 3) at each of ``points`` (N, 3)."""
    thirds = triangle_areas(points[triangles]) / 3.0
    return np.bincount(triangles.ravel(), np.repeat(thirds, 3), len(points))
