# SPDX-License-Identifier: GPL-3.0-or-later
"""Smoothing of weights over the surface: the mean of neighbors, nearer ones counting more, within borders and
creases."""

import numpy as np
from scipy import sparse

from ..deform.influences import weight_matrix
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore
from ..sparse_rows import ratio, row_sums
from .influence_rows import matrix_influences, padded_influences
from .types import Body

# Edges shorter than this share of the average count as this long: else their ends would see only each other.
_SHORTEST = 1e-3
# Smaller weights are dropped between the rounds: too small to see, and they would spread over the mesh.
_NEGLIGIBLE = 1e-5


def smooth_weights(
    body: Body,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int,
    *,
    strength: float = 0.5,
    iterations: int = 5,
    mask: np.ndarray | None = None,
    creases: np.ndarray | None = None,
    max_influences: int = 4,
    locked: np.ndarray | None = None,
    progress: Progress = ignore,
) -> tuple[np.ndarray, np.ndarray]:
    """bones int32 and weights (N, K), strongest first, after ``iterations`` rounds that move each vertex's weights by
    ``strength`` (0 to 1) to the mean of itself and its neighbors, which count by 1 / edge length, itself like the
    nearest of them.

    bones, weights (N, K'), rows that sum to 1, of ``bone_count`` bones. Neighbors are those over ``body.edges``, or
    over the triangles' sides where there are none. creases (E,) bool, of ``body.edges``. Vertices on a border or crease
    have neighbors only along it, so that no weight crosses it; where more than two such edges meet, vertices stay.
    Welded vertices are one, so that seams are closed. mask (N,) bool or from 0 to 1 scales the strength; rows that it
    leaves out stay as they are, else at most ``max_influences`` are above zero. Weights of bones ``locked`` (P,) stay.
    Vertices without weights contribute nothing and stay without.
    Raises BadSettings on a strength out of range and on masks that select nothing or do not fit; Cancelled.
    """
    if not 0 <= strength <= 1:
        raise BadSettings(f"The strength must be from 0 to 1, not {strength:g}")
    shares = np.full(len(body.rest), float(strength))
    if mask is not None:
        mask = np.clip(_fitting(mask, len(body.rest), "mask", "vertices"), 0.0, 1.0)
        if not mask.any():
            raise BadSettings("The mask selects no vertex. Choose a vertex group that has weights")
        shares *= mask
    locked = np.zeros(bone_count) if locked is None else _fitting(locked, bone_count, "locked bones", "bones")
    steps = _place_mean(body, shares)
    neighbors = _neighbor_shares(body, creases)
    before = weight_matrix(bones, weights, bone_count)
    fixed = (before @ sparse.diags(locked)).tocsr()
    free = place_weights(body, before) @ sparse.diags(1.0 - locked)
    room = row_sums(free)
    for number in range(iterations):
        free = _smoothed(free.tocsr(), steps, neighbors, room)
        checkpoint(progress, (number + 1) / iterations, "Smoothing weights")
    # What the locked weights of each vertex itself leave: they may differ between the two sides of a seam.
    scale = ratio(1.0 - row_sums(fixed), room[body.place])
    after = sparse.diags(scale) @ free.tocsr()[body.place] + fixed
    new_bones, new_weights = matrix_influences(after.tocsr(), max_influences, locked > 0)
    stays = steps[body.place] == 0
    if not stays.any():
        return new_bones, new_weights
    width = max(new_bones.shape[1], np.shape(bones)[1])
    of_old, of_new = (padded_influences(*rows, width) for rows in ((bones, weights), (new_bones, new_weights)))
    bones, weights = (np.where(stays[:, None], old, new) for old, new in zip(of_old, of_new, strict=True))
    return bones, weights


def place_weights(body: Body, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """(W, P) the mean of the vertices of each place, of those that have weights."""
    size = (len(body.points), len(body.place))
    members = sparse.csr_matrix((np.ones(size[1]), (body.place, np.arange(size[1]))), shape=size)
    count = members @ (row_sums(matrix) > 0).astype(np.float64)
    return (sparse.diags(ratio(1.0, count)) @ members @ matrix).tocsr()


def _smoothed(
    free: sparse.csr_matrix, steps: np.ndarray, neighbors: sparse.csr_matrix, room: np.ndarray
) -> sparse.csr_matrix:
    """One round: (W, P) moved by ``steps`` (W,) toward the neighbors' mean, with rows that sum to ``room`` (W,)."""
    mean = neighbors @ free
    sums = row_sums(mean)
    moving = np.where(sums > 0, steps, 0.0)
    result = sparse.diags(1.0 - moving) @ free + sparse.diags(ratio(room * moving, sums)) @ mean
    result = result.tocsr()
    result.data[result.data < _NEGLIGIBLE] = 0.0
    result.eliminate_zeros()
    return (sparse.diags(ratio(room, row_sums(result))) @ result).tocsr()


def _neighbor_shares(body: Body, creases: np.ndarray | None) -> sparse.csr_matrix:
    """(W, W) what each place takes from each of its neighbors, rows that sum to 1, or are empty where it stays."""
    size = len(body.points)
    given = np.sort(body.place[body.edges], axis=1)
    keys = given @ [size, 1]
    sides = np.sort(body.place_triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    known, faces = np.unique(sides @ [size, 1], return_counts=True)
    sharp = known[faces == 1]
    if creases is not None:
        sharp = np.union1d(sharp, keys[_fitting(creases, len(body.edges), "creases", "edges").astype(bool)])
    every = np.unique(keys[given[:, 0] != given[:, 1]]) if len(keys) else known
    first, second = np.divmod(every, size)
    lengths = np.linalg.norm(body.points[first] - body.points[second], axis=1)
    pull = 1.0 / np.maximum(lengths, _SHORTEST * lengths.mean()) if len(lengths) else lengths
    is_sharp = np.isin(every, sharp)
    along = np.bincount(np.concatenate([first[is_sharp], second[is_sharp]]), minlength=size)
    rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
    pull, is_sharp = np.tile(pull, 2), np.tile(is_sharp, 2)
    # Off all borders and creases, and where one runs out in the middle of a surface: all neighbors.
    taken = (along[rows] < 2) | ((along[rows] == 2) & is_sharp)
    matrix = sparse.coo_matrix((pull[taken], (rows[taken], columns[taken])), shape=(size, size)).tocsr()
    # Without a share of its own, weights on a grid could go back and forth between odd and even vertices for ever.
    matrix = matrix + sparse.diags(np.asarray(matrix.max(axis=1).todense()).ravel())
    return (sparse.diags(ratio(1.0, row_sums(matrix))) @ matrix).tocsr()


def _place_mean(body: Body, values: np.ndarray) -> np.ndarray:
    return np.bincount(body.place, values) / np.bincount(body.place)


def _fitting(values: np.ndarray, count: int, what: str, of: str) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(values) != count:
        raise BadSettings(f"The {what} ({len(values)}) do not fit the {count} {of}")
    return values
