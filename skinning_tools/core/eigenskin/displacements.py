# SPDX-License-Identifier: GPL-3.0-or-later
"""Displacements of the rest pose with which linear blending gives the correct shape (EigenSkin, section 2.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..deform import vertex_transforms
from ..geometry import unit
from ..progress import Progress, checkpoint, ignore

# As a share of the largest singular value of a vertex's blended matrix: below it the inverse is damped (twists beyond
# 150° between two bones, half and half). Displacements would otherwise be many times as large as the errors that they
# correct, and distort all poses in between.
DAMPED_BELOW = 0.25


@dataclass(frozen=True, eq=False)
class RestDisplacements:
    """values (E, N, 3) float32, in rest space; with normals (E, N, 6), what is added to the normals of the rest pose
    last. damped (E, N) bool: where the blended matrix is nearly singular, so that the target is met only in part."""

    values: np.ndarray
    damped: np.ndarray


def rest_displacements(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: Sequence[np.ndarray],
    shapes: Sequence[np.ndarray],
    normals: Sequence[np.ndarray] | None = None,
    surface_normals: np.ndarray | None = None,
    progress: Progress = ignore,
) -> RestDisplacements:
    """Displacements of the rest pose by which linear blending yields ``shapes`` (EigenSkin, section 2.2).

    rest (N, 3), bones and weights (N, K); of each of E examples: matrices (P, 3, 4) from rest pose to pose, the shape
    (N, 3) and, where normals are corrected too, its normals (N, 3); surface_normals (N, 3) are then those of the rest
    pose. One example is worked on at a time, beside the result. Raises Cancelled.
    """
    count = len(rest)
    values = np.empty((len(shapes), count, 3 if normals is None else 6), np.float32)
    damped = np.empty((len(shapes), count), bool)
    for index, shape in enumerate(shapes):
        transforms = vertex_transforms(rest, bones, weights, matrices[index])
        blended = transforms[..., :3]
        offsets = shape - (np.einsum("nij,nj->ni", blended, rest) + transforms[..., 3])
        inverse, damped[index] = damped_inverse(blended)
        values[index, :, :3] = np.einsum("nij,nj->ni", inverse, offsets)
        if normals is not None:
            values[index, :, 3:] = rest_normals(blended, normals[index]) - surface_normals
        checkpoint(progress, (index + 1) / len(shapes), "Mapping Examples to the Rest Pose")
    return RestDisplacements(values, damped)


def damped_inverse(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverses (N, 3, 3) of ``linear`` (N, 3, 3), and where they are damped (N,) bool.

    A singular value s below the limit d, DAMPED_BELOW of the largest one, counts as s / d² instead of 1 / s: continuous
    where damping begins, zero along a direction that the blend flattens completely.
    """
    linear = np.asarray(linear, dtype=np.float64)
    columns = np.moveaxis(linear, -1, 0)
    cofactors = np.stack(
        [np.cross(columns[1], columns[2]), np.cross(columns[2], columns[0]), np.cross(columns[0], columns[1])], axis=1
    )
    determinant = np.einsum("ni,ni->n", columns[0], cofactors[:, 0])
    largest = np.abs(np.einsum("nij,nik->njk", linear, linear)).sum(axis=2).max(axis=1, initial=0.0)
    # The ratio of the extreme singular values is at least this quotient, so that few vertices need them computed.
    doubtful = np.abs(determinant) <= DAMPED_BELOW * largest**1.5
    inverse = cofactors / np.where(doubtful, 1.0, determinant)[:, None, None]
    damped = np.zeros(len(linear), bool)
    if doubtful.any():
        left, values, right = np.linalg.svd(linear[doubtful])
        limit = DAMPED_BELOW * values[:, :1]
        divisor = np.maximum(values, limit) ** 2
        reciprocals = np.divide(values, divisor, out=np.zeros_like(values), where=divisor > 0)
        inverse[doubtful] = np.einsum("nji,nj,nkj->nik", right, reciprocals, left)
        damped[doubtful] = (values < limit).any(axis=1) | (values[:, 0] == 0)
    return inverse, damped


def rest_normals(linear: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Unit normals at rest (N, 3) that ``linear`` (N, 3, 3) turns into ``normals`` (N, 3) by its inverse transpose."""
    linear = np.asarray(linear, dtype=np.float64)
    mirrored = np.where(np.linalg.det(linear) < 0, -1.0, 1.0)
    return unit(mirrored[:, None] * np.einsum("nji,nj->ni", linear, normals))
