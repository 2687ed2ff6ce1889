# SPDX-License-Identifier: GPL-3.0-or-later
"""What rigid bones are worth: how far their vertices would be displaced with only the bones around them."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from ..deform.influences import weight_matrix
from ..dense import product
from ..grouping import members
from ..pair_motion import pair_motion
from ..solve_memory import BLOCK_VERTICES
from ..strongest import strongest_bones, strongest_first
from .bone_model import BoneModel
from .reduction import AnimationMatrix
from .sweeps import vertex_blocks
from .transforms import design_matrix, from_rows
from .vertex_step import VertexState, choose_among

# A quantile over the frames: a part that turns in one clip of many counts, and a single bad frame does not.
_QUANTILE = 0.98
# A bone is needed if it displaces its vertices by this root mean square: the displacement of a turn by _TURN radians,
# given the size of the part (the standard deviation of its vertices), but at most _LARGEST of the unit ball; and always
# at least _NOISES times the noise.
_TURN, _LARGEST, _NOISES = 0.05, 0.006, 4.0
# And at least this multiple of the slip of its best joint: what slides on its neighbors, as cloth does, is no part that
# turns. Radians (root mean square): joints of bones that turn less stay in the middle of a bone's vertices.
_SLIPS, _FAINT_TURN = 1.0, 0.03
# A bone that has less than this share of its weight on vertices that follow it most is worth less: it blends others.
# This takes no more than down to the last share, nor does what makes bones doubtful in the end: what moves by far is
# saved, such as vertices that the animation leaves behind.
_LEAD, LEAST_WORTH = 0.25, 0.2
# The number of nearest regions whose bones may replace a bone, besides the bones that it blends with.
_NEAR_REGIONS = 6


@dataclass(frozen=True, eq=False)
class Removal:
    """A bone's vertices (n,), their bones and weights (n, ≤ K) without it, and how much it is needed: below 1 not.

    worth: at most 1, less for a bone that must be needed the more.
    """

    vertices: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    need: float
    worth: float = 1.0


def least_slips(sample: AnimationMatrix, model: BoneModel, state: VertexState, near: np.ndarray) -> np.ndarray:
    """(P,) how far apart each bone and a bone ``near`` it carry their best joint, root mean square over the frames."""
    used = weight_matrix(state.bones, state.weights, model.bone_count)
    mass = np.asarray(used.sum(axis=0)).ravel()
    means = (used.T @ state.points[:, :3]) / np.where(mass > 0, mass, 1.0)[:, None]
    first, second = np.nonzero(near & ~np.eye(model.bone_count, dtype=bool))
    pairs = pair_motion(from_rows(sample.unweigh(model.transforms)), np.zeros(3), 1.0, first, second)
    slips = np.full(model.bone_count, np.inf)
    np.minimum.at(slips, first, pairs.slips(pairs.joints(means[first], _FAINT_TURN)))
    # Where none is near, none can replace the bone.
    return np.where(np.isfinite(slips), slips, 0.0)


def sharing_bones(state: VertexState, bone_count: int) -> np.ndarray:
    """(P, P) bool, symmetric: the bones that share vertices, each with itself if it has any."""
    used = weight_matrix(state.bones, state.weights, bone_count)
    shared: np.ndarray = (used.T @ used).toarray() > 0
    return shared


def neighborhoods(state: VertexState, bone_count: int) -> np.ndarray:
    """(P, P) bool: the bones that share vertices, and those of the nearest regions."""
    near = sharing_bones(state, bone_count)
    regions = members(strongest_bones(state.bones, state.weights), bone_count)
    filled = np.flatnonzero([len(mine) > 0 for mine in regions])
    points = state.points[np.concatenate(regions), :3]
    ends = np.cumsum([len(regions[bone]) for bone in filled])
    for place, (bone, end) in enumerate(zip(filled, ends, strict=True)):
        away = cdist(points[end - len(regions[bone]) : end], points, "sqeuclidean").min(axis=0)
        gaps = np.minimum.reduceat(away, np.append(0, ends[:-1]))
        gaps[place] = np.inf
        nearest = filled[np.argsort(gaps, kind="stable")[: min(_NEAR_REGIONS, len(filled) - 1)]]
        near[bone, nearest] = near[nearest, bone] = True
    return near


def measured_removals(
    sample: AnimationMatrix,
    model: BoneModel,
    state: VertexState,
    noise: np.ndarray,
    near: np.ndarray,
    slips: np.ndarray,
    bones: list[int],
) -> list[Removal]:
    """Of each of the ``bones`` alone. noise (N, F) or (N, 1): squared errors that count as none; near (P, P): bones
    that may replace others; slips (P,): how much each must be needed at least."""
    used = weight_matrix(state.bones, state.weights, model.bone_count).tocsc()
    used.eliminate_zeros()
    vertices = [np.unique(used.indices[used.indptr[bone] : used.indptr[bone + 1]]) for bone in bones]
    heirs = near[bones]
    heirs[np.arange(len(bones)), bones] = False
    removals: list[Removal] = []
    # Most bones have few vertices: these are fitted together.
    ends = np.cumsum([len(mine) for mine in vertices])
    for group in np.split(np.arange(len(bones)), np.flatnonzero(np.diff(ends // BLOCK_VERTICES)) + 1):
        fitted = _without(sample, model, state, [vertices[i] for i in group], heirs[group])
        for i, without in zip(group, fitted, strict=True):
            need = np.inf if len(vertices[i]) else 0.0
            if len(vertices[i]) and heirs[i].any():
                need = _need(sample, model, state, without, noise, vertices[i], bones[i], slips[bones[i]])
            removals.append(Removal(vertices[i], without.bones, without.weights, need))
    return removals


def _without(
    sample: AnimationMatrix, model: BoneModel, state: VertexState, vertices: list[np.ndarray], heirs: np.ndarray
) -> list[VertexState]:
    """The ``vertices`` (n,) of each of some bones with its ``heirs`` (m, P) only; as they are where it has none."""
    counts, rows = [len(mine) for mine in vertices], np.concatenate(vertices)
    owners, fitted = np.repeat(np.arange(len(vertices)), counts), state.of(rows)
    able = np.flatnonzero(heirs[owners].any(axis=1))
    if len(able):
        once, place = np.unique(rows[able], return_inverse=True)
        products = model.data_products(sample.rows(once))[place.reshape(-1)]
        fitted.put(able, with_heirs(heirs[owners[able]], model, products, fitted.of(able))[0])
    return [fitted.of(part) for part in np.split(np.arange(len(rows)), np.cumsum(counts)[:-1])]


def _need(
    sample: AnimationMatrix,
    model: BoneModel,
    state: VertexState,
    without: VertexState,
    noise: np.ndarray,
    vertices: np.ndarray,
    bone: int,
    slip: float,
) -> float:
    """How much a bone is needed by its ``vertices`` (n,), which are ``without`` it otherwise."""
    mine, noise = state.of(vertices), noise[vertices]
    own = np.where(mine.bones == bone, mine.weights, 0.0).sum(axis=1)
    own /= own.sum()
    added = own @ (frame_errors(sample, model, sample.rows(vertices), without) - noise)
    offsets = mine.points[:, :3] - own @ mine.points[:, :3]
    size = np.sqrt(own @ np.square(offsets).sum(axis=1))
    least = max(min(_TURN * size, _LARGEST), _NOISES * np.sqrt(own @ noise.mean(axis=1)), _SLIPS * slip)
    lead = own[strongest_bones(mine.bones, mine.weights) == bone].sum()
    worth = np.clip(lead / _LEAD, LEAST_WORTH, 1.0)
    cost = np.sqrt(max(np.quantile(added, _QUANTILE), 0.0))
    return float(worth * cost / max(least, 1e-9))


def with_heirs(
    heirs: np.ndarray, model: BoneModel, products: np.ndarray, mine: VertexState
) -> tuple[VertexState, np.ndarray]:
    """Vertices (n,) with the bones ``heirs`` only, (P,) bool or (n, P), at least one for each vertex: the best of them
    starts where another one was; and their squared errors less ‖y‖² (n,).

    products (n, P, 4): from ``BoneModel.data_products``.
    """
    allowed = np.broadcast_to(heirs, products.shape[:2])
    best = np.argmin(np.where(allowed, model.errors_alone(mine.points, products), np.inf), axis=1)
    start = np.where(np.take_along_axis(allowed, mine.bones, axis=1), mine.bones, best[:, None])
    bones, weights, errors = choose_among(allowed, model, products, mine.points, start, mine.weights)
    return replace(mine, bones=bones, weights=weights), errors


def frame_errors(sample: AnimationMatrix, model: BoneModel, data: np.ndarray, state: VertexState) -> np.ndarray:
    """(n, F) squared errors of each vertex in each frame, whatever the frame's weight; data (n, 3F)."""
    used = np.unique(state.bones)
    design = design_matrix(state.points, np.searchsorted(used, state.bones), state.weights, len(used))
    transforms = model.transforms.reshape(model.bone_count, 4, -1)[used].reshape(4 * len(used), -1)
    made = design @ transforms if issparse(design) else product(design, transforms)
    squares = np.square(sample.unweigh(made - data))
    return squares[:, ::3] + squares[:, 1::3] + squares[:, 2::3]


def mean_frame_errors(matrix: AnimationMatrix, model: BoneModel, state: VertexState) -> np.ndarray:
    """(N, 1) ``frame_errors`` of each vertex, the mean over the frames."""
    parts = vertex_blocks(len(state.points))
    return np.concatenate(
        [frame_errors(matrix, model, matrix.rows(part), state.of(part)).mean(axis=1) for part in parts]
    )[:, None]


def without_bones(rows: np.ndarray, state: VertexState, removals: dict[int, Removal]) -> tuple[np.ndarray, VertexState]:
    """Transforms and state after ``removals``, the bones that are left in the same order."""
    bones, weights = state.bones.copy(), state.weights.copy()
    for removal in removals.values():
        width = removal.bones.shape[1]
        bones[removal.vertices], weights[removal.vertices] = removal.bones[:, :1], 0.0
        bones[removal.vertices, :width], weights[removal.vertices, :width] = removal.bones, removal.weights
    kept = np.setdiff1d(np.arange(len(rows) // 4), list(removals))
    # Unused slots then name the strongest bone, which is left.
    bones, weights = strongest_first(bones, weights, min(bones.shape[1], len(kept)))
    rows = rows.reshape(-1, 4, rows.shape[1])[kept].reshape(4 * len(kept), -1)
    return rows, VertexState(state.points, np.searchsorted(kept, bones).astype(np.int32), weights, state.importance)
