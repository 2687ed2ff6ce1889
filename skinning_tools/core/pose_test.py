# SPDX-License-Identifier: GPL-3.0-or-later
"""What a skin does when one bone turns: where its edges tear.

All bones below the turned one move as it does, so that a vertex is blended of two motions alone, the turn and standing
still, by the share of its weights that is on the turned bones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .bone_order import subtrees
from .deform.influences import weight_matrix
from .geometry import unit

# Shares below this move a vertex by no more than rounding.
_LEAST_SHARE = 1e-6
# Of the median length of an edge.
_LEAST_LENGTH = 0.1


@dataclass(frozen=True)
class Turn:
    """One bone turned: the row of the ``bone``, its own ``axis`` (0, 1 or 2) and the ``angle`` in radians. vertices
    (n,): those that move, with their ``shares`` (n,); points (N, 3): the whole mesh in this pose."""

    bone: int
    axis: int
    angle: float
    vertices: np.ndarray
    shares: np.ndarray
    points: np.ndarray


def shares_below(
    bones: np.ndarray, weights: np.ndarray, parents: np.ndarray, turned: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """For each bone ``turned`` (n,), by default all, the part (N,) of each vertex's weights that is on it and the bones
    below it, from 0 to 1.

    bones, weights (N, K), rows that sum to 1 or 0; parents (P,) int.
    """
    every = weight_matrix(bones, weights, len(parents))
    for below in subtrees(parents)[slice(None) if turned is None else turned]:
        yield np.clip(every @ below, 0.0, 1.0)


def turns(
    rest: np.ndarray, shares: Iterable[np.ndarray], bones: np.ndarray, angle: float, preserve_volume: bool = False
) -> Iterator[Turn]:
    """Each bone turned about each of its axes, both ways; bones that move nothing, or everything alike, are left out.

    rest (N, 3); shares: (N,) for each bone, of ``shares_below``; bones (P, 4, 4): rest matrices in the space of
    ``rest``; preserve_volume: blend dual quaternions instead of matrices. Both are Blender's own blending.
    """
    for bone, (matrix, all_shares) in enumerate(zip(bones, shares, strict=True)):
        vertices = np.flatnonzero(all_shares > _LEAST_SHARE)
        own = all_shares[vertices]
        if not len(vertices) or (len(vertices) == len(rest) and own.min() > 1 - _LEAST_SHARE):
            continue
        for axis in range(3):
            direction = unit(matrix[:3, axis])
            for signed in (angle, -angle):
                points = rest.copy()
                points[vertices] = _turned(rest[vertices], own, matrix[:3, 3], direction, signed, preserve_volume)
                yield Turn(bone, axis, signed, vertices, own, points)


def _turned(
    points: np.ndarray, shares: np.ndarray, head: np.ndarray, axis: np.ndarray, angle: float, preserve_volume: bool
) -> np.ndarray:
    """(n, 3) ``points`` blended of standing still and a turn about ``head`` by ``shares`` (n,)."""
    angles, amount = np.full_like(shares, angle), shares
    if preserve_volume:
        # The blend of a turn and no turn is a smaller turn about the same line.
        angles = 2 * np.arctan2(shares * np.sin(angle / 2), 1 - shares + shares * np.cos(angle / 2))
        amount = np.ones_like(shares)
    offsets = points - head
    along = (offsets @ axis)[:, None] * axis
    across = offsets - along
    turned = np.cos(angles)[:, None] * across + np.sin(angles)[:, None] * np.cross(axis, across)
    return points + amount[:, None] * (turned - across)


def stretches(points: np.ndarray, edges: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(E,) how many times as long as its rest length of ``lengths`` (E,) each edge is.

    Edges far shorter than most count as somewhat longer: what they add to theirs hardly shows.
    """
    now = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    least = _LEAST_LENGTH * np.median(lengths[lengths > 0]) if lengths.any() else 1.0
    return 1.0 + (now - lengths) / np.maximum(lengths, least)
