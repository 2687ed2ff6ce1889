# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of one surface given to another beside it: from a body to clothes, from one resolution to another, from part
to part.

Close places with a similar normal take the weights of the closest point; all others are filled in (Abdrashitov,
Raichstat, Monsen and Hill 2023, "Robust Skin Weights Transfer via Weight Inpainting"), harmonically in place of
biharmonically: as good, and never negative.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..binding.types import Body
from ..deform.influences import weight_matrix
from ..errors import BadWeights
from ..progress import Progress, checkpoint, ignore, span
from ..sparse_rows import row_sums, scaled_rows
from .fill import continued
from .matching import ANGLE, DISTANCE, find_matches


@dataclass(frozen=True, eq=False)
class Transferred:
    """weights (N, P) sparse, rows that sum to 1. matched (N,) bool: the vertices that have the weights of the closest
    point; the others were filled in. rim (N,) bool: of the matched ones, those on a border that is locked."""

    weights: sparse.csr_matrix
    matched: np.ndarray
    rim: np.ndarray

    def first(self, count: int) -> "Transferred":
        """Of the first ``count`` vertices alone."""
        return Transferred(self.weights[:count], self.matched[:count], self.rim[:count])


def transfer_weights(
    source: Body,
    weights: sparse.csr_matrix,
    target: Body,
    *,
    distance: float = DISTANCE,
    angle: float = ANGLE,
    lock_rim: bool = False,
    progress: Progress = ignore,
) -> Transferred:
    """The weights (N', P) of ``source``, rows that sum to 1, or to 0 where the source has none, for ``target``, which
    is in the same space.

    distance, angle: of ``find_matches``. lock_rim: places on a border of the target within the distance follow the
    closest point whatever their normal. Raises BadWeights if the source has no weights; Cancelled.
    """
    weighted = row_sums(weights) > 0
    if not weighted.any():
        raise BadWeights("The source has no weights")
    checkpoint(progress, 0.0, "Matching surfaces")
    matches = find_matches(source, weighted, target, distance, angle)
    rim = border(target) & matches.near if lock_rim else np.zeros(len(target.points), bool)
    matched = matches.matched | rim
    known = matched | _closest_of_lost_parts(target, matches.closest.distances, matched, distance * source.diagonal)
    corners = matches.triangles[matches.closest.triangles]
    rows = weight_matrix(corners, matches.closest.shares, len(source.rest)) @ weights
    rows.eliminate_zeros()
    filled = continued(target, known, rows, span(progress, 0.4, 1.0))[target.place]
    return Transferred(scaled_rows(filled, 1.0 / row_sums(filled)), matched[target.place], rim[target.place])


def border(body: Body) -> np.ndarray:
    """(W,) bool: the places at an edge of one face only."""
    sides = np.sort(body.place_triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    edges, uses = np.unique(sides, axis=0, return_counts=True)
    result = np.zeros(len(body.points), bool)
    result[edges[uses == 1]] = True
    return result


def _closest_of_lost_parts(target: Body, distances: np.ndarray, matched: np.ndarray, band: float) -> np.ndarray:
    """(W,) bool: in each part where no place is ``matched`` (W,), those that are at most ``band`` farther away than the
    closest; distances (W,)."""
    part = target.place_components
    lost = ~np.bincount(part, matched, int(part.max()) + 1).astype(bool)
    nearest = np.full(len(lost), np.inf)
    np.minimum.at(nearest, part, distances)
    return lost[part] & (distances <= nearest[part] + band)
