# SPDX-License-Identifier: GPL-3.0-or-later
"""Convex weights of at most K bones for each vertex, chosen among the bones that already move it or its neighbors."""

import numpy as np
from scipy import sparse

from ..decomposition.bone_model import BoneModel, monomials
from ..decomposition.vertex_step import fit_strongest, predictions_gram
from ..decomposition.weights import descend, fit_convex
from ..deform.influences import weight_matrix

# Rings of neighbors whose bones take part, the most bones that do, and the least share for it.
_RINGS, _MOST_CANDIDATES, _LEAST_SHARE = 2, 14, 1e-3
# Steps of the rough fit, and of that after each bone that is left out; bones left out one by one.
_STEPS, _STEPS_BETWEEN, _LEFT_OUT = 40, 20, 4
_BLOCK = 2048
# How far, in squared lengths of the first bone's prediction, unused slots seem to be from the data.
_UNUSED = 1e3


class NearbyWeights:
    """The choice of weights for the vertices ``rows`` (n,) of a mesh.

    points (N, 4) at rest, homogeneous; data (N, 3F) the targets of weights that sum to 1; edges (E, 2). near: the
    matrix (N, P) of the earlier weights, to which a pull draws. room (n,): the most bones of each vertex.
    """

    def __init__(
        self,
        points: np.ndarray,
        data: np.ndarray,
        edges: np.ndarray,
        rows: np.ndarray,
        near: sparse.csr_matrix,
        allowed: np.ndarray,
        room: np.ndarray,
        pull: float,
    ):
        self._points, self._data, self._rows, self._near = points, data, rows, near
        self._allowed, self._room, self._pull = allowed, room, pull
        count = len(points)
        ones = np.ones(2 * len(edges))
        around = sparse.coo_matrix((ones, (edges.T.ravel(), edges[:, ::-1].T.ravel())), shape=(count, count)).tocsr()
        # An edge may be there twice, once for each side of a seam.
        around = (around + sparse.eye(count)).astype(bool).astype(float)
        self._means = (sparse.diags(1.0 / np.asarray(around.sum(axis=1)).ravel()) @ around).tocsr()

    def choose(self, motion: np.ndarray, present: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Bones and weights (n, K), strongest first, for Tᵀ (4P, 3F) and the ``present`` weights (N, P), whose bones
        are the candidates."""
        model = BoneModel(motion)
        most = int(self._room.max(initial=1))
        bones, weights = np.zeros((len(self._rows), most), np.int32), np.zeros((len(self._rows), most))
        spread = present
        for _ in range(_RINGS):
            spread = spread + self._means @ spread
        spread = spread.tocsr()
        for room in np.unique(self._room):
            same = np.flatnonzero(self._room == room)
            for start in range(0, len(same), _BLOCK):
                part = same[start : start + _BLOCK]
                found, shares = self._choose(model, spread, self._rows[part], int(room))
                bones[part] = found[:, :1]
                bones[part, : found.shape[1]], weights[part, : found.shape[1]] = found, shares
        return bones, weights

    def _choose(
        self, model: BoneModel, spread: sparse.csr_matrix, rows: np.ndarray, room: int
    ) -> tuple[np.ndarray, np.ndarray]:
        shares = spread[rows].toarray() * self._allowed
        size = min(_MOST_CANDIDATES, shares.shape[1])
        candidates = np.argsort(-shares, axis=1, kind="stable")[:, :size]
        start = np.take_along_axis(shares, candidates, axis=1)
        start = np.where(start > _LEAST_SHARE * start[:, :1], start, 0.0)
        unused = start <= 0
        candidates = np.where(unused, candidates[:, :1], candidates)
        points = self._points[rows]
        products = np.take_along_axis(
            np.einsum("npi,ni->np", model.data_products(self._data[rows]), points), candidates, axis=1
        )
        gram = predictions_gram(model, candidates, monomials(points))
        towards = np.take_along_axis(self._near[rows].toarray(), candidates, axis=1)
        own = np.arange(size)
        gram[own, own] += self._pull
        products += self._pull * towards
        # No step goes to an unused slot: with the pull, a share in a repeated bone would cost less than its own.
        products = np.ascontiguousarray((products - _UNUSED * unused * np.abs(gram[0, 0])[:, None]).T)
        if room == 1:
            # The strongest bone of a blend may be far from the best one alone.
            kept, fitted, _ = fit_strongest(gram, products, 2.0 * products - gram[own, own], room)
        else:
            start = np.ascontiguousarray((start / start.sum(axis=1, keepdims=True)).T)
            rough = descend(gram, products, start, _STEPS)
            kept, fitted, errors = fit_strongest(gram, products, rough, room)
            if size > room:
                other, refitted, others = _one_by_one(gram, products, rough, room)
                better = others < errors
                kept, fitted = np.where(better, other, kept), np.where(better, refitted, fitted)
        found, fitted = np.take_along_axis(candidates, kept.T, axis=1), fitted.T
        matrix = weight_matrix(found, fitted / fitted.sum(axis=1, keepdims=True), model.bone_count).copy()
        matrix.sum_duplicates()
        return _rows_of(matrix, found.shape[1])


def _rows_of(matrix: sparse.csr_matrix, width: int) -> tuple[np.ndarray, np.ndarray]:
    from ..binding.influence_rows import matrix_influences, padded_influences

    matrix.eliminate_zeros()
    return padded_influences(*matrix_influences(matrix, width), width)


def _one_by_one(
    gram: np.ndarray, products: np.ndarray, strength: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As ``fit_strongest``, after leaving out, one by one, the bone whose weight another takes over best."""
    everyone = np.arange(products.shape[1])
    size = min(room + _LEFT_OUT, len(products))
    kept = np.argsort(-strength, axis=0, kind="stable")[:size]
    gram, products = gram[kept[:, None], kept[None], everyone], products[kept, everyone]
    weights = np.take_along_axis(strength, kept, axis=0)
    weights /= weights.sum(axis=0)
    while len(weights) > room:
        weights = descend(gram, products, weights, _STEPS_BETWEEN)
        places = np.arange(len(weights))
        squared = gram[places, places]
        gradient = np.einsum("ijn,jn->in", gram, weights) - products
        apart = np.maximum(squared[:, None] - 2.0 * gram + squared[None], 0.0)
        cost = 2.0 * weights[:, None] * (gradient[None] - gradient[:, None]) + weights[:, None] ** 2 * apart
        cost[places, places] = np.inf
        least = np.argmin(cost.min(axis=1), axis=0)
        receiver = np.argmin(cost[least, :, everyone], axis=1)
        weights[receiver, everyone] += weights[least, everyone]
        stay = np.argsort(places[:, None] == least, axis=0, kind="stable")[:-1]
        gram, products = gram[stay[:, None], stay[None], everyone], products[stay, everyone]
        kept, weights = np.take_along_axis(kept, stay, axis=0), np.take_along_axis(weights, stay, axis=0)
    return kept, *fit_convex(gram, products)
