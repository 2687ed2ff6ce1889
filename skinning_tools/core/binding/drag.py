# SPDX-License-Identifier: GPL-3.0-or-later
"""A vertex that is dragged in a pose, with those around it (direct manipulation, Mohr, Tokheim & Gleicher 2003)."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from ..deform import skin_frame
from ..smooth_step import smooth_step
from .fit import WeightFit, fit_weights
from .influence_rows import padded_influences

# How much a distance along the line of sight counts, of one across it: so little that a vertex whose bones move it
# nearly along the line still goes where it is seen to be dragged.
_ALONG = 3e-3


def vertices_around(points: np.ndarray, edges: np.ndarray, vertex: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """``vertex`` first, then the vertices less than ``radius`` away along the edges; and their shares (n,) of its
    motion, from 1 at the vertex to 0 at the radius. points (N, 3), edges (E, 2)."""
    if not (radius > 0 and len(edges)):
        return np.array([vertex]), np.ones(1)
    # No way along the edges is shorter than the straight one.
    near = np.flatnonzero(np.linalg.norm(points - points[vertex], axis=1) < radius)
    place = np.full(len(points), -1)
    place[near] = np.arange(len(near))
    ends = place[edges[(place[edges] >= 0).all(axis=1)]]
    lengths = np.linalg.norm(points[near[ends[:, 0]]] - points[near[ends[:, 1]]], axis=1)
    # A length of zero would be no edge to the graph.
    lengths = np.maximum(lengths, 1e-12 * radius)
    graph = sparse.csr_matrix((lengths, (ends[:, 0], ends[:, 1])), shape=(len(near), len(near)))
    away = dijkstra(graph, directed=False, indices=place[vertex], limit=radius)
    away[place[vertex]] = -1.0
    order = np.argsort(away, kind="stable")
    order = order[away[order] < radius]
    shares = smooth_step(1 - np.maximum(away[order], 0.0) / radius)
    return near[order], shares


@dataclass(frozen=True, eq=False)
class DraggedVertices:
    """A vertex, the first of n, that is dragged, and others that follow its motion by their ``shares`` (n,).

    rest (n, 3); start (n, 3): their places in the pose before the drag; bones and weights (n, K) before it; matrices
    (P, 3, 4). candidates, max_influences, locked: as for ``fit_weights``. The others may get weights of the candidates,
    too, and keep their own bones: one with a small share hardly moves. All but the first need weights.
    """

    rest: np.ndarray
    start: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    matrices: np.ndarray
    shares: np.ndarray
    candidates: np.ndarray | None = None
    max_influences: int = 4
    locked: np.ndarray | None = None

    def to(self, target: np.ndarray, sight: np.ndarray | None = None) -> WeightFit:
        """The weights that bring the first vertex closest to ``target`` (3,), and each other one closest to where the
        first one's motion takes it.

        They do not depend on where the vertex has been dragged before. sight (3,): unit vector of the line of sight;
        the place is then closest as seen, and its distance along the line decides only between those. residuals (1, n):
        all distances count in full. Raises BadSettings, BadWeights as ``fit_weights``.
        """
        first = self._fit(slice(0, 1), np.asarray(target, dtype=np.float64)[None], self.candidates, sight)
        targets = self.start + self.shares[:, None] * (first.positions[0] - self.start[0])
        targets[0] = target
        if len(self.rest) == 1:
            return first
        candidates = self.candidates
        if candidates is not None:
            candidates = np.union1d(candidates, self.bones[1:][self.weights[1:] > 0])
        others = self._fit(slice(1, None), targets[1:], candidates)
        width = max(first.bones.shape[1], others.bones.shape[1])
        rows = [padded_influences(part.bones, part.weights, width) for part in (first, others)]
        bones, weights = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        positions, residuals = (
            np.concatenate([getattr(part, name) for part in (first, others)], axis=1)
            for name in ("positions", "residuals")
        )
        return WeightFit(bones, weights, positions, residuals)

    def _fit(
        self, part: slice, targets: np.ndarray, candidates: np.ndarray | None, sight: np.ndarray | None = None
    ) -> WeightFit:
        rest, bones, weights = self.rest[part], self.bones[part], self.weights[part]
        squash, back = np.eye(3), np.eye(3)
        if sight is not None:
            along = np.outer(sight, sight)
            squash, back = np.eye(3) - (1 - _ALONG) * along, np.eye(3) + (1 / _ALONG - 1) * along
        linear, shifts = self.matrices[..., :3], self.matrices[..., 3:]
        found = fit_weights(
            rest @ squash.T,
            bones,
            weights,
            np.concatenate([squash @ linear @ back, squash @ shifts], axis=-1),
            targets @ squash.T,
            candidates=candidates,
            max_influences=self.max_influences,
            locked=self.locked,
        )
        places = skin_frame(rest, found.bones, found.weights, self.matrices)[None]
        return WeightFit(found.bones, found.weights, places, np.linalg.norm(places - targets, axis=-1))
