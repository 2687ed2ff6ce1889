# SPDX-License-Identifier: GPL-3.0-or-later
"""The convex weights of vertices for bones whose motion is given, some of which may be kept."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..binding.influence_rows import matrix_influences, padded_influences
from ..deform.influences import weight_matrix
from ..dense import product
from ..progress import Progress, checkpoint
from ..solve_memory import LARGEST_KEPT
from ..strongest import strongest_first
from .bone_model import BoneModel, monomials
from .reduction import AnimationMatrix
from .rest_pose import blended_system, fit_rest_positions
from .smoothness import Smoothness, independent_sets
from .sweeps import vertex_blocks
from .vertex_step import Pull, VertexState, choose_weights, fit_strongest, predictions_gram
from .weights import descend

# In each pass other bones compete for a vertex's influences; few vertices change after the third.
_PASSES = 8
_SETTLED = 1e-12
# The number of bones whose joint fit shows which of them matter, and the steps towards that fit.
_LOOKED_AT, _DESCENT_STEPS = 24, 60
_STAGE = "Weights"
# Smoothing sweeps over all vertices, and the share of the objective that a sweep must save for another one to follow.
_SMOOTHING_SWEEPS = 40
WORTH_SMOOTHING = 1e-3
# A vertex with a smaller free share keeps its weights.
_LEAST_BUDGET = 1e-6


@dataclass(frozen=True, eq=False)
class Given:
    """Existing weights: bones and weights (N, K), which count as in Blender (``convex_influences``).

    locked_bones (P,) bool: bones whose weights stay; the other bones share the rest. locked_vertices (N,) bool:
    vertices whose weights all stay.
    """

    bones: np.ndarray
    weights: np.ndarray
    locked_bones: np.ndarray
    locked_vertices: np.ndarray

    @property
    def free_vertices(self) -> np.ndarray:
        """(N,) bool: the vertices with weights that may change, of rows that sum to 1."""
        held = np.where(self.locked_bones[self.bones], self.weights, 0.0).sum(axis=1)
        return ~self.locked_vertices & (1.0 - held > _LEAST_BUDGET)


class WeightProblem:
    """Free weights u (n, K) of free bones; the weights of a vertex are its held weights and ``budget`` · u.

    model: of the free bones ``free`` (P',) alone. held (N, P): the weights that stay. allowed (N,): how many free bones
    a vertex may have. chosen: the vertices with a free share.
    """

    def __init__(
        self,
        matrix: AnimationMatrix,
        points: np.ndarray,
        rows: np.ndarray,
        free: np.ndarray,
        held: sparse.csr_matrix,
        most: int,
        allowed: np.ndarray,
        locked_vertices: np.ndarray,
    ):
        self._matrix, self._free, self._held = matrix, free, held
        self._bone_count, self._most = len(rows) // 4, most
        self._goal: tuple[sparse.csr_matrix, np.ndarray] | None = None
        self.move(rows)
        self._budget = np.maximum(1.0 - np.asarray(held.sum(axis=1)).ravel(), 0.0)
        self._allowed = np.minimum(allowed, len(free))
        self.chosen = np.flatnonzero(~locked_vertices & (self._budget > _LEAST_BUDGET) & (self._allowed > 0))
        shape = len(points), max(min(most, len(free)), 1)
        self._state = VertexState(points, np.zeros(shape, np.int32), np.zeros(shape))
        self._given_points = points.copy()
        self._kept_products: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(
        cls, matrix: AnimationMatrix, points: np.ndarray, rows: np.ndarray, most: int, given: Given | None
    ) -> "WeightProblem":
        bone_count, count = len(rows) // 4, len(points)
        if given is None:
            held = sparse.csr_matrix((count, bone_count))
            return cls(
                matrix, points, rows, np.arange(bone_count), held, most, np.full(count, most), np.zeros(count, bool)
            )
        locked = np.asarray(given.locked_bones, bool)
        stays = locked[given.bones] | given.locked_vertices[:, None]
        # A copy: the matrix shares its indices with the caller, and the next lines sort them.
        held = weight_matrix(given.bones, np.where(stays, given.weights, 0.0), bone_count).copy()
        held.sum_duplicates()
        held.eliminate_zeros()
        allowed = np.maximum(most - np.diff(held.indptr), 1)
        return cls(matrix, points, rows, np.flatnonzero(~locked), held, most, allowed, given.locked_vertices)

    def start_from(self, bones: np.ndarray, weights: np.ndarray) -> None:
        """Take the chosen vertices' free weights from rows (N, K) that sum to 1, with no more bones than allowed."""
        place = np.full(self._bone_count, -1)
        place[self._free] = np.arange(len(self._free))
        free = place[bones]
        weights = np.where(free >= 0, weights, 0.0) / np.maximum(self._budget, _LEAST_BUDGET)[:, None]
        matrix = weight_matrix(np.maximum(free, 0), weights, len(self._free))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        width = self._state.bones.shape[1]
        rows = self.chosen
        self._state.bones[rows], self._state.weights[rows] = padded_influences(
            *matrix_influences(matrix[rows], width), width
        )

    def move(self, rows: np.ndarray) -> None:
        """Give the bones another motion, Tᵀ (4P, 3F)."""
        self._rows = rows if self._goal is None else np.concatenate([rows, self._goal[1]], axis=1)
        own_rows = self._rows.reshape(self._bone_count, 4, -1)[self._free]
        self._model = BoneModel(own_rows.reshape(4 * len(self._free), self._rows.shape[1]))
        self._kept_products = None

    def hold(self, weights: sparse.csr_matrix, rows: np.ndarray) -> None:
        """Let ``weights`` (N, P) be right, at the given points, in a further motion Tᵀ (4P, M) of the bones."""
        self._goal = weights, rows
        self.move(self._rows[:, : self._matrix.height])

    def groups(self, among: np.ndarray | None = None) -> Iterator[tuple[float, int, np.ndarray]]:
        """(fraction done, allowed influences, vertices) for each number of allowed influences. among (N,) bool: the
        vertices that count."""
        chosen, done = self.chosen if among is None else self.chosen[among[self.chosen]], 0
        for allowed in np.unique(self._allowed[chosen])[::-1]:
            rows = chosen[self._allowed[chosen] == allowed]
            yield done / len(chosen), int(allowed), rows
            done += len(rows)

    def data(self, part: np.ndarray) -> np.ndarray:
        """The target of the free weights, which sum to 1: (n, 3F), and what ``hold`` has added."""
        data = self._matrix.rows(part)
        if self._goal is not None:
            weights, rows = self._goal
            data = np.concatenate([data, _predicted(weights[part], self._given_points[part], rows)], axis=1)
        held = self._held[part]
        if not held.nnz:
            return data
        data = data - _predicted(held, self._state.points[part], self._rows)
        return data / self._budget[part, None]

    def fit(self, rows: np.ndarray, allowed: int, progress: Progress) -> None:
        """Fit each vertex alone, starting from its best bone, from the strongest of many bones together, and from its
        present weights, if any; the best result is kept, so that no vertex gets worse."""
        blocks = vertex_blocks(len(rows))
        for number, block in enumerate(blocks):
            part = rows[block]
            data = self.data(part)
            points = self._state.points[part]
            own_norms = np.einsum("ij,ij->i", data, data)
            found: tuple[np.ndarray, np.ndarray] | None = None
            least = np.full(len(part), np.inf)
            for start in self._starts(part, data, allowed):
                state = VertexState(points, *start)
                errors = self._settled(state, data, own_norms)
                better = errors < least
                least[better] = errors[better]
                if found is None:
                    found = state.bones, state.weights
                else:
                    bones, weights = found
                    found = (
                        np.where(better[:, None], state.bones, bones),
                        np.where(better[:, None], state.weights, weights),
                    )
            assert found is not None
            bones, weights = found
            self._state.bones[part], self._state.weights[part] = bones[:, :1], 0.0
            self._state.bones[part, :allowed], self._state.weights[part, :allowed] = bones, weights
            checkpoint(progress, (number + 1) / len(blocks), _STAGE)

    def _starts(self, part: np.ndarray, data: np.ndarray, allowed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Bones and weights (n, allowed) to start the search from."""
        present = self._state.bones[part, :allowed].copy(), self._state.weights[part, :allowed].copy()
        points, shape = self._state.points[part], (len(part), allowed)
        first = np.zeros(shape)
        first[:, 0] = 1.0
        distances = self._model.squared_distances(points, data)
        yield np.repeat(np.argmin(distances, axis=1)[:, None], allowed, axis=1).astype(np.int32), first.copy()
        size = min(_LOOKED_AT, self._model.bone_count)
        if allowed > 1 and size > allowed + 1:
            yield self._strongest_of_many(points, data, np.argpartition(distances, size - 1, axis=1)[:, :size], allowed)
        sums = present[1].sum(axis=1, keepdims=True)
        if sums.any():
            bones, weights = present
            yield bones, np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), first)

    def _strongest_of_many(
        self, points: np.ndarray, data: np.ndarray, candidates: np.ndarray, allowed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bones and weights (n, allowed) of the strongest among ``candidates`` (n, m) in the fit of them all."""
        products = np.einsum("npi,ni->np", self._model.data_products(data), points)
        products = np.ascontiguousarray(np.take_along_axis(products, candidates, axis=1).T)
        gram = predictions_gram(self._model, candidates, monomials(points))
        rough = np.full(products.shape, 1.0 / len(products))
        kept, weights, _ = fit_strongest(gram, products, descend(gram, products, rough, _DESCENT_STEPS), allowed)
        bones, weights = strongest_first(np.take_along_axis(candidates, kept.T, axis=1).astype(np.int32), weights.T)
        return bones, weights / weights.sum(axis=1, keepdims=True)

    def _settled(self, state: VertexState, data: np.ndarray, own_norms: np.ndarray) -> np.ndarray:
        """Let other bones compete for the influences of ``state``, in place, until nothing changes: errors (n,)."""
        last, products = np.full(len(data), np.inf), self._model.data_products(data)
        for _ in range(_PASSES):
            state.bones, state.weights, errors = choose_weights(
                self._model, products, state.points, state.bones, state.weights
            )
            errors += own_norms
            if np.all(last - errors <= _SETTLED * own_norms):
                break
            last = errors
        return errors

    def shift(self, most: float) -> None:
        """Move the rest positions of the chosen vertices to where their present weights want them, by up to ``most``
        from where they were given, in solver units. Vertices with held weights stay."""
        state = self._state
        rows = self.chosen[np.diff(self._held.indptr)[self.chosen] == 0]
        for block in vertex_blocks(len(rows)):
            part = rows[block]
            system = blended_system(self._model, self._products(part)[0], state.bones[part], state.weights[part])
            step = fit_rest_positions(*system, state.points[part])[:, :3] - self._given_points[part, :3]
            length = np.linalg.norm(step, axis=1, keepdims=True)
            step *= np.minimum(1.0, most / np.where(length > 0, length, np.inf))
            state.points[part, :3] = self._given_points[part, :3] + step

    @property
    def points(self) -> np.ndarray:
        """(N, 3) the rest positions as they are now."""
        return self._state.points[:, :3]

    def balanced(
        self, neighbors: sparse.csr_matrix, amount: float, squared_error: float | None = None
    ) -> Smoothness | None:
        """Smoothness of an ``amount`` from 0 to 1, in proportion to the present weights and their squared error, if no
        other is given: see ``Smoothness.balanced``."""
        if squared_error is None:
            squared_error = sum(self._squared_error(self.chosen[block]) for block in vertex_blocks(len(self.chosen)))
        elements = len(self.chosen) * self._matrix.height
        return Smoothness.balanced(neighbors, self.weights(), amount, squared_error, elements)

    def smooth(self, smoothness: Smoothness | None, progress: Progress, worth_it: float = WORTH_SMOOTHING) -> None:
        """Sweeps over the vertices, each with the pull of its neighbors, while they save this share of the error and
        the energy; see the module ``smoothness``."""
        if smoothness is None:
            return
        sets = independent_sets(smoothness.strengths, self.chosen)
        last = np.inf
        for number in range(_SMOOTHING_SWEEPS):
            left = 0.0
            for rows in sets:
                matrix = self.weights()
                for allowed in np.unique(self._allowed[rows]):
                    same = rows[self._allowed[rows] == allowed]
                    for block in vertex_blocks(len(same)):
                        part = same[block]
                        left += self.improve(part, int(allowed), smoothness.pull(part, matrix))
            left += smoothness.energy(self.weights())
            checkpoint(progress, (number + 1) / _SMOOTHING_SWEEPS, "Smoothing")
            if last - left <= worth_it * left:
                break
            last = left
        checkpoint(progress, 1.0, "Smoothing")

    def improve(self, part: np.ndarray, allowed: int, pull: Pull) -> float:
        """Better weights of vertices on which no other vertex's ``pull`` depends; their squared error without the pull.

        pull: towards weights of all P bones.
        """
        state, budget = self._state, self._budget[part]
        products, norms = self._products(part)
        pull = self._free_part(pull, part)
        bones, weights, errors = choose_weights(
            self._model,
            products,
            state.points[part],
            state.bones[part, :allowed],
            state.weights[part, :allowed],
            pull,
        )
        state.bones[part, :allowed], state.weights[part, :allowed] = bones, weights
        towards = np.take_along_axis(pull.means, bones, axis=1)
        errors -= pull.strength * (weights * (weights - 2.0 * towards)).sum(axis=1)
        return float(budget**2 @ np.maximum(errors + norms, 0.0))

    def _free_part(self, pull: Pull, part: np.ndarray) -> Pull:
        """A pull of all P bones' weights as one of the free weights."""
        return Pull(pull.strength, pull.means[:, self._free] / self._budget[part, None])

    def _squared_error(self, part: np.ndarray) -> float:
        products, norms = self._products(part)
        state, rows = self._state, np.arange(len(part))[:, None]
        bones, weights, points = state.bones[part], state.weights[part], state.points[part]
        with_data = np.einsum("npi,ni->np", products, points)[rows, bones]
        gram = predictions_gram(self._model, bones, monomials(points))
        errors = np.einsum("nk,kln,nl->n", weights, gram, weights) - 2.0 * np.einsum("nk,nk->n", weights, with_data)
        return float(self._budget[part] ** 2 @ np.maximum(errors + norms, 0.0))

    def _products(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The data products for ``choose_weights``, and ‖y‖² (n,): kept from sweep to sweep if they are small."""
        size = len(self._budget) * len(self._free) * 32
        if size > LARGEST_KEPT:
            data = self.data(part)
            return self._model.data_products(data), np.einsum("ij,ij->i", data, data)
        if self._kept_products is None:
            self._kept_products = np.empty((len(self._budget), len(self._free), 4)), np.empty(len(self._budget))
            for block in vertex_blocks(len(self.chosen)):
                rows = self.chosen[block]
                data = self.data(rows)
                self._kept_products[0][rows] = self._model.data_products(data)
                self._kept_products[1][rows] = np.einsum("ij,ij->i", data, data)
        products, norms = self._kept_products
        return products[part], norms[part]

    def weights(self) -> sparse.csr_matrix:
        """(N, P): all weights as they are now."""
        bones = self._free[self._state.bones] if len(self._free) else self._state.bones
        free = weight_matrix(bones, self._state.weights * self._budget[:, None], self._bone_count)
        return (self._held + free).tocsr()

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Bones (N, K) int32 and weights (N, K), strongest first."""
        if not self._held.nnz:
            return padded_influences(self._free[self._state.bones].astype(np.int32), self._state.weights, self._most)
        matrix = self.weights()
        matrix.eliminate_zeros()
        widest = int(np.diff(matrix.indptr).max(initial=1))
        return padded_influences(*matrix_influences(matrix, max(widest, self._most)), self._most)


def _predicted(weights: sparse.csr_matrix, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(n, d) what ``weights`` (n, P) make of ``points`` (n, 4) in a motion Tᵀ (4P, d)."""
    owner = np.repeat(np.arange(len(points)), np.diff(weights.indptr))
    mixed = np.zeros((len(points), weights.shape[1], 4))
    mixed[owner, weights.indices] = weights.data[:, None] * points[owner]
    return product(mixed.reshape(len(points), -1), rows)
