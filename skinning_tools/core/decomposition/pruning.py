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

from ..body_surface import BodySurface
from ..progress import Progress, checkpoint, ignore, span
from ..strongest import strongest_bones
from .bone_kinds import StiffBones
from .bone_model import BoneModel
from .prepared import Prepared
from .reduction import AnimationMatrix, Reduction
from .removals import (
    LEAST_WORTH,
    Removal,
    frame_errors,
    least_slips,
    mean_frame_errors,
    measured_removals,
    neighborhoods,
    without_bones,
)
from .rigid_parts import with_whole_parts
from .skin import Skin
from .sweeps import sweep_vertices, vertex_blocks
from .vertex_step import VertexState, best_single_bones, single_bones

# The number of vertices, taken evenly from the list, that decide which bones are removed.
_SAMPLE = 1500
# A bone that is needed this much is not measured again: with fewer bones around it, it is needed the more, and hardly
# ever falls below 1.
_CLEARLY = 2.0
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


def prune_bones(skin: Skin, prepared: Prepared, optimize_rest_pose: bool, progress: Progress) -> Skin:
    """``skin`` without the rigid bones that are not needed: the least needed go first, none with a bone that replaces
    it, and again. All as it was, and no sweep more, if every bone is needed. Raises Cancelled."""
    matrix = prepared.matrix
    few = _pruned_sample(skin, prepared, optimize_rest_pose, progress)
    # As few numbers as possible, as these are all vertices.
    noise = mean_frame_errors(matrix, BoneModel(skin.rows), skin.state)
    whole = _stiff(matrix, prepared.reduction, skin)
    if few.bone_count < whole.bone_count:
        whole = _with_all_vertices(matrix, replace(whole, rows=few.rows), optimize_rest_pose, span(progress, 0.7, 0.9))
    if len(prepared.triangles):
        surface = BodySurface(matrix.rest_pose(), prepared.triangles)
        whole = _without_doubtful(matrix, surface, whole, noise, optimize_rest_pose, span(progress, 0.9, 0.9))
    return replace(whole, kind=skin.kind.for_error(whole.errors[-1] + prepared.squared_norm))


@dataclass(frozen=True, eq=False)
class _Solved:
    """A skin, and the squared ``errors`` (N,) that it leaves, the mean over the frames."""

    skin: Skin
    errors: np.ndarray


def _stiff(matrix: AnimationMatrix, reduction: Reduction, skin: Skin) -> Skin:
    """``skin`` in the unreduced animation where its rigid bones leave little more than the reduction loses."""
    kind = StiffBones(matrix, reduction, scaled=False)
    squared_error = replace(skin, kind=kind.final).squared_error() + matrix.counted_norm(skin.state.importance)
    return replace(skin, kind=kind.for_error(squared_error))


def _pruned_sample(skin: Skin, prepared: Prepared, optimize_rest_pose: bool, progress: Progress) -> Skin:
    """The bones that are needed, of some vertices; see ``prune_bones``."""
    count, first_count = len(skin.state.points), skin.bone_count
    vertices = np.arange(0, count, max(1, count // _SAMPLE))
    sample = prepared.matrix.of_vertices(vertices)
    skin = _stiff(sample, prepared.reduction.of_vertices(vertices), replace(skin, state=skin.state.of(vertices)))
    noise = frame_errors(sample, BoneModel(skin.rows), sample.rows(slice(None)), skin.state)
    given = _united(sample, _Solved(skin, noise.mean(axis=1)), noise, optimize_rest_pose)
    while True:
        left = _without_needless(sample, given, noise, first_count, optimize_rest_pose, progress)
        given = _united(sample, left, noise, optimize_rest_pose)
        if given is left:
            return left.skin


def _united(sample: AnimationMatrix, given: _Solved, noise: np.ndarray, optimize_rest_pose: bool) -> _Solved:
    """``given`` with the bones of a rigid part in one, or as it is; noise (N, F): see ``_without_needless``."""
    whole = with_whole_parts(sample, given.skin, noise + _UNSEEN**2)
    if whole is given.skin:
        return given
    found, holds = _settled(sample, given, whole, _UNSEEN**2, optimize_rest_pose, ignore)
    return found if holds else given


def _without_needless(
    sample: AnimationMatrix,
    given: _Solved,
    noise: np.ndarray,
    first_count: int,
    optimize_rest_pose: bool,
    progress: Progress,
) -> _Solved:
    """``given`` without the bones that are not needed; noise (N, F): the squared errors before any was removed."""
    skin = given.skin
    slips = least_slips(sample, BoneModel(skin.rows), skin.state, neighborhoods(skin.state, skin.bone_count))
    # How much each bone was needed when it was last measured, 0 where that is to be done.
    needs = np.zeros(skin.bone_count)
    while True:
        # How many rounds there will be is not known.
        part = span(progress, 0.7 * (1.0 - given.skin.bone_count / first_count), 0.7)
        checkpoint(part, 0.0, "Removing bones")
        skin = given.skin
        near = neighborhoods(skin.state, skin.bone_count)
        measure = partial(measured_removals, sample, BoneModel(skin.rows), skin.state, noise, near, slips)
        gone = _least_needed(measure, needs)
        if not gone:
            return given
        given, missed = _solved_without(sample, given, gone, optimize_rest_pose, span(part, 0.0, 0.1))
        if missed is not None:
            needs[missed] = np.inf
            continue
        # Where one near it has gone, a needed bone may not be any more; others are measured when their turn comes.
        needs[near[list(gone)].any(axis=0) & (needs >= 1.0) & (needs < _CLEARLY)] = 0.0
        slips, needs = np.delete(slips, list(gone)), np.delete(needs, list(gone))


def _solved_without(
    matrix: AnimationMatrix, given: _Solved, gone: dict[int, Removal], optimize_rest_pose: bool, progress: Progress
) -> tuple[_Solved, int | None]:
    """``given`` without the bones that have ``gone``, and None; or ``given`` as it is, and the bone that is missed
    most. It is missed if the error rises too fast."""
    rows, state = without_bones(given.skin.rows, given.skin.state, gone)
    unseen = sum((_UNSEEN / removal.worth) ** 2 for removal in gone.values())
    left = replace(given.skin, rows=rows, state=state)
    found, holds = _settled(matrix, given, left, unseen, optimize_rest_pose, progress)
    if holds:
        return found, None
    more = found.errors - given.errors
    return given, max(gone, key=lambda bone: more[gone[bone].vertices].sum())


def _settled(
    matrix: AnimationMatrix,
    given: _Solved,
    left: Skin,
    unseen: float,
    optimize_rest_pose: bool,
    progress: Progress,
) -> tuple[_Solved, bool]:
    """``left``, which has fewer bones than ``given``, after some sweeps, and whether its error is no higher than the
    number of bones and what is ``unseen`` explain."""
    most = given.errors.mean() * (given.skin.bone_count / left.bone_count) ** _POWER + unseen
    last, part = np.inf, progress
    for sweeps in (_SWEEPS, *_MORE_SWEEPS):
        left = left.improved(range(1, 1 + sweeps), optimize_rest_pose, part)
        errors = mean_frame_errors(matrix, BoneModel(left.rows), left.state)[:, 0]
        if errors.mean() <= most or errors.mean() > _FALLING * last:
            break
        last, part = errors.mean(), span(progress, 1.0, 1.0)
    return _Solved(left, errors), bool(errors.mean() <= most)


def _with_all_vertices(matrix: AnimationMatrix, skin: Skin, optimize_rest_pose: bool, progress: Progress) -> Skin:
    """``skin``, whose bones are known from a sample, with all vertices: at first each follows one bone."""
    state = _best_bones(matrix, BoneModel(skin.rows), skin.state)
    # The bones stay, until the vertices have their weights: fitted to vertices of one bone each, they would forget what
    # the sample has told them.
    model, source = skin.kind.model(skin.rows), skin.kind.source
    for sweep in range(_WEIGHT_SWEEPS):
        part = span(progress, 0.1 * sweep, 0.1 * (sweep + 1))
        sweep_vertices(model, state, source, part, "Removing bones", optimize_rest_pose=optimize_rest_pose)
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
    given = _Solved(skin, mean_frame_errors(matrix, BoneModel(skin.rows), skin.state)[:, 0])
    kept = np.zeros(skin.bone_count, bool)
    while gone := _unneeded(matrix, surface, BoneModel(given.skin.rows), given.skin.state, noise, kept):
        given, missed = _solved_without(matrix, given, gone, optimize_rest_pose, progress)
        if missed is None:
            kept = np.delete(kept, list(gone))
        else:
            kept[missed] = True
    return given.skin


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
        return [replace(each, need=max(w, LEAST_WORTH) * each.need, worth=max(w, _NO_PART)) for w, each in pairs]

    return _least_needed(measure, np.where((worth < _DOUBTFUL) & ~kept, 0.0, np.inf))


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


def _best_bones(matrix: AnimationMatrix, model: BoneModel, state: VertexState) -> VertexState:
    """All vertices with the bone that predicts each best."""
    points = state.points.copy()
    best = [best_single_bones(model, matrix.rows(part), points[part]) for part in vertex_blocks(len(points))]
    alone = single_bones(points, np.concatenate(best), min(state.bones.shape[1], model.bone_count))
    return replace(alone, importance=state.importance)
