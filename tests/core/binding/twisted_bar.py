# SPDX-License-Identifier: GPL-3.0-or-later
"""A bar that turns at its middle, with bone links or without."""

import numpy as np
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.links import link_matrices, link_shares, link_weights
from skinning_tools.core.deform import skin_frame

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


def ring_areas(points, columns=60, rows=12):
    """Area of each ring of the cuboid, in the plane that it lies in."""
    rings = points[:-2].reshape(columns + 1, 4 * rows, 3)
    following = np.roll(rings, -1, axis=1)
    return np.linalg.norm(np.cross(rings, following).sum(axis=1), axis=1) / 2
