# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be added to the rest pose so that linear blending gives the right shape (EigenSkin, section 2.2)."""

from dataclasses import dataclass

import numpy as np

from ..deform import vertex_transforms
from ..deform.surface import unit
from ..progress import Progress, checkpoint, ignore

# Of the largest singular value of a vertex's blended matrix: below this the inverse is damped, as it would blow up the
# smallest error of a target into a spike of the rest pose.
DAMPED_BELOW = 0.1


@dataclass(frozen=True, eq=False)
class RestDisplacements:
    """values (E, N, 3) float32, in rest space; linear (E, N, 3, 3) float32, what takes them to the pose; damped
    (E, N) bool: where the blended matrix is near singular, so that the target is met in part only."""

    values: np.ndarray
    linear: np.ndarray
    damped: np.ndarray


def rest_displacements(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    shapes: np.ndarray,
    progress: Progress = ignore,
) -> RestDisplacements:
    """Displacements of the rest pose by which linear blending yields ``shapes`` (EigenSkin, section 2.2).

    rest (N, 3), bones and weights (N, K), matrices (E, P, 3, 4) from rest pose to pose, shapes (E, N, 3).
    Raises Cancelled.
    """
    count = len(rest)
    values = np.empty((len(shapes), count, 3), np.float32)
    linear = np.empty((len(shapes), count, 3, 3), np.float32)
    damped = np.zeros((len(shapes), count), bool)
    for index, shape in enumerate(shapes):
        transforms = vertex_transforms(rest, bones, weights, matrices[index])
        blended = transforms[..., :3]
        offsets = shape - (np.einsum("nij,nj->ni", blended, rest) + transforms[..., 3])
        inverse, damped[index] = damped_inverse(blended)
        values[index] = np.einsum("nij,nj->ni", inverse, offsets)
        linear[index] = blended
        checkpoint(progress, (index + 1) / len(shapes), "Mapping Examples to the Rest Pose")
    return RestDisplacements(values, linear, damped)


def damped_inverse(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverses (N, 3, 3) of ``linear`` (N, 3, 3), and where they are damped (N,) bool.

    A singular value s below DAMPED_BELOW of the largest one, d, counts as s / (s² + d² (1 − s²/d²)) instead of 1 / s:
    no jump where damping begins, nothing along a direction that the blend loses altogether.
    """
    linear = np.asarray(linear, dtype=np.float64)
    columns = np.moveaxis(linear, -1, 0)
    cofactors = np.stack(
        [np.cross(columns[1], columns[2]), np.cross(columns[2], columns[0]), np.cross(columns[0], columns[1])], axis=1
    )
    determinant = np.einsum("ni,ni->n", columns[0], cofactors[:, 0])
    size = np.linalg.norm(linear, axis=(1, 2))
    # The ratio of the extreme singular values is at least this quotient, so that few vertices need them computed.
    doubtful = np.abs(determinant) <= DAMPED_BELOW * size**3
    inverse = cofactors / np.where(doubtful, 1.0, determinant)[:, None, None]
    damped = np.zeros(len(linear), bool)
    if doubtful.any():
        left, values, right = np.linalg.svd(linear[doubtful])
        limit = DAMPED_BELOW * values[:, :1]
        small = values < limit
        damping = np.where(small, limit**2 - values**2, 0.0)
        denominator = values**2 + damping
        reciprocals = np.divide(values, denominator, out=np.zeros_like(values), where=denominator > 0)
        inverse[doubtful] = np.einsum("nji,nj,nkj->nik", right, reciprocals, left)
        damped[doubtful] = small.any(axis=1)
    return inverse, damped


def rest_normals(linear: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Unit normals at rest (N, 3) that ``linear`` (N, 3, 3) turns into ``normals`` (N, 3) by its inverse transpose."""
    linear = np.asarray(linear, dtype=np.float64)
    mirrored = np.where(np.linalg.det(linear) < 0, -1.0, 1.0)
    return unit(mirrored[:, None] * np.einsum("nji,nj->ni", linear, normals))
