# SPDX-License-Identifier: GPL-3.0-or-later
"""Influences that hardly move their vertex in the animation, left out of a skeleton's weights.

A fit uses all influences that a vertex may have, many of them for next to nothing. Engines pay for each of them, and in
poses beyond the animation the vertex follows them.
"""

from collections.abc import Iterator

import numpy as np

from ..progress import Progress, checkpoint, ignore
from ..strongest import strongest_first
from .bone_model import BoneModel
from .near_weights import PoseLimits, squared_error
from .reduction import Rows
from .rest_pose import OwnBones
from .sweeps import vertex_blocks
from .vertex_step import VertexState
from .weights import fit_convex

# The share by which the squared error may grow, so that E_RMS grows by half a percent at most.
LOSS = 0.01
# Larger weights stay: over a surface, a step of this size does not show. When an influence goes, the others share its
# weight, and are fitted again by no more than this.
SMALL = 0.01


def without_idle_influences(
    model: BoneModel, state: VertexState, source: Rows, limits: PoseLimits, progress: Progress = ignore
) -> VertexState:
    """``state`` with fewer influences, each vertex's strongest first as before; the same object where none is idle.

    A vertex loses its weakest influences, one after the other. Over all vertices those go first that cost least, until
    the squared error has grown by LOSS; at no vertex does it grow by more than is unseen. Vertices within ``limits``
    stay there. Raises Cancelled.
    """
    count, influences = state.weights.shape
    costs, blocks = np.zeros((count, influences - 1)), vertex_blocks(count)
    for part in blocks:
        for step, (cost, _) in enumerate(_fewer(model, state.of(part), source.rows(part))):
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
        for step, (_, weights) in enumerate(_fewer(model, few, source.rows(part))):
            now = lost[part, step]
            result.weights[part][now] = weights[now]
    result.bones, result.weights = strongest_first(result.bones, result.weights)
    beyond = limits.broken(result) & ~limits.broken(state)
    result.put(beyond, state.of(beyond))
    return result if (result.weights > 0).sum() < (state.weights > 0).sum() else state


def _fewer(model: BoneModel, state: VertexState, data: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Weights (n, K) without the last influence, then without the last two, and so on; before them what each step adds
    to the squared errors (n,): infinitely much where the influence is not small."""
    gram, products = OwnBones(model, model.data_products(data), state.bones).fit(state.points)
    weights = state.weights.T.copy()
    before = _errors(gram, products, weights)
    for last in range(len(weights) - 1, 0, -1):
        small = np.flatnonzero((weights[last] > 0) & (weights[last] <= SMALL))
        shared = weights[:last, small] / weights[:last, small].sum(axis=0)
        fitted, _ = fit_convex(gram[:last, :last, small], products[:last, small])
        change = fitted / fitted.sum(axis=0) - shared
        length = np.abs(change).max(axis=0)
        weights[:last, small] = shared + np.minimum(1.0, SMALL / np.where(length > 0, length, 1.0)) * change
        weights[last, small] = 0.0
        after = _errors(gram, products, weights)
        yield np.where(weights[last] > 0, np.inf, after - before), weights.T
        before = after


def _errors(gram: np.ndarray, products: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.einsum("in,ijn,jn->n", weights, gram, weights) - 2.0 * np.einsum("in,in->n", weights, products)
