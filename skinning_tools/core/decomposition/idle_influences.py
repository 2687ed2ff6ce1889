# SPDX-License-Identifier: GPL-3.0-or-later
"""Influences that hardly move their vertex in the animation, left out of a skeleton's weights.

A fit uses all influences that a vertex may have, many of them for next to nothing. Engines pay for each of them, and in
poses beyond the animation the vertex follows them.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..progress import Progress, checkpoint, ignore
from ..strongest import strongest_first
from .bone_model import BoneModel
from .near_weights import PoseLimits, squared_error
from .reduction import Rows
from .rest_pose import OwnBones, fit_rest_positions, squared_errors
from .sweeps import vertex_blocks
from .vertex_step import VertexState
from .weights import fit_convex

# The share by which the squared error may grow, so that E_RMS grows by half a percent at most.
LOSS = 0.01
# Larger weights stay: over a surface, a step of this size does not show. Only those of far bones go whatever they are:
# the other foot may explain a foot as well where both stand still. When an influence goes, the strongest one gets its
# weight, and then all that are left are fitted again, each by no more than this.
SMALL = 0.01


def without_idle_influences(
    model: BoneModel,
    state: VertexState,
    source: Rows,
    limits: PoseLimits,
    *,
    optimize_rest_pose: bool,
    progress: Progress = ignore,
) -> VertexState:
    """``state``, each vertex's strongest influence first, with fewer of them; the same object where none is idle.

    A vertex loses its influences of far bones, the weakest first, and then its small ones, one after the other. Over
    all vertices those go first that cost least, until the squared error has grown by LOSS; at no vertex does it grow by
    more than is unseen. Vertices within ``limits`` stay there. optimize_rest_pose: whether rest positions are fitted
    again, too. Raises Cancelled.
    """
    given, state = state, _far_last(state, limits)
    count, influences = state.weights.shape
    costs, blocks = np.zeros((count, influences - 1)), vertex_blocks(count)
    for part in blocks:
        for step, (cost, _) in enumerate(_fewer(model, state.of(part), source.rows(part), limits, optimize_rest_pose)):
            costs[part, step] = cost
        checkpoint(progress, part.stop / count, "Weights")
    costs[np.cumsum(costs, axis=1) > limits.unseen] = np.inf
    if state.importance is not None:
        np.multiply(costs, state.importance[:, None], out=costs, where=np.isfinite(costs))
    # What a vertex loses first never comes after what it loses next.
    order = np.argsort(np.maximum.accumulate(costs, axis=1), axis=None, kind="stable")
    spent = np.maximum.accumulate(np.cumsum(costs.ravel()[order]))
    lost = np.zeros(costs.shape, bool)
    lost.ravel()[order] = spent <= LOSS * squared_error(model, state, source)
    result = state.copy()
    for part in blocks:
        few = state.of(part)
        for step, (_, left) in enumerate(_fewer(model, few, source.rows(part), limits, optimize_rest_pose)):
            now = np.flatnonzero(lost[part, step])
            result.put(part.start + now, left.of(now))
    result.bones, result.weights = strongest_first(result.bones, result.weights)
    return result if (result.weights > 0).sum() < (state.weights > 0).sum() else given


def _far_last(state: VertexState, limits: PoseLimits) -> VertexState:
    """A copy with the influences of far bones behind the others, each by weight; an unused slot is of no far bone."""
    order = np.argsort(2.0 * limits.far(state) - state.weights, axis=1, kind="stable")
    bones, weights = np.take_along_axis(state.bones, order, axis=1), np.take_along_axis(state.weights, order, axis=1)
    return VertexState(state.points.copy(), bones, weights, state.importance)


def _fewer(
    model: BoneModel, state: VertexState, data: np.ndarray, limits: PoseLimits, optimize_rest_pose: bool
) -> Iterator[tuple[np.ndarray, VertexState]]:
    """Vertices (n,) without the last influence, then without the last two, and so on; before them what each step adds
    to the squared errors (n,): infinitely much where the influence is neither small nor of a far bone."""
    state, products = state.copy(), model.data_products(data)
    for last in range(state.weights.shape[1] - 1, 0, -1):
        weights, cost = state.weights[:, last], np.zeros(len(data))
        may = (weights <= SMALL) | limits.far(state)[:, last]
        cost[~may] = np.inf
        small = np.flatnonzero((weights > 0) & may)
        now = state.of(small)
        own = OwnBones(model, products[small], now.bones)
        left = _without(own, now, last, limits, optimize_rest_pose)
        cost[small] = _errors(own, left) - _errors(own, now)
        state.put(small, left)
        yield cost, state


def _without(own: OwnBones, now: VertexState, last: int, limits: PoseLimits, optimize_rest_pose: bool) -> VertexState:
    """The vertices (n,) without the influence ``last``, what is left fitted again."""
    base = now.copy()
    # With what the strongest bone takes over, no limit breaks.
    base.weights[np.arange(len(base.weights)), base.weights.argmax(axis=1)] += base.weights[:, last]
    base.weights[:, last] = 0.0
    gram, products = own.fit(base.points)
    fitted, _ = fit_convex(gram[:last, :last], products[:last])
    fitted = (fitted / fitted.sum(axis=0)).T
    # An unused slot, which may be before those of far bones, repeats the first bone and stays unused.
    repeated = np.where(base.bones[:, 1:last] == base.bones[:, :1], fitted[:, 1:], 0.0)
    fitted[:, 0] += repeated.sum(axis=1)
    fitted[:, 1:] -= repeated
    change = np.zeros(base.weights.shape)
    change[:, :last] = fitted - base.weights[:, :last]
    length = np.abs(change).max(axis=1, keepdims=True)
    change *= np.minimum(1.0, SMALL / np.where(length > 0, length, 1.0))
    left = replace(base, weights=base.weights + change)
    if optimize_rest_pose:
        left.points = fit_rest_positions(*own.system(left.weights), left.points)
    # Under another strongest bone, limits could cut weights by more.
    unlike = limits.broken(now) | (left.weights.argmax(axis=1) != base.weights.argmax(axis=1))
    left.put(unlike, base.of(unlike))
    left.weights = np.where(unlike[:, None], left.weights, limits.capped(left))
    return left


def _errors(own: OwnBones, state: VertexState) -> np.ndarray:
    return squared_errors(*own.system(state.weights), state.points)
