# SPDX-License-Identifier: GPL-3.0-or-later
"""AUTOMATIC: the topological neighbors that DELAUNAY finds, and the bones that can be seen through the solid of voxels;
both only among the bones that run through a vertex's part.

Tetrahedra between vertices keep near fingers apart, but need a closed surface: in bodies of many parts they miss paths
that the voxels have.
"""

import numpy as np

from ..progress import Progress, checkpoint, ignore, span
from ..segments import offsets_from_segments
from .assignment import Assignment, Request, assigned, nearly_best
from .delaunay import topological_neighbors

# Bones up to this share further than the nearest candidate take part.
_MARGIN = 0.1


def assign(request: Request, progress: Progress = ignore) -> Assignment:
    """Shares by distance to the candidates. Other bones that are about as near as the nearest candidate become
    candidates if they can be seen."""
    body, distances, skeleton = request.body, request.distances, request.skeleton
    checkpoint(progress, 0.0, "Telling parts apart")
    parts = request.parts
    near = topological_neighbors(body, distances, skeleton, span(progress, 0.2, 0.6))

    def block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        scores, candidates = parts.scores(distances, rows), near[rows].toarray()
        held = np.isfinite(scores)
        candidates &= held
        # Where a bone of another part is the nearest through air, those of the part itself are candidates.
        candidates = np.where(candidates.any(axis=1, keepdims=True), candidates, held)
        reach = (1 + _MARGIN) * np.where(candidates, scores, np.inf).min(axis=1, keepdims=True)
        place, bone = np.nonzero(held & ~candidates & (scores < reach))
        points, pieces = body.points[rows][place], parts.pieces[parts.of_place[rows][place], bone]
        axes = skeleton.axes[bone]
        starts = skeleton.heads[bone] + pieces[:, :1] * axes
        offsets = offsets_from_segments(points, starts, (pieces[:, 1:] - pieces[:, :1]) * axes)
        candidates[place, bone] = request.solid.sees(points, points - offsets)
        scores = request.limits.applied(rows, np.where(candidates, scores, np.inf))
        return nearly_best(scores, _MARGIN), scores.min(axis=1)

    return assigned(distances, block, span(progress, 0.6, 1.0), "Looking for bones in sight")
