# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton of joints, poses made for it at random, and how far each joint may turn."""

from dataclasses import dataclass

import numpy as np

from ..bone_order import parents_first
from ..errors import BadSettings
from ..quaternions import product, to_matrices

# Without any limits, a joint turns by this angle for each time that its part is longer than thick, within bounds; and
# about its own axis by half of that. In radians.
_TURN, _LEAST_TURN, _MOST_TURN = np.radians(30.0), np.radians(20.0), np.radians(75.0)
_TWIST_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Skeleton:
    """parents (P,) int: −1 for none. rest (P, 4, 4): bones at rest; a bone turns about its origin, and points along its
    Y axis."""

    parents: np.ndarray
    rest: np.ndarray

    def __len__(self) -> int:
        return len(self.parents)

    def neighbors(self, bone: int, steps: int) -> list[int]:
        """The bones that have a joint and are at most so many parents and children away, itself first."""
        found, edge = [bone], [bone]
        for _ in range(steps):
            near = [*self.parents[edge].tolist(), *np.flatnonzero(np.isin(self.parents, edge)).tolist()]
            edge = [other for other in dict.fromkeys(near) if other >= 0 and other not in found]
            found += edge
        return [other for other in found if self.parents[other] >= 0]


@dataclass(frozen=True, eq=False)
class Ranges:
    """How far each joint turns, in radians about the bone's own axes: low and high (P, 3). euler (P,) bool: the angles
    are those of an XYZ Euler rotation, as limits have them, instead of the parts of a rotation vector."""

    low: np.ndarray
    high: np.ndarray
    euler: np.ndarray


def usual_ranges(skeleton: Skeleton, points: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> Ranges:
    """Ranges for joints without limits: a part that is long for its thickness turns farther.

    points (N, 3), bones and weights (N, K): the skin. Bones without vertices get the least range.
    """
    count = len(skeleton)
    origins, axes = skeleton.rest[:, :3, 3], skeleton.rest[:, :3, 1]
    mass, reach, girth = np.zeros(count), np.zeros(count), np.zeros(count)
    for slot in range(bones.shape[1]):
        bone, weight = bones[:, slot], weights[:, slot]
        offset = points - origins[bone]
        squared = np.einsum("ni,ni->n", offset, offset)
        along = np.einsum("ni,ni->n", offset, axes[bone])
        mass += np.bincount(bone, weight, count)
        reach += np.bincount(bone, weight * squared, count)
        girth += np.bincount(bone, weight * np.maximum(squared - along**2, 0.0), count)
    thick = np.sqrt(np.where(girth > 0, reach / np.where(girth > 0, girth, 1.0), 0.0))
    turn = np.clip(_TURN * thick, _LEAST_TURN, _MOST_TURN)[:, None] * np.array([1.0, _TWIST_SHARE, 1.0])
    return Ranges(-turn, turn, np.zeros(count, bool))


def random_turns(ranges: Ranges, rng: np.random.Generator) -> np.ndarray:
    """(P, 4) quaternions: every joint somewhere in its range, more often far from rest than near it."""
    count = len(ranges.low)
    direction = rng.normal(size=(count, 3))
    direction *= np.sqrt(rng.random((count, 1))) / np.linalg.norm(direction, axis=1, keepdims=True)
    shares = rng.random((count, 3))
    around = np.where(direction > 0, direction * ranges.high, -direction * ranges.low)
    aside = (ranges.low > 0).any(axis=1) | (ranges.high < 0).any(axis=1)
    angles = np.where(aside[:, None], ranges.low + shares * (ranges.high - ranges.low), around)
    return np.where(ranges.euler[:, None], _of_euler(angles), of_vectors(angles))


def of_vectors(vectors: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) of rotation vectors (..., 3)."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * vectors], axis=-1)


def to_vectors(quaternions: np.ndarray) -> np.ndarray:
    """Rotation vectors (..., 3), of at most half a turn, of quaternions (..., 4)."""
    turned = quaternions * np.where(quaternions[..., :1] < 0, -1.0, 1.0)
    sine = np.linalg.norm(turned[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, turned[..., :1])
    return turned[..., 1:] * np.where(sine > 1e-12, angle / np.where(sine > 1e-12, sine, 1.0), 2.0)


def _of_euler(angles: np.ndarray) -> np.ndarray:
    x, y, z = (of_vectors(angles[:, [axis]] * np.eye(3)[axis]) for axis in range(3))
    return product(z, product(y, x))


def scaled(quaternions: np.ndarray, share: float) -> np.ndarray:
    """The same turns by a ``share`` of their angles."""
    return of_vectors(share * to_vectors(quaternions))


def posed(skeleton: Skeleton, quaternions: np.ndarray) -> np.ndarray:
    """(F, P, 3, 4) motion from rest to pose, in the space of ``skeleton.rest``, for the bones' turns (F, P, 4) against
    their parents, each about its own axes."""
    if quaternions.shape[1] != len(skeleton):
        raise BadSettings(f"There are turns of {quaternions.shape[1]} bones for a skeleton of {len(skeleton)}")
    basis = np.tile(np.eye(4), (*quaternions.shape[:2], 1, 1))
    basis[..., :3, :3] = to_matrices(quaternions)
    own = skeleton.rest @ basis @ np.linalg.inv(skeleton.rest)
    motion = own.copy()
    for bone in parents_first(skeleton.parents):
        if skeleton.parents[bone] >= 0:
            motion[:, bone] = motion[:, skeleton.parents[bone]] @ own[:, bone]
    return np.ascontiguousarray(motion[..., :3, :])
