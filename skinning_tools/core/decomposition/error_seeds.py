# SPDX-License-Identifier: GPL-3.0-or-later
"""Regions for meshes of several parts, or of loose vertices: each new bone starts where the previous ones explain
least.

Regions that grow over the surface cannot join parts that are far apart and move alike. Here the first bone is
fitted to one part, the next to the part that it predicts worst, and so on, as the farthest-point solution of the
p-center problem with errors for distances: parts that move in as many groups as there are bones are told apart exactly.
"""

import numpy as np
import scipy.sparse.csgraph
import scipy.spatial

from ..dense import product
from ..grouping import members
from ..progress import Progress, checkpoint, ignore
from . import rigid
from .bone_model import BoneModel, homogeneous
from .reduction import AnimationMatrix, Reduction
from .segmentation import fill_empty_regions, surface_neighbors
from .transforms import NormalEquations, to_rows

_BLOCK_VERTICES = 4096
# The number of vertices of a patch that a new bone starts from if it does not start from a whole part, and the number
# of places that are tried for one.
_PATCH_VERTICES = 8
_MOST_PLACES = 2000
# How firmly a motion is held to the rigid one, so that even the motion of a flat part determines where other vertices
# would go.
_HOLD = 1e-6


def parts_of(triangles: np.ndarray, vertex_count: int) -> np.ndarray | None:
    """The part (N,) of each vertex, loose vertices all together the last one; None where the mesh is of one piece.

    A few loose vertices beside a single piece do not count.
    """
    if not len(triangles):
        return np.zeros(vertex_count, dtype=np.int64)
    neighbors = surface_neighbors(triangles, vertex_count)
    _, parts = scipy.sparse.csgraph.connected_components(neighbors, directed=False)
    on_surface = np.zeros(vertex_count, dtype=bool)
    on_surface[triangles] = True
    parts[~on_surface] = vertex_count
    found, parts = np.unique(parts, return_inverse=True)
    return parts if np.count_nonzero(found < vertex_count) > 1 else None


def regions_by_error(
    matrix: AnimationMatrix,
    reduction: Reduction,
    rest: np.ndarray,
    triangles: np.ndarray,
    parts: np.ndarray,
    bone_count: int,
    progress: Progress = ignore,
) -> np.ndarray:
    """Region of each vertex (N,) in 0 … bone_count − 1, every region non-empty; needs bone_count ≤ N.

    rest (N, 3) in solver units, triangles (T, 3), parts (N,) from ``parts_of``. Raises Cancelled.
    """
    points = homogeneous(rest)
    vertices = members(parts, int(parts.max()) + 1)
    # Loose vertices have a motion in common only by chance.
    whole = np.ones(len(vertices), dtype=bool)
    if not len(triangles) or not np.isin(vertices[-1], triangles).any():
        whole[-1] = False
    labels = np.zeros(len(rest), dtype=np.int64)
    offsets = rest - rest.mean(axis=0)
    left = np.einsum("ij,ij->i", offsets, offsets)
    patches: dict[int, np.ndarray] = {}
    for bone in range(bone_count):
        worst = int(np.argmax(np.bincount(parts, left)))
        if whole[worst]:
            start, whole[worst] = vertices[worst], False
        else:
            patches[worst] = patches[worst] if worst in patches else _patches(rest, vertices[worst])
            start = patches[worst][np.argmax(left[patches[worst]].sum(axis=1))]
        model = BoneModel(product(_motion(matrix, points[start], start), reduction.basis))
        for first in range(0, len(rest), _BLOCK_VERTICES):
            part = slice(first, first + _BLOCK_VERTICES)
            own = model.squared_distances(points[part], reduction.rows(part))[:, 0]
            better = own < left[part] if bone else np.ones(len(own), dtype=bool)
            labels[part][better], left[part][better] = bone, own[better]
        checkpoint(progress, (bone + 1) / bone_count, "Segmenting")
    return fill_empty_regions(labels, rest, bone_count)


def _patches(rest: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Vertices near each other (places, k), around some of ``members`` (n,)."""
    places = members[:: -(-len(members) // _MOST_PLACES)]
    count = min(_PATCH_VERTICES, len(members))
    near = scipy.spatial.cKDTree(rest[members]).query(rest[places], k=count)[1]
    return members[near.reshape(len(places), count)]


def _motion(matrix: AnimationMatrix, points: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """The affine motion Tᵀ (4, 3F) of some vertices; what they leave open is that of the rigid one."""
    equations = NormalEquations.of_one_bone(points, matrix.rows(vertices))
    alone = rigid.fit_alone(matrix.unweigh(equations.products), equations.bone_moments)
    return equations.solve(matrix.weigh(to_rows(alone)), _HOLD)
