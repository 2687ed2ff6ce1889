# SPDX-License-Identifier: GPL-3.0-or-later
"""The algorithm of Kavan, Sloan & O'Sullivan 2010 as published, so that its results can be reproduced.

Reduction by maximum-norm columns (Algorithm 1) at ε = 0.0005 √(3NF); regions grown from seed triangles, never revised;
then transforms, rest pose and weights in turn, each in reduced coordinates, no step extrapolated and none taken back.
What the paper leaves open: positions are taken less each frame's mean, which changes no skinning error; of the order of
the steps, which it says matters little, transforms come first and then weights, rest pose and transforms in turn, as
rest positions that are fitted to the first regions stay behind; a bone that is redundant for a vertex is replaced by
the next best of twice as many.
"""

import numpy as np

from ..dense import product
from ..progress import Progress, checkpoint, span
from ..strongest import strongest_first
from .bone_model import BoneModel, homogeneous, monomials
from .reduction import AnimationMatrix, Reduction, reduce_animation
from .rest_pose import blended_system, fit_rest_positions
from .segmentation import grow_regions
from .sweeps import collect_equations, over_blocks
from .target_error import Watch
from .transforms import NormalEquations
from .types import Settings
from .vertex_step import VertexState, predictions_gram
from .weights import fit_convex

REDUCTION_ERROR = 0.0005
# As a share of the squared distance between two bones' predictions: the least that the prediction of a further bone
# must add to the subspace of the others.
_REDUNDANT = 1e-10


def reduce_as_published(matrix: AnimationMatrix, progress: Progress) -> Reduction:
    """Algorithm 1 at the paper's threshold (section 5). Raises Cancelled."""
    return reduce_animation(matrix, REDUCTION_ERROR, "MAXIMUM_NORM", progress)


def first_regions(
    matrix: AnimationMatrix,
    reduction: Reduction,
    triangles: np.ndarray,
    bone_count: int,
    influences: int,
    progress: Progress,
) -> VertexState:
    """One bone a vertex, and the first frame as rest pose (section 4.1). Raises Cancelled."""
    rest = matrix.rest_pose()
    labels = grow_regions(matrix, reduction, rest, triangles, bone_count, progress)
    bones = np.repeat(labels[:, None], min(influences, bone_count), axis=1).astype(np.int32)
    weights = np.zeros(bones.shape)
    weights[:, 0] = 1.0
    return VertexState(homogeneous(rest), bones, weights)


def iterate(
    reduction: Reduction, state: VertexState, bone_count: int, settings: Settings, progress: Progress, watch: Watch
) -> tuple[np.ndarray, list[float]]:
    """The iterations of sections 4.2 to 4.4, ``state`` changed in place.

    settings: iterations and optimize_rest_pose count. watch(iteration, ‖TX − C‖² − ‖C‖²) may raise.
    Returns the reduced transforms Tᵀ (4P, d) and the values given to ``watch``. Raises Cancelled.
    """
    rows = _transforms(collect_equations(state, reduction, bone_count))
    errors = []
    for number in range(settings.iterations):
        model = BoneModel(rows)
        part = span(progress, number / settings.iterations, (number + 1) / settings.iterations)

        def improve(part: slice, data: np.ndarray, model: BoneModel = model) -> None:
            _improve(model, data, state, part, settings.optimize_rest_pose)

        equations = over_blocks(state, reduction, bone_count, part, f"Iteration {number + 1}", improve)
        rows = _transforms(equations)
        errors.append(equations.squared_error(rows))
        watch(number, errors[-1])
    checkpoint(progress, 1.0, "Iterations")
    return rows, errors


def _transforms(equations: NormalEquations) -> np.ndarray:
    """Section 4.2: Cholesky, or where that fails the pseudo-inverse."""
    return equations.solve(np.zeros_like(equations.products), 0.0)


def _improve(model: BoneModel, data: np.ndarray, state: VertexState, part: slice, optimize_rest_pose: bool) -> None:
    """Sections 4.4 and 4.3 for some vertices."""
    products = model.data_products(data)
    bones, weights = best_single_weights(model, products, state.points[part], state.bones.shape[1])
    state.bones[part], state.weights[part] = bones, weights
    if optimize_rest_pose:
        system = blended_system(model, products, bones, weights)
        state.points[part] = fit_rest_positions(*system, state.points[part])


def best_single_weights(
    model: BoneModel, products: np.ndarray, points: np.ndarray, influences: int
) -> tuple[np.ndarray, np.ndarray]:
    """Convex weights over the bones that alone predict each vertex best (section 4.4): bones and weights (n, K).

    products (n, P, 4) from ``BoneModel.data_products``; influences at most P. Strongest first.
    """
    rows = np.arange(len(points))
    powers = monomials(points)
    with_data = np.einsum("npi,ni->np", products, points)
    distances = product(powers, model.packed_own) - 2.0 * with_data
    size = min(2 * influences, model.bone_count)
    candidates = np.argpartition(distances, size - 1, axis=1)[:, :size]
    order = np.argsort(np.take_along_axis(distances, candidates, axis=1), axis=1, kind="stable")
    candidates = np.take_along_axis(candidates, order, axis=1)
    gram = predictions_gram(model, candidates, powers)
    kept = _independent(gram, influences)
    chosen = candidates[rows, kept].T
    data = np.take_along_axis(with_data, chosen, axis=1).T
    weights = fit_convex(gram[kept[:, None], kept[None], rows], np.ascontiguousarray(data))[0]
    weights = np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum(axis=0)
    return strongest_first(chosen, weights.T)


def _independent(gram: np.ndarray, count: int) -> np.ndarray:
    """Places (count, n) of the first points among m whose edges from the first are linearly independent.

    gram (m, m, n), the best first. Gram–Schmidt on inner products. Where fewer are independent, the first points of
    those left fill up: they add nothing and do no harm.
    """
    size = len(gram)
    edges = gram - gram[:1] - gram[:, :1] + gram[0, 0]
    lengths = np.einsum("iin->in", edges).copy()
    taken = np.zeros((size, gram.shape[2]), dtype=bool)
    taken[0] = True
    for place in range(1, size):
        left = edges[place, place]
        adds = (left > _REDUNDANT * lengths[place]) & (left > 0) & (taken.sum(axis=0) < count)
        taken[place] = adds
        along = edges[:, place] / np.where(adds, left, np.inf)
        edges = edges - along[:, None] * edges[place]
    return np.sort(np.argsort(~taken, axis=0, kind="stable")[:count], axis=0)
