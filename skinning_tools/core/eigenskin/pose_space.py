# SPDX-License-Identifier: GPL-3.0-or-later
"""A joint's rotations as a space with distances, and the functions over it (EigenSkin, section 2.4)."""

from dataclasses import dataclass

import numpy as np

from .. import quaternions
from .interpolation import QUADRATIC, RADIUS, RIDGE, radial

REST = np.array([1.0, 0.0, 0.0, 0.0])

# Radians. Rotations closer than this are one observation; a joint that turned less has not moved.
SAME_ROTATION = np.radians(0.25)

# Radians: the rounding error of the middle of angles that reach equally far to both sides.
_ROUNDING = 1e-9

# Radians by which the rotations of a hinge may deviate from its axis.
_HINGE_TOLERANCE = np.radians(0.1)

# As a share of the largest extent: directions in which the rotations reach less far do not count.
_FLAT = 1e-3


@dataclass(frozen=True, eq=False)
class PoseSpace:
    """centers (M, 4): unit quaternions of a joint's observed rotations, the first of which is the rest pose.

    axis: (3,) of a hinge, which compares the joint's angles about it; None for joints that compare rotations as a
    whole. radius: of the functions' radial part.
    """

    centers: np.ndarray
    axis: np.ndarray | None
    radius: float = RADIUS

    def distances(self, rotations: np.ndarray) -> np.ndarray:
        """(F, M) radians from each of ``rotations`` (F, 4) to each center."""
        return rotation_distances(rotations, self.centers, self.axis)

    def features(self, rotations: np.ndarray) -> np.ndarray:
        """(F, M) the covariance of a function at ``rotations`` (F, 4) and at each center, before it is known to be zero
        at rest."""
        if self.axis is None:
            quadratic = (rotations @ self.centers.T) ** 2
            spreads = 2 * np.sqrt(np.maximum(1 - quadratic, 0.0))
        else:
            spreads = self.distances(rotations)
            quadratic = np.cos(0.5 * spreads) ** 2
        share, other = self.shares
        return share * radial(spreads, self.radius) + other * quadratic

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the radial and of the quadratic part in ``features``."""
        return 1 - QUADRATIC, QUADRATIC

    def tied_features(self, rotations: np.ndarray) -> np.ndarray:
        """(F, M − 1) ``features`` of all centers but the rest pose, minus the share of the rest pose in each, so that
        they are zero at rest: the covariance of a function known to be zero there."""
        features = self.features(rotations)
        return features[:, 1:] - features[:, :1] * self._rest_features

    def covariance(self) -> np.ndarray:
        """(M − 1, M − 1) of what examples say at all centers but the rest pose."""
        return self.tied_features(self.centers[1:]) + RIDGE * np.eye(len(self.centers) - 1)

    def variance(self, rotations: np.ndarray) -> np.ndarray:
        """(F,) from 0 to 1, of a function at ``rotations`` (F, 4), known at all centers."""
        # A function's variance is 1 before it is known to be zero at rest.
        before = 1 - self.features(rotations)[:, 0] ** 2
        known = self.tied_features(rotations)
        return before - np.einsum("fm,mf->f", known, np.linalg.solve(self.covariance(), known.T))

    def weights(self, values: np.ndarray) -> np.ndarray:
        """(M, …) factors on ``features`` of the function that has ``values`` (M − 1, …) at all centers but the rest
        pose, and is zero at rest."""
        flat = np.linalg.solve(self.covariance(), values.reshape(len(values), -1))
        return np.concatenate([-self._rest_features @ flat, flat]).reshape(-1, *values.shape[1:])

    def samples(self, count: int, beyond: float = 0.0, seed: int = 0) -> np.ndarray:
        """(count, 4) rotations all over the range of the centers, and beyond it by this share of its half width."""
        random = np.random.default_rng(seed)
        if self.axis is not None:
            angles = hinge_angles(self.centers, self.axis)
            more = beyond * 0.5 * np.ptp(angles)
            half = 0.5 * np.linspace(angles.min() - more, angles.max() + more, count)
            return random.permutation(np.column_stack([np.cos(half), np.sin(half)[:, None] * self.axis]))
        shares = random.dirichlet(np.ones(3), count)
        shares += beyond * (shares - 1 / 3)
        centers = np.where(self.centers[:, :1] < 0, -self.centers, self.centers)
        chosen = centers[random.integers(len(centers), size=(count, 3))]
        return quaternions.normalized(np.einsum("sc,scq->sq", shares, chosen))

    @property
    def dimension(self) -> int:
        """The dimension of the rotations: 1 for a hinge, 3 for a ball."""
        if self.axis is not None:
            return 1
        sizes = np.linalg.svd(self.centers[:, 1:], compute_uv=False)
        return int(np.count_nonzero(sizes > _FLAT * sizes[0]))

    @property
    def natural_count(self) -> int:
        """How many components the joint's corrections need: one for each quadratic function, and one for the rest."""
        return self.dimension * (self.dimension + 3) // 2 + 1

    @property
    def _rest_features(self) -> np.ndarray:
        """(1, M − 1) ``features`` of all centers but the rest pose, at rest."""
        return self.features(self.centers[:1])[:, 1:]


def rotation_distances(rotations: np.ndarray, centers: np.ndarray, axis: np.ndarray | None = None) -> np.ndarray:
    """(F, M) radians between ``rotations`` (F, 4) and ``centers`` (M, 4), both unit quaternions.

    About an axis the difference of the angles of a hinge, which does not go the other way round: 100° one way and 100°
    the other are 200° apart. Else the angle of the rotation from one to the other.
    """
    if axis is not None:
        angles = hinge_angles(rotations, axis, hinge_middle(centers, axis))
        return np.abs(angles[:, None] - hinge_angles(centers, axis))
    relative = quaternions.product(
        quaternions.conjugate(np.asarray(centers, dtype=np.float64))[None],
        np.asarray(rotations, dtype=np.float64)[:, None],
    )
    return quaternions.rotation_angles(relative)


def is_turned(rotations: np.ndarray) -> np.ndarray:
    """(…) bool: which of ``rotations`` (…, 4) are not the rest pose."""
    return quaternions.rotation_angles(rotations) > SAME_ROTATION


def hinge_angles(rotations: np.ndarray, axis: np.ndarray, middle: float = 0.0) -> np.ndarray:
    """(F,) radians, up to half a turn from ``middle``, that ``rotations`` (F, 4) turn about ``axis`` (3,): the twist
    about it."""
    real = rotations[..., 0]
    along = rotations[..., 1:] @ axis
    angles = 2 * np.arctan2(np.where(real < 0, -along, along), np.abs(real))
    return angles if middle == 0 else (angles - middle + np.pi) % (2 * np.pi) + middle - np.pi


def hinge_middle(centers: np.ndarray, axis: np.ndarray) -> float:
    """The middle, radians, of the angles of ``centers`` (M, 4): half a turn from it, where the angle of a hinge jumps
    from its one end to the other, it is farthest from them all."""
    angles = hinge_angles(centers, axis)
    middle = 0.5 * float(angles.min() + angles.max())
    return middle if abs(middle) > _ROUNDING else 0.0


def hinge_axis(rotations: np.ndarray) -> np.ndarray | None:
    """The axis (3,) that all ``rotations`` (M, 4) turn about; None without a common axis."""
    real = rotations[:, :1]
    vectors = np.where(real < 0, -rotations[:, 1:], rotations[:, 1:])
    _, _, directions = np.linalg.svd(vectors, full_matrices=False)
    axis = directions[0]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    strayed = 2 * np.linalg.norm(vectors - np.outer(vectors @ axis, axis), axis=1)
    return axis if strayed.max() <= _HINGE_TOLERANCE else None
