# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton of joints, poses made for it at random, and how far each joint may turn."""

from dataclasses import dataclass

import numpy as np

from ..bone_order import parents_first
from ..errors import BadSettings
from ..geometry import diagonal
from ..quaternions import from_matrices, product, to_matrices
from ..rotations import polar_decomposition

# Without any limits, a joint turns by this angle for each time that its branch is longer than thick, less if the branch
# is small for the mesh's diagonal, within bounds; and about its own axis by half of that. In radians.
_TURN, _LEAST_TURN, _MOST_TURN = np.radians(15.0), np.radians(15.0), np.radians(80.0)
_LARGE = 0.2
# Of two joints in a row, the second moves nearly the same branch if that has at least this share of the vertices.
_SAME_BRANCH = 0.7
_TWIST_SHARE = 0.5
# The share of joints that use all of their range in a pose, and the part of theirs that the others use.
_WIDE_SHARE, _NARROW = 1.0, 0.25


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

    def joints_between(self, first: int, second: int) -> list[int]:
        """The joints that move two bones against each other."""
        chains = []
        for bone in (first, second):
            chains.append([bone])
            while self.parents[chains[-1][-1]] >= 0:
                chains[-1].append(int(self.parents[chains[-1][-1]]))
        common = set(chains[0]) & set(chains[1])
        return [bone for bone in chains[0] + chains[1] if bone not in common]


@dataclass(frozen=True, eq=False)
class Ranges:
    """How far each joint turns, in radians about the bone's own axes: low and high (P, 3). euler (P,) bool: the angles
    are those of an XYZ Euler rotation, as limits have them, instead of the parts of a rotation vector."""

    low: np.ndarray
    high: np.ndarray
    euler: np.ndarray


def usual_ranges(skeleton: Skeleton, points: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> Ranges:
    """Ranges for joints without limits. A joint turns far if the branch that it moves is long and thin, as limbs are,
    and little if that is thick, as at the spine, or small for the mesh, as in a face.

    points (N, 3), bones and weights (N, K): the skin. Branches without vertices get the least range.
    """
    count, homogeneous = len(skeleton), np.hstack([points, np.ones((len(points), 1))])
    moments = np.zeros((count, 4, 4))
    for slot in range(bones.shape[1]):
        weighted = homogeneous * weights[:, slot, None]
        for i in range(4):
            for j in range(4):
                moments[:, i, j] += np.bincount(bones[:, slot], weighted[:, i] * homogeneous[:, j], count)
    for bone in reversed(parents_first(skeleton.parents)):
        if skeleton.parents[bone] >= 0:
            moments[skeleton.parents[bone]] += moments[bone]
    mass = np.where(moments[:, 3, 3] > 0, moments[:, 3, 3], 1.0)
    middle = moments[:, 3, :3] / mass[:, None]
    variances = np.linalg.eigvalsh(moments[:, :3, :3] / mass[:, None, None] - middle[:, :, None] * middle[:, None])
    # A rod of the same variance. Around its middle: a branch far from its joint, as an eye, is not long for that.
    length = np.sqrt(12.0 * np.maximum(variances[:, 2], 0.0))
    girth = np.sqrt(np.maximum(variances[:, 0] + variances[:, 1], 1e-6 * np.maximum(variances[:, 2], 1e-300)))
    size = length / (diagonal(points) or 1.0)
    turn = _TURN * length / girth * np.minimum(size / _LARGE, 1.0)
    turn = np.clip(turn / np.sqrt(_in_series(skeleton, moments[:, 3, 3])), _LEAST_TURN, _MOST_TURN)
    turn = turn[:, None] * np.array([1.0, _TWIST_SHARE, 1.0])
    return Ranges(-turn, turn, np.zeros(count, bool))


def _in_series(skeleton: Skeleton, mass: np.ndarray) -> np.ndarray:
    """(P,): how many joints move nearly the same branch as each, itself included: they share its turn."""
    first = np.arange(len(skeleton))
    for bone in parents_first(skeleton.parents):
        above = skeleton.parents[bone]
        if above >= 0 and mass[bone] > _SAME_BRANCH * mass[above]:
            first[bone] = first[above]
    return np.bincount(first, minlength=len(first))[first]


def random_turns(ranges: Ranges, rng: np.random.Generator) -> np.ndarray:
    """(P, 4) quaternions: about a quarter of the joints anywhere in their ranges, more often far from rest than near
    it; the others in a quarter of these, so that no two bones ever move alike."""
    count = len(ranges.low)
    direction = rng.normal(size=(count, 3))
    direction *= np.sqrt(rng.random((count, 1))) / np.linalg.norm(direction, axis=1, keepdims=True)
    shares = rng.random((count, 3))
    around = np.where(direction > 0, direction * ranges.high, -direction * ranges.low)
    around *= np.where(rng.random((count, 1)) < _WIDE_SHARE, 1.0, _NARROW)
    aside: np.ndarray = np.any((ranges.low > 0) | (ranges.high < 0), axis=1)
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


def relative_turns(skeleton: Skeleton, motion: np.ndarray) -> np.ndarray:
    """(F, P, 4) quaternions of the bones against their parents, about their own axes, for motion (F, P, 3, 4)."""
    turns = polar_decomposition(motion[..., :3])[0]
    parents = skeleton.parents
    above = np.where((parents >= 0)[None, :, None, None], turns[:, parents], np.eye(3))
    axes = polar_decomposition(skeleton.rest[:, :3, :3])[0]
    return from_matrices(axes.swapaxes(1, 2) @ above.swapaxes(2, 3) @ turns @ axes)
