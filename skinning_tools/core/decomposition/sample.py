# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample of a large mesh's vertices that is solved first, and what the other vertices take from it."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from ..progress import Progress, checkpoint, ignore
from .bone_model import homogeneous
from .prepared import Prepared
from .reduction import AnimationMatrix, Reduction
from .skin import Skin
from .sweeps import vertex_blocks
from .vertex_step import VertexState

# Cells along the longest side of the mesh, as a power of two; within a cell the order of vertices does not matter.
_BITS = 16
# Each vertex considers this many samples near it at rest and belongs to the one that stays nearest: layers that touch
# can separate later.
_NEAR = 8
# Numbers of such samples' motion at once.
_NEAR_NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False)
class Sample:
    """vertices (n,) ascending, matrix and reduction of them in the solver units and the basis of the whole animation;
    nearest (N,) the place in ``vertices`` of each vertex's own sample; triangles (T, 3) of such places."""

    vertices: np.ndarray
    matrix: AnimationMatrix
    reduction: Reduction
    nearest: np.ndarray
    triangles: np.ndarray

    def prepared(self, importance: np.ndarray | None) -> Prepared:
        """The sample to be solved; importance: (N,) of all vertices, or None."""
        few = None if importance is None else importance[self.vertices]
        few = few / few.mean() if few is not None and few.any() else None
        return Prepared(self.triangles, self.matrix, self.reduction, few)

    def spread(self, skin: Skin, whole: Prepared) -> Skin:
        """All vertices with bones, weights and shift from the rest pose of their own samples, which ``skin`` has."""
        rest, state = whole.matrix.rest_pose(), skin.state
        points = homogeneous(rest)
        points[:, :3] += (state.points[:, :3] - rest[self.vertices])[self.nearest]
        bones, weights = state.bones[self.nearest], state.weights[self.nearest]
        kind = skin.kind.on(whole.matrix, whole.reduction)
        return Skin(kind, skin.rows, VertexState(points, bones, weights, whole.importance))


def take_sample(
    matrix: AnimationMatrix, reduction: Reduction, triangles: np.ndarray, count: int, progress: Progress = ignore
) -> Sample:
    """``count`` vertices, at most N, spread evenly over the mesh; triangles (T, 3). Deterministic. Raises Cancelled."""
    rest = matrix.rest_pose()
    order = np.argsort(morton_codes(rest), kind="stable")
    vertices = np.sort(order[(np.arange(count) * len(order) + len(order) // 2) // count])
    nearest = _nearest(rest, reduction, vertices, matrix.height // 3, progress)
    few = reduction.of_vertices(vertices)
    return Sample(vertices, matrix.of_vertices(vertices), few, nearest, _triangles(triangles, nearest))


def morton_codes(points: np.ndarray) -> np.ndarray:
    """The place (N,) int64 of each of ``points`` (N, 3) on a space-filling curve: the bits of its cell, interleaved."""
    corner, side = points.min(axis=0), np.ptp(points, axis=0).max()
    cells = ((points - corner) * ((2**_BITS - 1) / (side if side > 0 else 1.0))).astype(np.int64)
    codes = np.zeros(len(points), dtype=np.int64)
    for bit in range(_BITS):
        for axis in range(3):
            codes |= (cells[:, axis] >> bit & 1) << (3 * bit + axis)
    return codes


def _nearest(
    rest: np.ndarray, reduction: Reduction, vertices: np.ndarray, frame_count: int, progress: Progress
) -> np.ndarray:
    """The place in ``vertices`` (n,) of the nearest of them (N,): at rest and in all frames (root mean square)."""
    tree = cKDTree(rest[vertices])
    near = min(_NEAR, len(vertices))
    found = np.empty(len(rest), dtype=np.int32)
    found[vertices] = np.arange(len(vertices))
    others = np.setdiff1d(np.arange(len(rest)), vertices, assume_unique=True)
    for part in vertex_blocks(len(others), max(1, _NEAR_NUMBERS // (near * reduction.dimension))):
        rows = others[part]
        gaps, places = (each.reshape(-1, near) for each in tree.query(rest[rows], k=near))
        motion = reduction.rows(rows)[:, None] - reduction.rows(vertices[places])
        apart = np.square(gaps) + np.einsum("nki,nki->nk", motion, motion) / frame_count
        found[rows] = places[np.arange(len(places)), np.argmin(apart, axis=1)]
        checkpoint(progress, part.stop / len(others), "Sampling")
    return found


def _triangles(triangles: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """The triangles (T, 3) that connect different samples, each once; those of two samples repeat one of them."""
    found = np.sort(nearest[triangles], axis=1)
    found = found[found[:, 0] < found[:, 2]]
    return np.unique(found, axis=0) if len(found) else found
