# SPDX-License-Identifier: GPL-3.0-or-later
"""A joint's rotations as a space with distances, and the radial basis over it (EigenSkin, section 2.4)."""

from dataclasses import dataclass

import numpy as np

from .. import quaternions

REST = np.array([1.0, 0.0, 0.0, 0.0])

# Radians. Rotations nearer to each other than this are one observation; a joint that turned less has not moved.
SAME_ROTATION = np.radians(0.25)

# Radians: what rounding leaves of the middle of angles that are as far to both sides.
_ROUNDING = 1e-9

# Radians that the rotations of a hinge may stray from its axis.
_HINGE_TOLERANCE = np.radians(0.1)


@dataclass(frozen=True, eq=False)
class PoseSpace:
    """centers (M, 4): unit quaternions of a joint's observed rotations, the first of which is the rest pose.

    axis: (3,) of a hinge, which compares the joint's angles about it; None for joints that compare rotations as a
    whole. radius: r₀ of the basis exp(−r / r₀), radians.
    """

    centers: np.ndarray
    axis: np.ndarray | None
    radius: float

    def distances(self, rotations: np.ndarray) -> np.ndarray:
        """(F, M) radians from each of ``rotations`` (F, 4) to each center."""
        return rotation_distances(rotations, self.centers, self.axis)

    def features(self, rotations: np.ndarray) -> np.ndarray:
        """(F, M) the basis at ``rotations`` (F, 4)."""
        return np.exp(-self.distances(rotations) / self.radius)

    def tied_features(self, rotations: np.ndarray) -> np.ndarray:
        """(F, M − 1) as ``features``, but zero at rest: each center's but that of the rest pose, less the share of the
        rest pose in it. At the centers themselves they are the covariance of a function known to be zero at rest."""
        features = self.features(rotations)
        return features[:, 1:] - features[:, :1] * self.features(self.centers[:1])[:, 1:]


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
    return rotation_angles(relative)


def rotation_angles(rotations: np.ndarray) -> np.ndarray:
    """(...) radians from 0 to π of ``rotations`` (..., 4); exact for small angles too."""
    return 2 * np.arctan2(np.linalg.norm(rotations[..., 1:], axis=-1), np.abs(rotations[..., 0]))


def is_turned(rotations: np.ndarray) -> np.ndarray:
    """(…) bool: which of ``rotations`` (…, 4) are not the rest pose."""
    return rotation_angles(rotations) > SAME_ROTATION


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
    """The axis (3,) that all ``rotations`` (M, 4) turn about; None where they have no common one."""
    real = rotations[:, :1]
    vectors = np.where(real < 0, -rotations[:, 1:], rotations[:, 1:])
    _, _, directions = np.linalg.svd(vectors, full_matrices=False)
    axis = directions[0]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    strayed = 2 * np.linalg.norm(vectors - np.outer(vectors @ axis, axis), axis=1)
    return axis if strayed.max() <= _HINGE_TOLERANCE else None
