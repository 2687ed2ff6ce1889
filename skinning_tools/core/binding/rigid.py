# SPDX-License-Identifier: GPL-3.0-or-later
"""RIGID: one bone for each vertex, or for each connected part."""

import numpy as np

from ..progress import Progress, checkpoint, ignore
from .assignment import Request
from .distances import TIE, BoneDistances
from .laplacian import laplacian
from .skeleton import common_ancestors
from .types import Body, Skeleton

_STAGE = "Finding the nearest bones"


def assign(request: Request, progress: Progress = ignore) -> np.ndarray:
    """(W,) the one bone of each place."""
    if request.whole_parts:
        return nearest_bones_of_parts(request.body, request.distances, request.skeleton, progress)
    return nearest_bones(request.distances, request.skeleton, progress)


def nearest_bones(distances: BoneDistances, skeleton: Skeleton, progress: Progress = ignore) -> np.ndarray:
    """(W,) the bone nearest to each place.

    Where several are equally near, their nearest common ancestor; the first of them without one.
    """
    result = np.empty(len(distances.points), dtype=np.int32)
    for rows in distances.blocks():
        checkpoint(progress, rows.start / len(result), _STAGE)
        result[rows] = _nearest(distances.plain(rows), skeleton)
    return result


def nearest_bones_of_parts(body: Body, distances: BoneDistances, skeleton: Skeleton, progress: Progress) -> np.ndarray:
    """(W,) one bone for all places of a connected part: the one to which its surface is nearest on average.

    Ties: as for ``nearest_bones``.
    """
    part, areas = body.place_components, laplacian(body)[1]
    count = int(part.max()) + 1
    totals, sizes = np.zeros((count, len(skeleton))), np.bincount(part, areas, count)
    for rows in distances.blocks():
        checkpoint(progress, rows.start / len(part), _STAGE)
        order = np.argsort(part[rows], kind="stable")
        labels, starts = np.unique(part[rows][order], return_index=True)
        weighted = distances.plain(rows)[order] * areas[rows][order, None]
        totals[labels] += np.add.reduceat(weighted, starts, axis=0)
    return _nearest(totals / sizes[:, None], skeleton)[part]


def _nearest(distances: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    nearest = distances.argmin(axis=1).astype(np.int32)
    tied = distances <= np.take_along_axis(distances, nearest[:, None].astype(int), axis=1) * (1 + TIE)
    several = np.flatnonzero(tied.sum(axis=1) > 1)
    if len(several):
        nearest[several] = common_ancestors(tied[several], skeleton)
    return nearest
