# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning Arbitrary Deformations (Kavan, McDonnell, Dobbyn, Žára & O'Sullivan 2007), with affine bones.

Proxy joints spread evenly over the rest pose (p-centre), each moving like its nearest vertices; weights by non-negative
least squares; then all transforms together for these weights by LSQR (Paige & Saunders 1982).
"""

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition.bone_model import homogeneous
from skinning_tools.core.decomposition.segmentation import farthest_points, surface_neighbors
from skinning_tools.core.decomposition.transforms import from_rows, to_rows

from .approximations import Skinned, best_bones_and_weights, region_transforms, trajectories

_TOLERANCE = 1e-8


def approximate(animation: Animation, bone_count: int, *, from_rings: bool = False) -> Skinned:
    """from_rings: bones start from the vertices around their joint, not from all that are nearest to it."""
    data, rest = trajectories(animation), animation.frames[0].astype(float)
    joints = farthest_points(rest, bone_count)
    if from_rings:
        neighbors = surface_neighbors(animation.triangles, len(rest))
        regions = [np.append(neighbors[joint].indices, joint) for joint in joints]
    else:
        labels = cells(rest, joints)
        regions = [np.nonzero(labels == bone)[0] for bone in range(bone_count)]
    transforms = region_transforms(rest, data, regions)
    bones, weights = best_bones_and_weights(rest, data, transforms)
    return Skinned(rest, bones, weights, fitted_transforms(rest, data, bones, weights, transforms))


def cells(points: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """(N,) the nearest of the ``chosen`` points (P,) for each of ``points`` (N, 3)."""
    return scipy.spatial.cKDTree(points[chosen]).query(points)[1]


def fitted_transforms(rest, data, bones, weights, transforms) -> np.ndarray:
    """(F, P, 3, 4) closest to ``data`` (N, 3F), by LSQR from given ``transforms``, one coordinate after the other."""
    columns = (4 * bones[:, :, None] + np.arange(4)).reshape(len(rest), -1)
    values = (weights[:, :, None] * homogeneous(rest)[:, None]).reshape(len(rest), -1)
    starts = np.arange(0, values.size + 1, values.shape[1])
    rows = to_rows(transforms)
    design = scipy.sparse.csr_matrix((values.ravel(), columns.ravel(), starts), shape=(len(rest), len(rows)))
    for column in range(data.shape[1]):
        start = rows[:, column]
        rows[:, column] = scipy.sparse.linalg.lsqr(design, data[:, column], _TOLERANCE, _TOLERANCE, x0=start)[0]
    return from_rows(rows)
