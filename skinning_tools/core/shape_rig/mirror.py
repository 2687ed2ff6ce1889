# SPDX-License-Identifier: GPL-3.0-or-later
"""Faces whose left and right mirror each other in x, at rest and in their sliders: what mirrors what.

Places and moves mirror as vectors do; a turn, which is along an axis, mirrors with the opposite sign.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

POLAR = np.array([-1.0, 1.0, 1.0])
_AXIAL = -POLAR
# Signs of a bone's motion [R − I | t], row after row.
_MOTION = np.outer(POLAR, [*POLAR, 1.0]).ravel()
# Of the face's diagonal, how far mirrored vertices may be from each other; the share of vertices with such a partner;
# and of a slider, the share of its motion by which its mirror image may differ.
VERTEX_TOLERANCE, SYMMETRIC = 0.005, 0.9
_SLIDER_TOLERANCE = 0.1
_ROUNDS = 4
# The x of a bone's direction beyond which it points to the side: then its z axis has less than this.
_SIDEWARD = 0.9


@dataclass(frozen=True)
class Mirror:
    """vertices (N,), sliders (S,), bones (P,): which one mirrors each, itself in the middle. The plane is x = 0.

    middle (N,): which vertices are in it. Vertices without a partner have themselves, and are not in the middle.
    solved (n,): the vertices of the left, those in the middle and those without a partner; all others follow.
    """

    vertices: np.ndarray
    middle: np.ndarray
    solved: np.ndarray
    sliders: np.ndarray
    bones: np.ndarray

    def with_bones(self, bones: np.ndarray) -> "Mirror":
        return replace(self, bones=bones)

    @property
    def shares(self) -> np.ndarray:
        """(n,) by which ``solved`` vertices count, so that they and their mirror images are the whole face."""
        return np.where(self.vertices[self.solved] == self.solved, 0.5, 1.0)

    def motions(self, turns: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mirror images of turns and moves (S, P, 3)."""
        return _AXIAL * turns[self.sliders][:, self.bones], POLAR * moves[self.sliders][:, self.bones]

    def pivots(self, pivots: np.ndarray) -> np.ndarray:
        """Pivots (P, 3), made the mirror images of each other."""
        return 0.5 * (pivots + POLAR * pivots[self.bones])

    @property
    def alone(self) -> np.ndarray:
        """(N,) bool: the vertices without a partner that are not in the middle."""
        return (self.vertices == np.arange(len(self.vertices))) & ~self.middle

    def points(self, points: np.ndarray) -> np.ndarray:
        """Points (N, 3), made the mirror images of each other."""
        return np.where(self.alone[:, None], points, 0.5 * (points + points[self.vertices] * POLAR))

    def shapes(self, deltas: np.ndarray) -> np.ndarray:
        """Shapes (S, N, 3), made the mirror images of each other."""
        images = deltas[self.sliders][:, self.vertices] * POLAR.astype(deltas.dtype)
        return np.where(self.alone[:, None], deltas, 0.5 * (deltas + images))

    def follow(self, rows: np.ndarray, bones: np.ndarray, weights: np.ndarray, errors: np.ndarray | None) -> None:
        """Give the mirror images of vertices ``rows`` (n,) their mirrored bones and weights (N, K) and errors
        (N, 3, S)."""
        rows = rows[self.vertices[rows] != rows]
        images = self.vertices[rows]
        bones[images], weights[images] = self.bones[bones[rows]], weights[rows]
        if errors is not None:
            errors[images] = errors[rows][:, :, self.sliders] * POLAR[:, None]

    def balanced(self, weights: np.ndarray, influences: int) -> np.ndarray:
        """Weights (n, P) of vertices in the middle, the same on both sides, of at most ``influences`` bones.

        A vertex stays as it is where one bone is too few for both sides.
        """
        even = 0.5 * (weights + weights[:, self.bones])
        first = np.flatnonzero(self.bones >= np.arange(len(self.bones)))
        sizes = np.where(self.bones[first] == first, 1, 2)
        order = np.argsort(-even[:, first], axis=1, kind="stable")
        room, everyone = np.full(len(weights), influences), np.arange(len(weights))
        kept = np.zeros(even.shape, bool)
        for chosen in order.T:
            taken = (sizes[chosen] <= room) & (even[everyone, first[chosen]] > 0)
            room = room - np.where(taken, sizes[chosen], 0)
            kept[everyone[taken], first[chosen[taken]]] = True
        kept |= kept[:, self.bones]
        even = np.where(kept, even, 0.0)
        total = even.sum(axis=1, keepdims=True)
        return np.where(total > 0, even / np.where(total > 0, total, 1.0), weights)

    def equations(
        self, normal: np.ndarray, right: np.ndarray, spread: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the whole face, from those of ``solved`` vertices: normal (12P, 12P), right (S, 12P), spread (P,)."""
        order = (12 * self.bones[:, None] + np.arange(12)).ravel()
        signs = np.tile(_MOTION, len(self.bones))
        normal = normal + signs[:, None] * normal[np.ix_(order, order)] * signs
        return normal, right + right[np.ix_(self.sliders, order)] * signs, spread + spread[self.bones]

    def neighbors(self, pairs: sparse.csr_matrix) -> sparse.csr_matrix:
        """``pairs`` (N, N) of vertices that count together, and those of which one counts with the other's image."""
        both = (pairs + pairs[:, self.vertices]).tocsr()
        both.setdiag(0)
        both.eliminate_zeros()
        return both


def find_mirror(rest: np.ndarray, deltas: np.ndarray) -> tuple[Mirror, float] | None:
    """The mirror of a face with vertices (N, 3) and sliders (S, N, 3), and where its plane is in x; None if there is
    none, in the vertices or in the sliders. There are no bones yet."""
    found = _mirrored_vertices(rest, deltas)
    if found is None:
        return None
    vertices, near, centered, plane = found
    sliders = _mirrored_sliders(deltas[:, near], deltas[:, vertices[near]])
    if np.any(sliders < 0):
        return None
    own = vertices == np.arange(len(rest))
    solved = np.flatnonzero(own | (centered[:, 0] > centered[vertices, 0]))
    return Mirror(vertices, own & near, solved, sliders, np.empty(0, np.intp)), plane


def unpaired_sliders(rest: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Of a face with vertices (N, 3) and sliders (S, N, 3), the sliders (n,) of which none is the mirror image in x, so
    that it cannot be solved symmetrically. Empty if its vertices have no mirror images, either."""
    found = _mirrored_vertices(rest, deltas)
    if found is None:
        return np.empty(0, np.intp)
    vertices, near = found[:2]
    return np.flatnonzero(_mirrored_sliders(deltas[:, near], deltas[:, vertices[near]]) < 0)


def _mirrored_vertices(rest: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float] | None:
    """(N,) which vertex mirrors each, itself where none does; (N,) bool, whether one does; the vertices (N, 3) with the
    plane at x = 0, and where that is. None if too few have one."""
    low, high = rest.min(axis=0), rest.max(axis=0)
    plane = 0.5 * float(low[0] + high[0])
    centered = rest - [plane, 0.0, 0.0]
    # Vertices at one place, as of lips that are closed, differ in what the sliders together do.
    paired = _pairs(np.concatenate([centered, deltas.sum(axis=0)], axis=1))
    near = np.linalg.norm(centered[paired] * POLAR - centered, axis=1)
    near = (near <= VERTEX_TOLERANCE * np.linalg.norm(high - low)) & (paired >= 0)
    if np.mean(near) < SYMMETRIC:
        return None
    return np.where(near, paired, np.arange(len(rest))), near, centered, plane


def _pairs(features: np.ndarray) -> np.ndarray:
    """(N,) which of ``features`` (N, 6), two vectors, is nearest the mirror image of each, and the other way round; -1
    where none is."""
    images = features * [*POLAR, *POLAR]
    found, left = np.full(len(features), -1), np.arange(len(features))
    for _ in range(_ROUNDS):
        if not len(left):
            break
        nearest = cKDTree(features[left]).query(images[left])[1]
        mutual = nearest[nearest] == np.arange(len(left))
        found[left[mutual]] = left[nearest[mutual]]
        left = left[~mutual]
    return found


def _mirrored_sliders(deltas: np.ndarray, images: np.ndarray) -> np.ndarray:
    """(S,) which slider is the mirror image of each; -1 where none is."""
    count = len(deltas)
    flat, mirrored = deltas.reshape(count, -1), (images * POLAR.astype(np.float32)).reshape(count, -1)
    squares = np.einsum("sd,sd->s", flat, flat, dtype=np.float64)
    away = squares[:, None] + np.einsum("sd,sd->s", mirrored, mirrored, dtype=np.float64) - 2.0 * (flat @ mirrored.T)
    limit = _SLIDER_TOLERANCE**2 * squares + np.finfo(np.float32).eps * squares.max(initial=0.0)
    found = np.full(count, -1)
    for slider in range(count):
        if found[slider] < 0:
            free = np.where(found < 0, away[slider], np.inf)
            best = slider if free[slider] <= limit[slider] else int(np.argmin(free))
            if free[best] <= limit[slider]:
                found[slider], found[best] = best, slider
    return found


def mirrored_axes(axes: np.ndarray, lengths: np.ndarray, partners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes (P, 3, 3), columns, and lengths (P,) of bones, so that those of ``partners`` (P,) mirror each other.

    As Blender mirrors bones: the x axis of a mirrored bone points the other way, so that all axes are right-handed. A
    bone in the middle points along the plane.
    """
    axes, lengths, everyone = axes.copy(), lengths.copy(), np.arange(len(partners))
    for bone in everyone[partners == everyone]:
        # Of a bone that points to the side, the z axis is in the plane.
        along = axes[bone][:, 1 if abs(axes[bone][0, 1]) < _SIDEWARD else 2] * [0.0, 1.0, 1.0]
        along /= np.linalg.norm(along)
        axes[bone] = np.stack([np.eye(3)[0], along, np.cross(np.eye(3)[0], along)], axis=1)
    second = everyone[partners < everyone]
    axes[second], lengths[second] = POLAR[:, None] * axes[partners[second]] * POLAR, lengths[partners[second]]
    return axes, lengths
