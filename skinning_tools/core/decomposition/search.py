# SPDX-License-Identifier: GPL-3.0-or-later
"""A better choice of bones than any single start leads to: several starts, and bones that move.

The alternation of vertices and bones ends in the nearest of many valleys. Here some bones are taken from where they are
missed least, and begin again where the error is largest; if that ends lower after some sweeps, it stays. What a bone
is worth is measured with its vertices fitted to the bones around it, since others can replace most bones in part.
"""

import numpy as np
from scipy.spatial import cKDTree

from ..progress import Progress, span
from ..solve_effort import SWEEPS_OF_MOVE
from .bone_model import BoneModel
from .prepared import Prepared
from .removals import sharing_bones, with_heirs
from .rest_pose import blended_system, squared_errors
from .skin import Skin, begin
from .types import Settings
from .vertex_step import VertexState

# The sweeps after which starts are compared.
_SWEEPS_OF_START = 15
# The share of the bones that move at once at first; after a move that was in vain, half as many.
_AT_ONCE = 1 / 8
# The vertices from which a bone begins again, as a share of the mean number of vertices of a bone, and at least.
_PATCH, _SMALLEST_PATCH = 0.5, 8
# The share of the progress of the search.
_SEARCHED = 0.7


def search_bones(
    prepared: Prepared, settings: Settings, starts: list[np.ndarray], sweeps: range, moves: int, progress: Progress
) -> Skin:
    """The skin with the least error after ``sweeps``, by their numbers, from the best of ``starts``, whose bones have
    moved up to ``moves`` times; each start is the bone (N,) of every vertex. Raises Cancelled."""
    optimize = settings.optimize_rest_pose
    first, trial = sweeps[:_SWEEPS_OF_START], range(1, 1 + SWEEPS_OF_MOVE)
    begun = []
    for number, labels in enumerate(starts):
        part = span(progress, 0.1 * number / len(starts), 0.1 * (number + 1) / len(starts))
        begun.append(begin(prepared, settings, labels).improved(first, optimize, part))
    best = min(begun, key=lambda skin: skin.errors[-1])
    count = max(1, round(_AT_ONCE * best.bone_count))
    skipped = 0
    for number in range(moves if best.bone_count > 1 else 0):
        part = span(progress, 0.1 + (_SEARCHED - 0.1) * number / moves, 0.1 + (_SEARCHED - 0.1) * (number + 1) / moves)
        moved = _moved(best, count, skipped).improved(trial, optimize, part)
        if moved.errors[-1] < best.errors[-1]:
            best, skipped = moved, 0
        elif count > 1:
            count //= 2
        else:
            skipped += 1
    return best.improved(sweeps[len(first) :], optimize, span(progress, _SEARCHED, 1.0))


def _moved(skin: Skin, count: int, skipped: int) -> Skin:
    """``count`` of the bones that are missed least moved to where the error is largest, apart from the ``skipped``
    largest; half as many bones are passed over, too."""
    model, state = skin.kind.model(skin.rows), skin.state.copy()
    data = skin.kind.source.rows(slice(None))
    products = model.data_products(data)
    left = squared_errors(*blended_system(model, products, state.bones, state.weights), state.points)
    costs, replacements = _removals(model, products, state, left)
    gone = np.argsort(costs, kind="stable")[min(skipped // 2, len(costs) - count) :][:count]
    for bone in gone:
        # Where two bones of one vertex go, the later one takes over what the first had given it.
        vertices, without = replacements[bone]
        state.bones[vertices], state.weights[vertices] = without.bones, without.weights
    left = np.maximum(left + np.einsum("ij,ij->i", data, data), 0.0)
    for bone, patch in zip(gone, _worst_patches(state, left, skin.bone_count, count, skipped), strict=False):
        state.bones[patch], state.weights[patch] = bone, 0.0
        state.weights[patch, 0] = 1.0
    return skin.fitted_to(state)


def _removals(
    model: BoneModel, products: np.ndarray, state: VertexState, left: np.ndarray
) -> tuple[np.ndarray, dict[int, tuple[np.ndarray, VertexState]]]:
    """How much the squared error rises without each bone (P,); and its vertices, with other bones instead."""
    others = ~np.eye(model.bone_count, dtype=bool)
    near = sharing_bones(state, model.bone_count) & others
    heirs = np.where(near.any(axis=1, keepdims=True), near, others)
    costs, replacements = np.zeros(model.bone_count), {}
    importance = np.ones(len(left)) if state.importance is None else state.importance
    for bone in range(model.bone_count):
        vertices = np.flatnonzero(((state.bones == bone) & (state.weights > 0)).any(axis=1))
        without, errors = with_heirs(heirs[bone], model, products[vertices], state.of(vertices))
        costs[bone] = importance[vertices] @ (errors - left[vertices])
        replacements[bone] = vertices, without
    return costs, replacements


def _worst_patches(state: VertexState, left: np.ndarray, bone_count: int, count: int, skipped: int) -> list[np.ndarray]:
    """``count`` sets of neighboring vertices with the largest squared errors ``left`` (N,), apart from the first
    ``skipped``; none shares a vertex with another."""
    size = min(max(round(_PATCH * len(left) / bone_count), _SMALLEST_PATCH), len(left))
    points = state.points[:, :3]
    near = cKDTree(points).query(points, k=size)[1].reshape(len(left), size)
    weighed = left if state.importance is None else state.importance * left
    sums = weighed[near].sum(axis=1)
    taken = np.zeros(len(left), dtype=bool)
    found: list[np.ndarray] = []
    for vertex in np.argsort(-sums, kind="stable"):
        if not taken[near[vertex]].any():
            taken[near[vertex]] = True
            found.append(near[vertex])
            if len(found) == skipped + count:
                break
    return found[-count:]
