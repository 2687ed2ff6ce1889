# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights, influences and rest positions of a block of vertices for given bone transforms (sections 4.3 and 4.4).

The paper picks the bones that predict a vertex best alone. Here the vertex keeps its bones, the ones that would lower
its error most from where it is join as candidates, and a convex fit over all of them decides which stay: clearly more
accurate at the same number of influences, and a bone that has become redundant makes room for another.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..deform.influences import weight_matrix
from ..dense import product
from ..strongest import strongest_first
from .bone_model import BoneModel, monomials
from .rest_pose import OwnBones, fit_rest_positions, squared_errors
from .weights import descend, fit_convex

# The number of candidates beyond the allowed influences, and the steps of the rough fit over all of them. Adding one
# bone in a sweep ends with clearly less error than adding two or three: no bone is added before the others have adapted
# to the last change.
_EXTRA_CANDIDATES = 1
_ROUGH_STEPS = 12


@dataclass
class VertexState:
    """The vertices as the solver has them. points (N, 4) homogeneous rest positions, bones and weights (N, K).

    importance (N,): how often each counts where bones are fitted, in the mean once; None where all count alike.
    """

    points: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    importance: np.ndarray | None = None

    def copy(self) -> "VertexState":
        return replace(self, points=self.points.copy(), bones=self.bones.copy(), weights=self.weights.copy())

    def of(self, part: slice | np.ndarray) -> "VertexState":
        """Some of the vertices."""
        importance = None if self.importance is None else self.importance[part]
        return VertexState(self.points[part], self.bones[part], self.weights[part], importance)

    def put(self, part: slice | np.ndarray, others: "VertexState") -> None:
        """Make some of the vertices, in place, like the ``others``, but for their importance."""
        self.points[part], self.bones[part], self.weights[part] = others.points, others.bones, others.weights


def improve_vertices(
    model: BoneModel, data: np.ndarray, state: VertexState, part: slice, *, optimize_rest_pose: bool
) -> np.ndarray:
    """Better weights, then better rest positions for the vertices ``part`` of ``state``, in place.

    With the rest positions, weights of the same bones and positions take turns once more: that costs a fraction of the
    choice of bones, and saves a tenth of all sweeps. data (n, d). Returns the squared error of each vertex less its
    ‖y‖² (n,). No vertex gets worse.
    """
    return improve_by_products(model, model.data_products(data), state, part, optimize_rest_pose=optimize_rest_pose)


def improve_by_products(
    model: BoneModel,
    products: np.ndarray,
    state: VertexState,
    part: slice,
    *,
    optimize_rest_pose: bool,
    allowed: np.ndarray | None = None,
) -> np.ndarray:
    """As ``improve_vertices``, from ``products`` (n, P, 4) of ``BoneModel.data_products``; allowed: see
    ``choose_among``."""
    points, now = state.points[part], (state.bones[part], state.weights[part])
    choose = choose_weights if allowed is None else partial(choose_among, allowed)
    bones, weights, errors = choose(model, products, points, *now)
    if optimize_rest_pose:
        own = OwnBones(model, products, bones)
        points = _moved(own, points, weights)[0]
        weights = _reweighted(own, points, bones, weights)
        points, errors = _moved(own, points, weights)
        bones, weights = strongest_first(bones, weights)
        state.points[part] = points
    state.bones[part], state.weights[part] = bones, weights
    return errors


def _moved(own: OwnBones, points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rest positions (n, 4) for given weights, and the squared errors less ‖y‖² (n,)."""
    matrices, right = own.system(weights)
    points = fit_rest_positions(matrices, right, points)
    return points, squared_errors(matrices, right, points)


def _reweighted(own: OwnBones, points: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """New weights (n, K) of the same bones for new rest positions; the old where no worse. Rows sum to exactly 1."""
    gram, data = own.fit(points)
    present = np.ascontiguousarray(weights.T)
    now = np.einsum("in,ijn,jn->n", present, gram, present) - 2.0 * np.einsum("in,in->n", present, data)
    fitted, errors = fit_convex(gram, data)
    weights = np.where(errors < now, fitted / fitted.sum(axis=0), present).T
    # The weight of a slot that repeats the first bone goes to that.
    weights[:, 1:] = np.where(bones[:, 1:] == bones[:, :1], 0.0, weights[:, 1:])
    weights[:, 0] = 1.0 - weights[:, 1:].sum(axis=1)
    return weights


def predictions_gram(model: BoneModel, bones: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """(m, m, n) inner products of the predictions of ``bones`` (n, m)."""
    count, size = bones.shape
    gram = np.empty((size, size, count))
    for i in range(size):
        blocks = model.pair_blocks(bones[:, i], bones.T[: i + 1])
        gram[i, : i + 1] = gram[: i + 1, i] = np.einsum("jni,ni->jn", blocks, powers)
    return gram


def single_bones(points: np.ndarray, labels: np.ndarray, influences: int) -> VertexState:
    """Vertices (N, 4) that each follow the bone ``labels`` (N,), with room for so many influences."""
    bones = np.repeat(labels[:, None], influences, axis=1).astype(np.int32)
    weights = np.zeros(bones.shape)
    weights[:, 0] = 1.0
    return VertexState(points, bones, weights)


def best_single_bones(model: BoneModel, data: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The bone (n,) that alone predicts each vertex best; points (n, 4), data (n, d)."""
    return np.argmin(model.squared_distances(points, data), axis=1)


@dataclass(frozen=True, eq=False)
class Pull:
    """A pull of weights towards others: strength (n,) times ‖w − means‖² is added to a vertex's squared error.

    means (n, P); of the sum, strength · ‖means‖² is left out everywhere, as ‖y‖² is.
    """

    strength: np.ndarray
    means: np.ndarray


def choose_weights(
    model: BoneModel,
    products: np.ndarray,
    points: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    pull: Pull | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """New bones and weights (n, K), strongest first, and the squared error less ‖y‖² (n,), with what ``pull`` adds.

    products (n, P, 4) from ``BoneModel.data_products``; bones and weights as they are now, never made worse. allowed
    (n, P) bool: see ``choose_among``; as many for all vertices, or more than are looked at.
    """
    count, influences = bones.shape
    rows = np.arange(count)
    powers = monomials(points)
    with_data = np.einsum("npi,ni->np", products, points)
    if pull is not None:
        with_data += pull.strength[:, None] * pull.means
    candidates = _candidates(model, points, powers, with_data, bones, weights, pull, allowed)
    size = candidates.shape[1]
    gram = predictions_gram(model, candidates, powers)
    if pull is not None:
        gram[np.arange(size), np.arange(size)] += pull.strength
    data = np.ascontiguousarray(np.take_along_axis(with_data, candidates, axis=1).T)
    present = np.zeros((size, count))
    for k in range(influences):
        present += np.where(candidates == bones[:, k, None], weights[:, k, None], 0.0).T
    rough = descend(gram, data, present.copy(), _ROUGH_STEPS)
    kept, fitted, errors = fit_strongest(gram, data, rough, influences)
    changed = np.nonzero((present > 0).sum(axis=0) > (np.take_along_axis(present, kept, axis=0) > 0).sum(axis=0))[0]
    if len(changed):
        # If a bone in use was given up, keeping all of them must not be the better choice.
        kept_now, fitted_now, errors_now = fit_strongest(
            gram[:, :, changed], data[:, changed], present[:, changed], influences
        )
        better = errors_now < errors[changed]
        back = changed[better]
        kept[:, back], fitted[:, back], errors[back] = kept_now[:, better], fitted_now[:, better], errors_now[better]
    chosen, fitted = strongest_first(candidates[rows, kept].T, fitted.T)
    return chosen.astype(bones.dtype), fitted / fitted.sum(axis=1, keepdims=True), errors


def choose_among(
    allowed: np.ndarray,
    model: BoneModel,
    products: np.ndarray,
    points: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``choose_weights`` with bones ``allowed`` (n, P) bool only, at least one for each vertex, and all that have
    weight now. Slots that are left over repeat the strongest bone, without weight."""
    count, influences = bones.shape
    chosen, fitted, errors = bones.copy(), np.zeros(weights.shape), np.empty(count)
    sizes = np.minimum(allowed.sum(axis=1), influences + _EXTRA_CANDIDATES + 1)
    for size in np.unique(sizes):
        same = sizes == size
        # Their products are not copied where that is not needed.
        few = slice(None) if same.all() else np.flatnonzero(same)
        given = model, products[few], points[few], bones[few], weights[few]
        found, shares, errors[few] = choose_weights(*given, allowed=allowed[few])
        chosen[few] = found[:, :1]
        chosen[few, : found.shape[1]], fitted[few, : found.shape[1]] = found, shares
    return chosen, fitted, errors


def fit_strongest(
    gram: np.ndarray, data: np.ndarray, strength: np.ndarray, influences: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The exact fit over each vertex's strongest candidates: their places (K, n), weights (K, n), errors (n,)."""
    rows = np.arange(data.shape[1])
    if len(data) > influences:
        kept = np.argpartition(-strength, influences - 1, axis=0)[:influences]
        gram, data = gram[kept[:, None], kept[None], rows], data[kept, rows]
    else:
        kept = np.repeat(np.arange(len(data))[:, None], len(rows), axis=1)
    return kept, *fit_convex(gram, data)


def best_shares(
    gram: np.ndarray, products: np.ndarray, present: np.ndarray, allowed: int, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Shares (m, n), the rig's own first, at most ``allowed`` others; and errors (n,). Never worse than ``present``.

    steps: of the descent that finds the strongest.
    """
    size = allowed + 1
    found = []
    for strength in (descend(gram, products, present.copy(), steps), present):
        strength = strength.copy()
        strength[0] = np.inf
        kept, fitted, errors = fit_strongest(gram, products, strength, size)
        shares = np.zeros_like(present)
        np.put_along_axis(shares, kept, fitted / fitted.sum(axis=0), axis=0)
        found.append((shares, errors))
    (rough, rough_errors), (same, same_errors) = found
    better = rough_errors <= same_errors
    return np.where(better, rough, same), np.where(better, rough_errors, same_errors)


def _candidates(
    model: BoneModel,
    points: np.ndarray,
    powers: np.ndarray,
    with_data: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    pull: Pull | None,
    allowed: np.ndarray | None,
) -> np.ndarray:
    """Bones worth a closer look (n, M): those in use, then those that a step toward them helps most."""
    count, influences = bones.shape
    most = model.bone_count if allowed is None else int(allowed[0].sum())
    size = min(influences + _EXTRA_CANDIDATES, most)
    if size == most:
        return np.tile(np.arange(size), (count, 1)) if allowed is None else np.nonzero(allowed)[1].reshape(count, size)
    rows = np.arange(count)
    if weights[:, 0].min() == 1.0 and pull is None:
        # Right after the segmentation there is no blend to improve on yet.
        alone = product(powers, model.packed_own) - 2.0 * with_data
        if allowed is not None:
            alone[~allowed] = np.inf
        return np.argpartition(alone, size - 1, axis=1)[:, :size]
    with_blend = model.products_with_blends(powers, bones, weights)
    alone = product(powers, model.packed_own)
    if pull is not None:
        # The pull's part of the gram is the unit matrix, by its strength.
        with_blend += pull.strength[:, None] * weight_matrix(bones, weights, model.bone_count).toarray()
        alone += pull.strength[:, None]
    blend_squared = np.zeros(count)
    blend_data = np.zeros(count)
    for k in range(influences):
        blend_squared += weights[:, k] * with_blend[rows, bones[:, k]]
        blend_data += weights[:, k] * with_data[rows, bones[:, k]]
    along = with_data - with_blend - (blend_data - blend_squared)[:, None]
    length = alone - 2.0 * with_blend + blend_squared[:, None]
    step = np.clip(along / np.where(length > 0, length, np.inf), 0.0, 1.0)
    gain = step * (2.0 * along - step * length)
    if allowed is not None:
        gain[~allowed] = -np.inf
    for k in range(influences):
        in_use = weights[:, k] > 0
        gain[rows[in_use], bones[in_use, k]] = np.inf
    return np.argpartition(-gain, size - 1, axis=1)[:, :size]
