# SPDX-License-Identifier: GPL-3.0-or-later
"""POINT_TO_LINE: bones are line segments, and planes at their joints divide what is near both (Sun et al. 1999)."""

import numpy as np

from ..progress import Progress, ignore
from ..smooth_step import smooth_step
from .assignment import Assignment, Request, assigned, nearly_best
from .types import Skeleton

# Bones up to this share farther than the nearest one take part: enough that planes, not distances, divide a limb.
_MARGIN = 0.5

# The blend between two bones takes this many radii of the limb to either side of a plane.
_HALF_WIDTH = 1.0

# A child is joined to its parent if its head is within this share of the parent's length from the parent's tail.
_JOINED = 0.1

# The least length of the sum of the two directions: a child folded back beside its parent has no dividing plane.
_FOLDED = 0.2


def assign(request: Request, progress: Progress = ignore) -> Assignment:
    """Shares by distance to the segments, divided at the joints."""
    skeleton, distances, limits = request.skeleton, request.distances, request.limits
    children, normals = joint_planes(skeleton)
    parents, joints = skeleton.parents[children], skeleton.heads[children] - distances.middle

    def block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        scores = limits.applied(rows, distances.facing(rows))
        nearest = scores.min(axis=1)
        by_distance = nearly_best(scores, _MARGIN)
        shares = by_distance.copy()
        points = distances.points[rows]
        for child, parent, joint, normal in zip(children, parents, joints, normals, strict=True):
            beyond = smooth_step(0.5 + 0.5 * (points - joint) @ normal / (_HALF_WIDTH * nearest))
            shares[:, child] *= beyond
            shares[:, parent] *= 1 - beyond
        # Where planes leave nothing to any bone, distances decide.
        return shares + 1e-3 * by_distance, nearest

    return assigned(distances, block, progress, "Dividing space at the joints")


def joint_planes(skeleton: Skeleton) -> tuple[np.ndarray, np.ndarray]:
    """The bones (J,) that hang on their parents' tails, and unit normals (J, 3) of the planes through their heads.

    A plane halves the angle between the two; its normal points into the child. A bone without length takes the
    direction of the other.
    """
    lengths = skeleton.lengths[:, None]
    directions = np.divide(skeleton.axes, lengths, out=np.zeros((len(skeleton), 3)), where=lengths > 0)
    children = np.flatnonzero(skeleton.parents >= 0)
    parents = skeleton.parents[children]
    gaps = np.linalg.norm(skeleton.heads[children] - skeleton.tails[parents], axis=1)
    hanging = gaps <= _JOINED * skeleton.lengths[parents]
    normals = directions[children] + directions[parents]
    sizes = np.linalg.norm(normals, axis=1)
    kept = hanging & (sizes > _FOLDED)
    return children[kept], normals[kept] / sizes[kept, None]
