# SPDX-License-Identifier: GPL-3.0-or-later
"""A bar that turns at its middle, with bone links or without."""

import numpy as np
from scipy.spatial.transform import Rotation

from skinning_tools.core import quaternions
from skinning_tools.core.binding.links import (
    link_matrices,
    link_shares,
    link_weights,
    shared_rotations,
    swing_and_twist,
)
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.rotations import polar_decomposition

from ..skinned_shapes import about, chain_weights, cuboid

JOINT = np.array([3.0, 0.0, 0.0])
X = np.array([1.0, 0.0, 0.0])


def twisted(count, reach=1.0, spread=0.0, degrees=180.0, axis="x", across=0.0):
    """The cuboid, turned at x = 3 with ``count`` links, ``across`` along y from the joint: positions, and bones and
    weights that have them."""
    rest, triangles = cuboid()
    bones, weights = chain_weights(rest[:, 0], [3.0], reach=reach)
    matrices = np.stack([np.eye(3, 4), about(Rotation.from_euler(axis, degrees, degrees=True).as_matrix(), JOINT)])
    if count:
        place = JOINT + np.array([0, across, 0])
        chain = [0, *range(2, 2 + count), 1]
        bones, weights = link_weights(rest, bones, weights, chain, joint=JOINT, direction=X, reach=spread)
        matrices = np.concatenate([matrices, link_matrices(*matrices, place, link_shares(count))])
    return rest, triangles, skin_frame(rest, bones, weights, matrices), bones, weights


def twist_matrices(bone, end, joint, axis, shares):
    """(n, 3, 4) matrices of twist links from those of a ``bone`` (a forearm) and of the bone at its ``end`` (the hand),
    each (3, 4): the bone's, turned about its ``axis`` by ``shares`` (n,) of the end's twist. joint: on the axis."""
    turns = [polar_decomposition(each[:, :3])[0] for each in (bone, end)]
    relative = quaternions.from_matrices(turns[0].T @ turns[1])
    linear = bone[:, :3] @ quaternions.to_matrices(shared_rotations(swing_and_twist(relative, axis)[1], shares))
    place = bone[:, :3] @ joint + bone[:, 3] - linear @ joint
    return np.concatenate([linear, place[..., None]], axis=-1)


def ring_areas(points, columns=60, rows=12):
    """Area of each ring of the cuboid, in the plane that it lies in."""
    rings = points[:-2].reshape(columns + 1, 4 * rows, 3)
    following = np.roll(rings, -1, axis=1)
    return np.linalg.norm(np.cross(rings, following).sum(axis=1), axis=1) / 2
