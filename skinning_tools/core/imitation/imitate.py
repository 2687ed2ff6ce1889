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
from ..progress import Progress, checkpoint, ignore, span
from .driven_helpers import DrivenHelper, fit_in_turn, helper_motion
from .nearby_weights import NearbyWeights
from .skeleton import Skeleton, posed

# Vertices with which helpers first move freely, their sweeps, and the influences that they may add meanwhile.
_FREE_VERTICES, _FREE_SWEEPS, _FREE_INFLUENCES = 8000, 8, 5
_ROUNDS = 14
# After these rounds helpers choose their joints.
_CHOOSING = (0, 2, 4, 8)
# A complete change of a vertex's weights costs this share of the mean squared difference of a vertex: it decides where
# the poses do not.
_PULL = 2e-2
# A difference below this share of the largest coordinate, or of the mesh's diagonal, is rounding: there is nothing to
# imitate, and the pull counts as for it.
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
    # No vertex can have more, and no more helpers can each move one.
    helper_count = min(helper_count, count)
    max_influences = min(max_influences, bone_count + helper_count)
    locked = np.zeros(bone_count, bool) if locked_bones is None else np.asarray(locked_bones, bool)
    solver = _Solver(rest, edges, frames, skeleton, turns, bones, weights, max_influences, locked, helper_count)
    if helper_count:
        solver.free_helpers(span(progress, 0.0, 0.5))
        for number in range(_ROUNDS):
            solver.fit_helpers(number in _CHOOSING)
            solver.fit_weights()
            checkpoint(progress, 0.5 + 0.5 * (number + 1) / _ROUNDS, "Fitting helper bones and weights")
    else:
        solver.fit_weights()
    return solver.result(progress)


class _Solver:
    """Lengths are in units of the mesh's diagonal. motion (F, P + H, 3, 4); weights (N, P + H), sparse."""

    def __init__(
        self,
        rest: np.ndarray,
        edges: np.ndarray,
        frames: np.ndarray,
        skeleton: Skeleton,
        turns: np.ndarray,
        bones: np.ndarray,
        weights: np.ndarray,
        most: int,
        locked: np.ndarray,
        helper_count: int,
    ):
        self._size = float(np.linalg.norm(np.ptp(rest, axis=0))) or 1.0
        self._skeleton, self._turns, self._helper_count = skeleton, turns, helper_count
        self._rest = np.asarray(rest, float) / self._size
        self._frames = np.asarray(frames, np.float64) / self._size
        scaled = skeleton.rest.copy()
        scaled[:, :3, 3] /= self._size
        self._own = posed(Skeleton(skeleton.parents, scaled), turns)
        self._bones, self._weights = np.asarray(bones), np.asarray(weights, float)
        self._helpers: list[DrivenHelper] = []
        self._motion = self._own
        bone_count, total = len(skeleton), len(skeleton) + helper_count
        matrix = weight_matrix(self._bones, self._weights, total).copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self._earlier = self._present = matrix
        free = np.concatenate([~locked, np.ones(helper_count, bool)])
        self._held = (matrix @ sparse.diags((~free).astype(float))).tocsr()
        self._held.eliminate_zeros()
        self._budget = np.maximum(1.0 - np.asarray(self._held.sum(axis=1)).ravel(), 0.0)
        bound = np.asarray(matrix.sum(axis=1)).ravel() > 0
        self._chosen = np.flatnonzero(bound & (self._budget > 1e-4))
        if not len(self._chosen):
            what = "is locked" if bound.any() else "is missing"
            raise BadWeights(f"No weight can change, since every weight {what}. Unlock or assign weights of the mesh")
        self._points = homogeneous(self._rest)
        data = self._frames.transpose(1, 0, 2).reshape(len(rest), -1)
        if self._held.nnz:
            held = sparse.csr_matrix(self._design(self._held[:, :bone_count], bone_count))
            data = data - held @ to_rows(self._own)
            data /= np.maximum(self._budget, 1e-4)[:, None]
        self._before = self._left(self._bones, self._weights)
        room = np.maximum(most - np.diff(self._held.indptr)[self._chosen], 1)
        # Towards the earlier weights of the free bones, as shares of what is free.
        near = sparse.diags(1.0 / np.maximum(self._budget, 1e-4)) @ (self._earlier - self._held)
        largest = max(1.0, float(np.abs(self._frames).max()))
        self._rounding = self._frames.size * (_ROUNDING * largest) ** 2
        pull = _PULL * max(self._before, self._rounding) / len(rest)
        self._data = data
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

    def free_helpers(self, progress: Progress) -> None:
        """Helpers that move freely with some of the vertices: their weights, and the bones that carry them."""
        order = self._chosen[np.argsort(morton_codes(self._rest[self._chosen]), kind="stable")]
        count = max(min(len(order), _FREE_VERTICES), min(len(order), self._helper_count))
        sample = np.sort(order[(np.arange(count) * len(order)) // count])
        numbers = np.arange(len(self._frames))
        frames = np.ascontiguousarray(self._frames[:, sample], np.float32)
        own_count = len(self._skeleton)
        widest = int(np.diff(self._earlier.indptr).max(initial=1))
        found = add_helper_bones(
            # No triangle: only the smoothness of weights would use them.
            Animation(frames, np.zeros((0, 3), np.int32), numbers, "The mesh"),
            self._rest[sample],
            self._own,
            self._bones[sample],
            self._weights[sample],
            self._helper_count,
            max_influences=widest + _FREE_INFLUENCES,
            iterations=_FREE_SWEEPS,
            locked_bones=np.asarray(self._held.sum(axis=0)).ravel()[:own_count] > 0,
            progress=progress,
        )
        given = weight_matrix(found.bones, found.weights, own_count + self._helper_count).copy()
        given.sum_duplicates()
        nearest = cKDTree(self._rest[sample]).query(self._rest[self._chosen])[1]
        shares = given[:, own_count:][nearest]
        left = np.zeros(len(self._rest))
        left[self._chosen] = np.asarray(shares.sum(axis=1)).ravel()
        to_all = sparse.csr_matrix(
            (np.ones(len(self._chosen)), (self._chosen, np.arange(len(self._chosen)))),
            shape=(len(self._rest), len(self._chosen)),
        )
        own = sparse.diags(1.0 - left) @ self._earlier[:, :own_count]
        matrix = sparse.hstack([own, to_all @ shares]).tocsr()
        self._present = matrix
        shared = (self._earlier[:, :own_count].T @ matrix[:, own_count:]).toarray()
        self._carriers = np.argmax(shared, axis=0).tolist()
        centers = np.zeros((self._helper_count, 3))
        self._helpers = [
            DrivenHelper(carrier, center, (), np.zeros((0, 6)))
            for carrier, center in zip(self._carriers, centers, strict=True)
        ]
        self._motion = np.concatenate([self._own, helper_motion(self._helpers, self._turns, self._own)], axis=1)

    def fit_helpers(self, choose: bool) -> None:
        """Each helper's motion in turn, with the weights and the others as they are."""
        total = len(self._skeleton) + self._helper_count
        equations = NormalEquations(total, 3 * len(self._turns))
        equations.add(self._design(self._present, total), self._frames.transpose(1, 0, 2).reshape(len(self._rest), -1))
        self._helpers, self._motion = fit_in_turn(
            self._skeleton, self._turns, self._helpers, self._own, self._motion, equations, choose=choose
        )

    def fit_weights(self) -> None:
        present = self._present + 0.5 * self._earlier
        bones, weights = self._choice.choose(to_rows(self._motion), present.tocsr())
        total = len(self._skeleton) + self._helper_count
        new = weight_matrix(bones, weights * self._budget[self._chosen, None], total)
        spread = sparse.csr_matrix(
            (np.ones(len(self._chosen)), (self._chosen, np.arange(len(self._chosen)))),
            shape=(len(self._rest), len(self._chosen)),
        )
        kept = np.ones(len(self._rest))
        kept[self._chosen] = 0.0
        held = sparse.diags(1.0 - kept) @ self._held + sparse.diags(kept) @ self._earlier
        self._present = (held + spread @ new).tocsr()
        self._present.sum_duplicates()
        self._present.eliminate_zeros()

    def result(self, progress: Progress) -> Imitation:
        checkpoint(progress, 1.0, "Fitting weights")
        bones, weights = _padded(self._present, int(np.diff(self._present.indptr).max(initial=1)))
        after = self._left(bones, weights)
        changed = np.zeros(len(self._rest), bool)
        changed[self._chosen] = True
        helpers = [helper.scaled(self._size) for helper in self._helpers]
        share = 1.0 - np.sqrt(after / self._before) if self._before > self._rounding else 0.0
        return Imitation(bones, weights, changed, helpers, float(share))


def _padded(matrix: sparse.csr_matrix, most: int) -> tuple[np.ndarray, np.ndarray]:
    return matrix_influences(matrix, max(most, 1))
