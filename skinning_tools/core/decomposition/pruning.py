# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones that their neighbors can replace go, until each one left is a part of the body that moves on its own.

Over-segmentation and pruning after Le & Deng 2014, "Robust and accurate skeletal rigging from mesh sequences", section
5. What a bone is worth is measured: its vertices are fitted to the bones around it, and the error that this adds is
compared with the part's size and with what the solve leaves before any bone has gone. Being measured from there, many
small losses do not add up to a large one. Once the others have been solved again without it, it comes back if the error
has risen as if it had been the last thing to explain.

A bone that explains vertices here and there, or very few, is no part of a body: the less of its surface is in one
piece, and the fewer its vertices, the more it must be needed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from ..body_surface import BodySurface
from ..deform.influences import weight_matrix
from ..dense import product
from ..grouping import members
from ..pair_motion import pair_motion
from ..progress import Progress, checkpoint, span
from ..solve_memory import BLOCK_VERTICES
from ..strongest import strongest_bones, strongest_first
from .bone_kinds import StiffBones
from .bone_model import BoneModel
from .reduction import AnimationMatrix, Reduction
from .skin import Skin
from .sweeps import sweep_vertices, vertex_blocks
from .transforms import design_matrix, from_rows
from .vertex_step import VertexState, best_single_bones, choose_among, choose_weights, single_bones

# The number of vertices, taken evenly from the list, that decide which bones are removed.
_SAMPLE = 1500
# A quantile over the frames: a part that turns in one clip of many counts, and a single bad frame does not.
_QUANTILE = 0.98
# A bone is needed if it displaces its vertices by this root mean square: the displacement of a turn by _TURN radians,
# given the size of the part (the standard deviation of its vertices), but at most _LARGEST of the unit ball; and always
# at least _NOISES times the noise.
_TURN, _LARGEST, _NOISES = 0.05, 0.006, 4.0
# And at least this multiple of the slip of its best joint: what slides on its neighbors, as cloth does, is no part that
# turns. Radians (root mean square): joints of bones that turn less stay in the middle of a bone's vertices.
_SLIPS, _FAINT_TURN = 1.0, 0.03
# A bone that is needed this much is not measured again: with fewer bones around it, it is needed the more, and hardly
# ever falls below 1.
_CLEARLY = 2.0
# A bone that has less than this share of its weight on vertices that follow it most is worth less: it blends others.
# This takes no more than down to the last share, nor does what makes bones doubtful in the end: what moves by far is
# saved, such as vertices that the animation leaves behind.
_LEAD, _LEAST_WORTH = 0.25, 0.2
# The share of the bones that may be removed at once; the sweeps after a removal, and the sweeps over all vertices at
# the end.
_AT_ONCE = 1 / 6
_SWEEPS, _LAST_SWEEPS = 2, 6
# The sweeps before these in which the vertices find their weights, while the bones stay as the sample has left them.
_WEIGHT_SWEEPS = 2
# The sweeps after a removal by which the error seems to have risen too fast, as long as these lower the squared error
# to less than this share each time: halves of one part come together slowly.
_MORE_SWEEPS, _FALLING = (8, 8, 8, 8), 0.75
# A bone is needed, too, if the squared error rises without it as no smooth motion makes it rise: faster than by this
# power of the number of bones. A part that hardly moves, of a body whose motion is explained but for it, keeps its bone
# by that. What a bone adds counts as none below the second number (root mean square, in solver units), or the more the
# less the bone is worth.
_POWER, _UNSEEN = 10.0, 1e-4
# A bone in pieces: of all edges at the vertices that follow it most, less than this share are between two of them.
_COHESIVE = 0.3
# Six numbers a frame move a rigid bone, as many as this number of vertices have: it comes close to these by itself, and
# what it is worth is the share that does not.
_FITTED = 2
# A bone whose worth, the product of the shares, is less than this is doubtful: it is measured again in the end.
_DOUBTFUL = 0.9
# The least worth that counts where the error rises without the bone.
_NO_PART = 0.1
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


def prune_bones(
    matrix: AnimationMatrix,
    reduction: Reduction,
    rows: np.ndarray,
    state: VertexState,
    triangles: np.ndarray,
    optimize_rest_pose: bool,
    progress: Progress,
) -> tuple[np.ndarray, VertexState, list[float]]:
    """Remove rigid bones that are not needed: the least needed first, none with a bone that replaces it, and again.

    rows: Tᵀ (4P, 3F) of ``state``; triangles (T, 3). Returns those of the bones that are left, the state of all
    vertices, and ‖TX − A‖² − ‖A‖² after each sweep over them; all as it was, and no sweep, if every bone is needed.
    Raises Cancelled.
    """
    vertices = np.arange(0, len(state.points), max(1, len(state.points) // _SAMPLE))
    sample = matrix.of_vertices(vertices)
    few = state.of(vertices)
    noise = _squared_errors(sample, BoneModel(rows), sample.rows(slice(None)), few)
    skin = _stiff(sample, reduction.of_vertices(vertices), rows, few)
    slips = _least_slips(sample, BoneModel(rows), few, neighborhoods(few, skin.bone_count))
    # How much each bone was needed when it was last measured, 0 where that is to be done.
    needs = np.zeros(skin.bone_count)
    while True:
        # How many rounds there will be is not known.
        part = span(progress, 0.7 * (1.0 - len(skin.rows) / len(rows)), 0.7)
        checkpoint(part, 0.0, "Removing bones")
        near = neighborhoods(skin.state, skin.bone_count)
        measure = partial(measured_removals, sample, BoneModel(skin.rows), skin.state, noise, near, slips)
        gone = _least_needed(measure, needs)
        if not gone:
            break
        skin, missed = _solved_without(sample, skin, gone, optimize_rest_pose, span(part, 0.0, 0.1))
        if missed is not None:
            needs[missed] = np.inf
            continue
        # Where one near it has gone, a needed bone may not be any more; others are measured when their turn comes.
        needs[near[list(gone)].any(axis=0) & (needs >= 1.0) & (needs < _CLEARLY)] = 0.0
        slips, needs = np.delete(slips, list(gone)), np.delete(needs, list(gone))
    # As few numbers as possible, as these are all vertices.
    noise = mean_frame_errors(matrix, BoneModel(rows), state)
    whole = _stiff(matrix, reduction, rows, state)
    if skin.bone_count < whole.bone_count:
        whole = _with_all_vertices(matrix, replace(whole, rows=skin.rows), optimize_rest_pose, span(progress, 0.7, 0.9))
    if len(triangles):
        surface = BodySurface(matrix.rest_pose(), triangles)
        whole = _without_doubtful(matrix, surface, whole, noise, optimize_rest_pose, span(progress, 0.9, 1.0))
    return whole.rows, whole.state, [*whole.errors]


def _stiff(matrix: AnimationMatrix, reduction: Reduction, rows: np.ndarray, state: VertexState) -> Skin:
    """Rigid bones, in the unreduced animation where they leave little more than the reduction loses."""
    kind = StiffBones(matrix, reduction, scaled=False)
    squared_error = Skin(kind.final, rows, state).squared_error() + matrix.counted_norm(state.importance)
    return Skin(kind.for_error(squared_error), rows, state)


def _solved_without(
    matrix: AnimationMatrix, skin: Skin, gone: dict[int, Removal], optimize_rest_pose: bool, progress: Progress
) -> tuple[Skin, int | None]:
    """``skin`` without the bones that have ``gone``, and None; or ``skin`` as it is, and the bone that is missed most.
    It is missed if the error rises too fast."""
    before = mean_frame_errors(matrix, BoneModel(skin.rows), skin.state)[:, 0]
    count = skin.bone_count
    unseen = sum((_UNSEEN / removal.worth) ** 2 for removal in gone.values())
    most = before.mean() * (count / (count - len(gone))) ** _POWER + unseen
    rows, state = without_bones(skin.rows, skin.state, gone)
    left = replace(skin, rows=rows, state=state)
    last = np.inf
    for sweeps in (_SWEEPS, *_MORE_SWEEPS):
        left = left.improved(range(1, 1 + sweeps), optimize_rest_pose, progress)
        after = mean_frame_errors(matrix, BoneModel(left.rows), left.state)[:, 0]
        if after.mean() <= most:
            return left, None
        if after.mean() > _FALLING * last:
            break
        last = after.mean()
    return skin, max(gone, key=lambda bone: np.sum((after - before)[gone[bone].vertices]))


def _with_all_vertices(matrix: AnimationMatrix, skin: Skin, optimize_rest_pose: bool, progress: Progress) -> Skin:
    """``skin``, whose bones are known from a sample, with all vertices: at first each follows one bone."""
    state = _best_bones(matrix, BoneModel(skin.rows), skin.state)
    # The bones stay, until the vertices have their weights: fitted to vertices of one bone each, they would forget what
    # the sample has told them.
    for _ in range(_WEIGHT_SWEEPS):
        part = span(progress, 0.0, 0.2)
        kind, options = skin.kind, {"optimize_rest_pose": optimize_rest_pose}
        sweep_vertices(kind.model(skin.rows), state, kind.source, part, "Removing bones", **options)
    sweeps = range(1, 1 + _LAST_SWEEPS)
    return replace(skin, state=state).improved(sweeps, optimize_rest_pose, span(progress, 0.2, 1.0))


def _without_doubtful(
    matrix: AnimationMatrix,
    surface: BodySurface,
    skin: Skin,
    noise: np.ndarray,
    optimize_rest_pose: bool,
    progress: Progress,
) -> Skin:
    """Without bones of few vertices, or in pieces, that are not needed the more."""
    kept = np.zeros(skin.bone_count, bool)
    while gone := _unneeded(matrix, surface, BoneModel(skin.rows), skin.state, noise, kept):
        skin, missed = _solved_without(matrix, skin, gone, optimize_rest_pose, progress)
        if missed is None:
            kept = np.delete(kept, list(gone))
        else:
            kept[missed] = True
    return skin


def _unneeded(
    matrix: AnimationMatrix,
    surface: BodySurface,
    model: BoneModel,
    state: VertexState,
    noise: np.ndarray,
    kept: np.ndarray,
) -> dict[int, Removal]:
    """The removals to make now of doubtful bones, except for the ``kept`` (P,)."""
    strongest, count = strongest_bones(state.bones, state.weights), model.bone_count
    edges = surface.contacts(strongest[:, None], np.ones((len(strongest), 1)), count)[1]
    cohesion = edges.diagonal() / np.maximum(edges.sum(axis=1), np.finfo(float).tiny)
    places = np.maximum(surface.place_counts(strongest, count), _FITTED)
    # The square root, since needs are not squared.
    worth = np.minimum(cohesion / _COHESIVE, 1.0) * np.sqrt(1.0 - _FITTED / places)
    near = surface.contacts(state.bones, state.weights, count)[0] > 0

    def measure(bones: list[int]) -> list[Removal]:
        found = measured_removals(matrix, model, state, noise, near, np.zeros(count), bones)
        pairs = zip(worth[bones], found, strict=True)
        return [replace(each, need=max(w, _LEAST_WORTH) * each.need, worth=max(w, _NO_PART)) for w, each in pairs]

    return _least_needed(measure, np.where((worth < _DOUBTFUL) & ~kept, 0.0, np.inf))


def _least_slips(sample: AnimationMatrix, model: BoneModel, state: VertexState, near: np.ndarray) -> np.ndarray:
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


def neighborhoods(state: VertexState, bone_count: int) -> np.ndarray:
    """(P, P) bool: the bones that share vertices, and those of the nearest regions."""
    used = weight_matrix(state.bones, state.weights, bone_count)
    near = (used.T @ used).toarray() > 0
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
        mine, allowed = fitted.of(able), heirs[owners[able]]
        best = np.argmin(np.where(allowed, model.errors_alone(mine.points, products), np.inf), axis=1)
        start = np.where(np.take_along_axis(allowed, mine.bones, axis=1), mine.bones, best[:, None])
        bones, weights, _ = choose_among(allowed, model, products, mine.points, start, mine.weights)
        fitted.put(able, replace(mine, bones=bones, weights=weights))
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
    added = own @ (_squared_errors(sample, model, sample.rows(vertices), without) - noise)
    offsets = mine.points[:, :3] - own @ mine.points[:, :3]
    size = np.sqrt(own @ np.square(offsets).sum(axis=1))
    least = max(min(_TURN * size, _LARGEST), _NOISES * np.sqrt(own @ noise.mean(axis=1)), _SLIPS * slip)
    lead = own[strongest_bones(mine.bones, mine.weights) == bone].sum()
    worth = np.clip(lead / _LEAD, _LEAST_WORTH, 1.0)
    cost = np.sqrt(max(np.quantile(added, _QUANTILE), 0.0))
    return float(worth * cost / max(least, 1e-9))


def refitted(
    model: BoneModel, heirs: np.ndarray, data: np.ndarray, mine: VertexState
) -> tuple[VertexState, np.ndarray]:
    """Vertices (n,) with the bones ``heirs``, ascending, only: the best of them starts where another one was; and their
    squared errors less ‖y‖² (n,)."""
    few = model.of_bones(heirs)
    place = np.minimum(np.searchsorted(heirs, mine.bones), len(heirs) - 1)
    products = few.data_products(data)
    best = np.argmin(few.errors_alone(mine.points, products), axis=1)
    start = np.where(heirs[place] == mine.bones, place, best[:, None])
    bones, weights, errors = choose_weights(few, products, mine.points, start, mine.weights)
    return VertexState(mine.points, heirs[bones], weights, mine.importance), errors


def _squared_errors(sample: AnimationMatrix, model: BoneModel, data: np.ndarray, state: VertexState) -> np.ndarray:
    """(n, F) of each vertex in each frame, whatever the frame's weight; data (n, 3F)."""
    used = np.unique(state.bones)
    design = design_matrix(state.points, np.searchsorted(used, state.bones), state.weights, len(used))
    transforms = model.transforms.reshape(model.bone_count, 4, -1)[used].reshape(4 * len(used), -1)
    made = design @ transforms if issparse(design) else product(design, transforms)
    squares = np.square(sample.unweigh(made - data))
    return squares[:, ::3] + squares[:, 1::3] + squares[:, 2::3]


def mean_frame_errors(matrix: AnimationMatrix, model: BoneModel, state: VertexState) -> np.ndarray:
    """(N, 1) ``_squared_errors`` of each vertex, the mean over the frames."""
    parts = vertex_blocks(len(state.points))
    return np.concatenate(
        [_squared_errors(matrix, model, matrix.rows(part), state.of(part)).mean(axis=1) for part in parts]
    )[:, None]


def _least_needed(measure: Callable[[list[int]], list[Removal]], needs: np.ndarray) -> dict[int, Removal]:
    """The removals to make now, by bone: of bones that are not needed, none of which takes over from another.

    needs (P,): as last measured, or 0; changed in place. Removing neighbors usually makes a bone more needed, so that
    an old value is only a lower bound: the bone is measured again when it comes first in the queue.
    """
    chosen: dict[int, Removal] = {}
    unknown = np.flatnonzero(needs == 0).tolist()
    measured = dict(zip(unknown, measure(unknown), strict=True)) if unknown else {}
    for bone, removal in measured.items():
        needs[bone] = removal.need
    heirs: set[int] = set()
    queue = [(needs[bone], bone) for bone in np.flatnonzero(needs < 1.0).tolist()]
    heapify(queue)
    while queue and len(chosen) < max(1, int(_AT_ONCE * len(needs))):
        _, bone = heappop(queue)
        if bone in heirs:
            continue
        if bone not in measured:
            measured[bone] = measure([bone])[0]
            needs[bone] = measured[bone].need
            if needs[bone] < 1.0:
                heappush(queue, (needs[bone], bone))
            continue
        removal = measured[bone]
        taking = set(removal.bones[removal.weights > 0].tolist())
        if not taking & chosen.keys():
            chosen[bone] = removal
            heirs |= taking
    return chosen


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


def _best_bones(matrix: AnimationMatrix, model: BoneModel, state: VertexState) -> VertexState:
    """All vertices with the bone that predicts each best."""
    points = state.points.copy()
    best = [best_single_bones(model, matrix.rows(part), points[part]) for part in vertex_blocks(len(points))]
    alone = single_bones(points, np.concatenate(best), min(state.bones.shape[1], model.bone_count))
    return replace(alone, importance=state.importance)
