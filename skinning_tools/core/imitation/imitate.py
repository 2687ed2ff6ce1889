# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights, and helper bones driven by joints, with which linear blending comes closest to another deformation.

Helpers first move freely where most of the difference is (``decomposition.helper_bones``). Then their motion, as a
function of the joints, and all weights take turns, each a least-squares optimum.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from ..animation import Animation
from ..binding.influence_rows import matrix_influences
from ..decomposition.bone_model import homogeneous
from ..decomposition.helper_bones import add_helper_bones
from ..decomposition.sample import morton_codes
from ..decomposition.transforms import NormalEquations, design_matrix, to_rows
from ..deform.blend import skin_frame
from ..deform.influences import weight_matrix
from ..dense import one_blas_thread
from ..errors import BadSettings, BadWeights
from ..geometry import diagonal
from ..progress import Progress, checkpoint, ignore, span
from .driven_helpers import DrivenHelper, fit_in_turn, helper_motion
from .nearby_weights import NearbyWeights
from .skeleton import Skeleton, posed

# Helpers are found with so many vertices; then follow a few rounds with all.
_SAMPLE, _NEAR = 3000, 6
# Sweeps in which helpers first move freely, and the influences that they may add meanwhile.
_FREE_SWEEPS, _FREE_INFLUENCES = 4, 5
_ROUNDS, _LAST_ROUNDS = 60, 3
# Each so many rounds helpers choose their variables anew, each of which must save this share of the squared difference.
_CHOOSING, _WORTH = 4, 2e-5
# More helpers are found than are wanted; between these rounds the least useful ones are dropped, one by one.
_MORE, _DROPPING = 1.5, (6, 36)
# A complete change of a vertex's weights costs this share of the mean squared difference of a vertex: it decides where
# the poses do not.
_PULL = 2e-2
# A difference below this share of the largest coordinate, or of the mesh's diagonal, is rounding: there is nothing to
# imitate.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Imitation:
    """bones (N, K) int32 and weights (N, K): the skeleton's P bones, then the helpers; ``changed`` (N,): where they are
    new. imitated: the share of the difference that is gone at the given poses, 1 − ‖after‖ / ‖before‖; 0 where the
    difference is not more than rounding."""

    bones: np.ndarray
    weights: np.ndarray
    changed: np.ndarray
    helpers: list[DrivenHelper]
    imitated: float


@one_blas_thread()
def imitate(
    rest: np.ndarray,
    edges: np.ndarray,
    frames: np.ndarray,
    skeleton: Skeleton,
    turns: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    *,
    max_influences: int = 4,
    helper_count: int = 0,
    locked_bones: np.ndarray | None = None,
    progress: Progress = ignore,
) -> Imitation:
    """Weights for P bones, and ``helper_count`` driven helpers, that bring linear blending closest to ``frames``.

    rest (N, 3), edges (E, 2), and frames (F, N, 3) in the space of ``skeleton.rest``; turns (F, P, 4)
    of its bones against their parents. bones and weights (N, K): the present ones, rows that sum to 1 or to 0 where no
    bone moves a vertex. locked_bones (P,): bones whose weights stay. Vertices whose weights are all locked, or that no
    bone moves, stay as they are.
    Raises BadSettings where shapes do not fit, BadWeights where nothing may change, Cancelled.
    """
    count, bone_count = len(rest), len(skeleton)
    if frames.shape != (len(turns), count, 3) or turns.shape[1] != bone_count or len(bones) != count:
        raise BadSettings("Poses, turns and weights do not belong to the same mesh and skeleton")
    if max_influences < 1 or helper_count < 0:
        raise BadSettings("At least one influence is needed, and no fewer than 0 helper bones")
    locked = np.zeros(bone_count, bool) if locked_bones is None else np.asarray(locked_bones, bool)
    given = skeleton, turns, max_influences, locked
    solver = _Solver(rest, edges, frames, bones, weights, *given, helper_count)
    if solver.idle:
        return solver.result(progress)
    helper_count = solver.helper_count
    if helper_count:
        sample, nearest = solver.sample()
        near = cKDTree(rest[sample]).query(rest[sample], min(_NEAR, len(sample)))[1].reshape(len(sample), -1)
        pairs = np.stack([np.repeat(np.arange(len(sample)), near.shape[1]), near.ravel()], axis=1)
        more = min(int(_MORE * helper_count), len(sample))
        part = _Solver(rest[sample], pairs, frames[:, sample], bones[sample], weights[sample], *given, more)
        part.free_helpers(span(progress, 0.0, 0.3))
        for number in range(_ROUNDS):
            part.fit_helpers(number % _CHOOSING == 0)
            part.drop(int(np.interp(number, _DROPPING, [more, helper_count])))
            part.fit_weights()
            checkpoint(progress, 0.3 + 0.5 * (number + 1) / _ROUNDS, "Fitting helper bones and weights")
        solver.begin_with(part, nearest)
        for number in range(_LAST_ROUNDS):
            solver.fit_weights()
            solver.fit_helpers(False)
            checkpoint(progress, 0.8 + 0.2 * (number + 1) / _LAST_ROUNDS, "Fitting helper bones and weights")
    solver.fit_weights()
    return solver.result(progress)


class _Solver:
    """Lengths are in units of the mesh's diagonal. motion (F, P + H, 3, 4); weights (N, P + H), sparse."""

    def __init__(
        self,
        rest: np.ndarray,
        edges: np.ndarray,
        frames: np.ndarray,
        bones: np.ndarray,
        weights: np.ndarray,
        skeleton: Skeleton,
        turns: np.ndarray,
        most: int,
        locked: np.ndarray,
        helper_count: int,
    ):
        self._size = diagonal(rest) or 1.0
        self._skeleton, self._turns = skeleton, turns
        self._rest = np.asarray(rest, float) / self._size
        self._frames = np.asarray(frames, np.float64) / self._size
        scaled = skeleton.rest.copy()
        scaled[:, :3, 3] /= self._size
        self._own = posed(Skeleton(skeleton.parents, scaled), turns)
        self._bones, self._weights = np.asarray(bones), np.asarray(weights, float)
        self._helpers: list[DrivenHelper] = []
        self._motion = self._own
        bone_count = len(skeleton)
        matrix = weight_matrix(self._bones, self._weights, bone_count).copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self._earlier = self._present = matrix
        self._held = (matrix @ sparse.diags(locked.astype(float))).tocsr()
        self._held.eliminate_zeros()
        self._budget = np.maximum(1.0 - np.asarray(self._held.sum(axis=1)).ravel(), 0.0)
        bound = np.asarray(matrix.sum(axis=1)).ravel() > 0
        self._chosen = np.flatnonzero(bound & (self._budget > 1e-4))
        if not len(self._chosen):
            what = "is locked" if bound.any() else "is missing"
            raise BadWeights(f"No weight can change, since every weight {what}. Unlock or assign weights of the mesh")
        # No more helpers can each move a vertex, and no vertex can follow more bones.
        self.helper_count = min(helper_count, len(self._chosen))
        total = bone_count + self.helper_count
        most = min(most, total)
        self._earlier.resize(len(rest), total)
        self._held.resize(len(rest), total)
        self._useful = np.ones(self.helper_count, bool)
        self._free = free = np.concatenate([~locked, np.ones(self.helper_count, bool)])
        self._points = homogeneous(self._rest)
        self._targets = data = self._frames.transpose(1, 0, 2).reshape(len(rest), -1)
        if self._held.nnz:
            held = sparse.csr_matrix(self._design(self._held[:, :bone_count], bone_count))
            data = data - held @ to_rows(self._own)
            data /= np.maximum(self._budget, 1e-4)[:, None]
        self._before = self._left(self._bones, self._weights)
        self._least_gain = _WORTH * self._before
        room = np.maximum(most - np.diff(self._held.indptr)[self._chosen], 1)
        # Towards the earlier weights of the free bones, as shares of what is free.
        near = sparse.diags(1.0 / np.maximum(self._budget, 1e-4)) @ (self._earlier - self._held)
        largest = max(1.0, float(np.abs(self._frames).max()))
        self._rounding = self._frames.size * (_ROUNDING * largest) ** 2
        pull = _PULL * self._before / len(rest)
        self._choice = NearbyWeights(self._points, data, edges, self._chosen, near.tocsr(), free, room, pull)

    def _design(self, weights: sparse.csr_matrix, bone_count: int) -> np.ndarray:
        most = int(np.diff(weights.indptr).max(initial=1))
        bones, values = _padded(weights, most)
        return design_matrix(self._points, bones, values, bone_count)

    def _left(self, bones: np.ndarray, weights: np.ndarray) -> float:
        """The squared error over all vertices and poses."""
        return sum(
            float(((skin_frame(self._rest, bones, weights, motion) - wanted) ** 2).sum())
            for motion, wanted in zip(self._motion, self._frames, strict=True)
        )

    @property
    def idle(self) -> bool:
        """Whether there is nothing to imitate."""
        return self._before <= self._rounding

    def sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Evenly spread vertices whose weights may change, ascending; and for each vertex its nearest among them."""
        order = self._chosen[np.argsort(morton_codes(self._rest[self._chosen]), kind="stable")]
        count = min(len(order), max(_SAMPLE, self.helper_count))
        sample = np.sort(order[(np.arange(count) * len(order)) // count])
        return sample, cKDTree(self._rest[sample]).query(self._rest)[1]

    def begin_with(self, part: "_Solver", nearest: np.ndarray) -> None:
        """Take over the helpers of a solver for some of the vertices; nearest (N,): the place of one in that."""
        size = part._size / self._size
        bone_count, kept = len(self._skeleton), np.flatnonzero(part._useful)
        self._helpers = [part._helpers[helper].scaled(size) for helper in kept.tolist()]
        self._present = part._present[nearest][:, [*range(bone_count), *(bone_count + kept)]]
        self._move()

    def _move(self) -> None:
        self._motion = np.concatenate([self._own, helper_motion(self._helpers, self._turns, self._own)], axis=1)

    def free_helpers(self, progress: Progress) -> None:
        """Helpers that move freely: their weights, and the bones that carry them."""
        own_count, rows = len(self._skeleton), self._chosen
        widest = int(np.diff(self._earlier.indptr).max(initial=1))
        found = add_helper_bones(
            # No triangle: only the smoothness of weights would use them.
            Animation(
                np.ascontiguousarray(self._frames[:, rows], np.float32),
                np.zeros((0, 3), np.int32),
                np.arange(len(self._frames)),
                "The mesh",
            ),
            self._rest[rows],
            self._own,
            self._bones[rows],
            self._weights[rows],
            self.helper_count,
            max_influences=widest + _FREE_INFLUENCES,
            iterations=_FREE_SWEEPS,
            locked_bones=np.asarray(self._held.sum(axis=0)).ravel()[:own_count] > 0,
            progress=progress,
        )
        given = weight_matrix(found.bones, found.weights, own_count + self.helper_count).copy()
        given.sum_duplicates()
        shares = self._spread() @ given[:, own_count:]
        own = sparse.diags(1.0 - np.asarray(shares.sum(axis=1)).ravel()) @ self._earlier[:, :own_count]
        self._present = sparse.hstack([own, shares]).tocsr()
        shared = (self._earlier[:, :own_count].T @ shares).toarray()
        self._helpers = [DrivenHelper(carrier) for carrier in np.argmax(shared, axis=0).tolist()]
        self._move()

    def _spread(self) -> sparse.csr_matrix:
        """(N, n): from the vertices whose weights may change to all."""
        count = len(self._chosen)
        return sparse.csr_matrix((np.ones(count), (self._chosen, np.arange(count))), shape=(len(self._rest), count))

    def fit_helpers(self, choose: bool) -> None:
        """Each helper's motion in turn, with the weights and the others as they are."""
        total = len(self._skeleton) + self.helper_count
        equations = NormalEquations(total, 3 * len(self._turns))
        equations.add(self._design(self._present, total), self._targets)
        self._helpers, self._motion = fit_in_turn(
            self._skeleton,
            self._turns,
            self._helpers,
            self._own,
            self._motion,
            equations,
            choose=choose,
            least_gain=self._least_gain,
        )

        self._moments = equations.moments

    def drop(self, count: int) -> None:
        """Leave only the ``count`` most useful helpers: without the others, which move most of their weight least
        beside their carriers, the error grows least. Their weight goes to their carriers."""
        bone_count = len(self._skeleton)
        while self._useful.sum() > count:
            losses = np.full(self.helper_count, np.inf)
            for index in np.flatnonzero(self._useful).tolist():
                part = slice(4 * (bone_count + index), 4 * (bone_count + index) + 4)
                beside = self._motion[:, bone_count + index] - self._own[:, self._helpers[index].carrier]
                losses[index] = np.einsum("fij,jk,fik->", beside, self._moments[part, part], beside)
            least = int(np.argmin(losses))
            self._useful[least] = self._free[bone_count + least] = False
            takes_over = sparse.eye(bone_count + self.helper_count).tolil()
            takes_over[bone_count + least, bone_count + least] = 0.0
            takes_over[bone_count + least, self._helpers[least].carrier] = 1.0
            self._present = (self._present @ takes_over.tocsr()).tocsr()

    def fit_weights(self) -> None:
        present = self._present + 0.5 * self._earlier
        bones, weights = self._choice.choose(to_rows(self._motion), present.tocsr())
        total = len(self._skeleton) + self.helper_count
        new = weight_matrix(bones, weights * self._budget[self._chosen, None], total)
        kept = np.ones(len(self._rest))
        kept[self._chosen] = 0.0
        held = sparse.diags(1.0 - kept) @ self._held + sparse.diags(kept) @ self._earlier
        self._present = (held + self._spread() @ new).tocsr()
        self._present.sum_duplicates()
        self._present.eliminate_zeros()

    def result(self, progress: Progress) -> Imitation:
        checkpoint(progress, 1.0, "Fitting weights")
        bones, weights = _padded(self._present, int(np.diff(self._present.indptr).max(initial=1)))
        after = self._left(bones, weights)
        changed = np.zeros(len(self._rest), bool)
        changed[self._chosen] = True
        helpers = [helper.scaled(self._size) for helper in self._helpers]
        share = 0.0 if self.idle else 1.0 - np.sqrt(after / self._before)
        return Imitation(bones, weights, changed, helpers, float(share))


def _padded(matrix: sparse.csr_matrix, most: int) -> tuple[np.ndarray, np.ndarray]:
    return matrix_influences(matrix, max(most, 1))
