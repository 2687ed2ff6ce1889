# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights that hold when a skeleton is posed: no bone takes along what belongs to another part of the body.

Free bones explain a vertex by whatever moves like it, on the other arm, too. What a bone carries is measured by a turn
about its joint: a vertex that follows most a bone beyond the joint's two may move only little.

A clean rig has such weights without being asked. Cloth has not: its bones are patches that slide. There every limit
costs accuracy, so that the error may grow by a given share only, and by what nobody sees.
"""

import numpy as np
from scipy.spatial.distance import cdist

from ..body_surface import BodySurface
from ..bone_order import linked_bones, parents_first, subtrees
from ..deform.influences import weight_matrix
from ..solve_memory import BLOCK_VERTICES, FEWEST_WORKERS
from ..strongest import strongest_bones, strongest_first
from ..threads import for_each
from .bone_model import BoneModel
from .reduction import Rows
from .rest_pose import blended_system, squared_errors
from .stray_patches import bones_around
from .sweeps import vertex_blocks
from .vertex_step import VertexState, improve_by_products

# Radians, and how far such a turn may move vertices of other parts, in solver units: nearly 2 % of the diameter of the
# ball around the first frame, which is 2, however the body lies in space.
_TURN, _MOST = np.radians(45.0), 0.019 * 2.0
# Weights for posing may raise the squared error by this share of it, for 1.2 times the error.
_DEARER = 1.2**2 - 1.0
# A patch that is fitted again may get another bone from elsewhere, but hardly ever a third one.
_GATHERINGS = 2
# A large patch goes where its vertices come no farther off than this multiple of the largest distance.
_MUCH_FARTHER = 2.0
# Nobody sees what moves a vertex by this root mean square, of the unit ball.
UNSEEN = 2e-4


def unseen_error(frame_count: int) -> float:
    """The squared error of a vertex that nobody sees, in solver units."""
    return UNSEEN**2 * 3 * frame_count


class PoseLimits:
    """Which vertices a turn of a bone may move: those that its own subtree moves most, and those of its parent."""

    def __init__(self, parents: np.ndarray, heads: np.ndarray, frame_count: int, locked: np.ndarray | None = None):
        """parents (P,); heads (P, 3): joints at rest, in solver units; frame_count: of the animation; locked (P,) bool:
        bones that get no more vertices."""
        self._heads, self.unseen = heads, unseen_error(frame_count)
        self._below, self._parents, self._order = subtrees(parents), parents, parents_first(parents)
        self._linked = linked_bones(parents) | np.eye(len(parents), dtype=bool)
        self._near = self._linked.copy()
        # More than two links apart: not even siblings.
        self._far = ~(self._linked @ self._linked)
        if locked is not None:
            self._near[:, locked] = False
        linked = np.flatnonzero(parents >= 0)
        # [strongest bone, turned bone]
        self._may = self._below.T.copy()
        self._may[parents[linked], linked] = True
        self._may[:, parents < 0] = True

    def broken(self, state: VertexState) -> np.ndarray:
        """(N,) bool: vertices that the turn of some bone moves, though it must not."""
        return np.asarray((self._excess(state) > 1.0 + 1e-9).any(axis=1))

    def far(self, state: VertexState) -> np.ndarray:
        """(N, K) bool: the influences of bones that are no neighbors of a vertex's strongest one in the skeleton."""
        return np.asarray(self._far[strongest_bones(state.bones, state.weights)[:, None], state.bones])

    def _excess(self, state: VertexState) -> np.ndarray:
        """(N, P) how far the turn of each bone moves a vertex, by how far it may."""
        carried = weight_matrix(state.bones, state.weights, len(self._may)) @ self._below.T.astype(float)
        away = cdist(state.points[:, :3], self._heads)
        moved = 2.0 * np.sin(0.5 * _TURN) * carried * away / _MOST
        moved[self._may[strongest_bones(state.bones, state.weights)]] = 0.0
        return moved

    def capped(self, state: VertexState) -> np.ndarray:
        """(N, K) weights as large as the limits allow; the strongest bone gets the rest."""
        excess = np.maximum(self._excess(state).T, 1.0)
        # Each bone's becomes the largest of any bone above.
        for bone in self._order:
            if self._parents[bone] >= 0:
                np.maximum(excess[bone], excess[self._parents[bone]], out=excess[bone])
        weights = state.weights / np.take_along_axis(excess.T, state.bones, axis=1)
        rows, strongest = np.arange(len(weights)), np.argmax(state.weights, axis=1)
        weights[rows, strongest] += 1.0 - weights.sum(axis=1)
        return weights

    def _within(self, state: VertexState) -> VertexState:
        """``state`` with its weights ``capped``."""
        bones, weights = strongest_first(state.bones, self.capped(state))
        return VertexState(state.points.copy(), bones, weights, state.importance)

    def keep(
        self,
        model: BoneModel,
        state: VertexState,
        source: Rows,
        *,
        optimize_rest_pose: bool,
        former: VertexState | None = None,
        given: np.ndarray | None = None,
        at_any_cost: bool = False,
    ) -> None:
        """Fit vertices again, in place, that break the limits: with their bones as far as these may move them, or with
        one of their bones, its parent and its children, or as they were in ``former``, whichever is closest.

        former: the same vertices before, which count as far as they keep the limits. given (N,): squared errors before
        any limits, by default the present ones. Unless ``at_any_cost``, what vertices lose against these beyond what
        nobody sees comes to a share of them at most. Where that does not suffice for all, the vertices come first that
        gain most for what they cost.
        """
        wrong = np.flatnonzero(self.broken(state))
        now = state.of(wrong)
        best, present, least = now.copy(), np.empty(len(wrong)), np.empty(len(wrong))

        def closest(part: slice) -> tuple[VertexState, np.ndarray, np.ndarray]:
            products = model.data_products(source.rows(wrong[part]))
            earlier = None if former is None else former.of(wrong[part])
            return self._closest(model, products, now.of(part), earlier, optimize_rest_pose)

        def take(part: slice, found: tuple[VertexState, np.ndarray, np.ndarray]) -> None:
            fitted, present[part], least[part] = found
            best.put(part, fitted)

        # Each vertex is fitted once for each of its bones.
        for_each(closest, vertex_blocks(len(wrong), BLOCK_VERTICES // now.bones.shape[1]), take, FEWEST_WORKERS)
        chosen = np.arange(len(wrong))
        if not at_any_cost:
            errors = all_errors(model, state, source)
            given = errors if given is None else given
            seen = np.maximum(errors - given - self.unseen, 0.0)
            cost = np.maximum(errors[wrong] + least - present - given[wrong] - self.unseen, 0.0) - seen[wrong]
            if now.importance is not None:
                cost *= now.importance
            order = np.argsort(cost / self._excess(now).max(axis=1, initial=0.0), kind="stable")
            room = max(_DEARER * counted(given, state) - counted(seen, state), 0.0)
            chosen = order[np.cumsum(np.maximum(cost[order], 0.0)) <= room]
        state.put(wrong[chosen], best.of(chosen))

    def has_strays(self, state: VertexState, surface: BodySurface) -> bool:
        """Whether some vertices are in stray patches; see ``stray_patches``."""
        return bool((self._around_strays(state, surface)[0] >= 0).any())

    def gather(
        self, model: BoneModel, state: VertexState, source: Rows, surface: BodySurface, *, optimize_rest_pose: bool
    ) -> None:
        """Fit vertices of stray patches again, in place and within the limits, with the bone around and its neighbors.
        A vertex stays that would come farther off than any one is now, or, in a large patch, much farther."""
        for _ in range(_GATHERINGS):
            around, large = self._around_strays(state, surface)
            stray = np.flatnonzero((around >= 0) & self._near[around].any(axis=1))
            if not len(stray):
                break
            most = all_errors(model, state, source).max() * np.where(large[stray], _MUCH_FARTHER**2, 1.0)
            for part in vertex_blocks(len(stray)):
                few, data = stray[part], source.rows(stray[part])
                allowed = self._near[around[few]]
                fitted = _fitted(model, model.data_products(data), state.of(few), allowed, optimize_rest_pose)
                fitted = self._within(fitted)
                taken = _squares(data) + vertex_errors(model, fitted, data) <= most[part]
                state.put(few[taken], fitted.of(taken))

    def _around_strays(self, state: VertexState, surface: BodySurface) -> tuple[np.ndarray, np.ndarray]:
        return bones_around(surface, strongest_bones(state.bones, state.weights), self._linked)

    def _closest(
        self,
        model: BoneModel,
        products: np.ndarray,
        now: VertexState,
        former: VertexState | None,
        optimize_rest_pose: bool,
    ) -> tuple[VertexState, np.ndarray, np.ndarray]:
        """The closest of what ``keep`` tries for vertices (n,); their squared errors less ‖y‖² (n,) before and after.

        products (n, P, 4): from ``BoneModel.data_products``.
        """
        best, present = self._within(now), _errors(model, products, now)
        least = _errors(model, products, best)

        def take(places: np.ndarray, fitted: VertexState) -> None:
            errors = _errors(model, products[places], fitted)
            # The best of each vertex alone.
            order = np.lexsort((errors, places))
            first = order[np.unique(places[order], return_index=True)[1]]
            better = first[errors[first] < least[places[first]]]
            least[places[better]] = errors[better]
            best.put(places[better], fitted.of(better))

        hubs = np.zeros((len(products), len(self._near)), bool)
        np.put_along_axis(hubs, now.bones, True, axis=1)
        places, hub = np.nonzero(hubs & self._near.any(axis=1))
        fitted = _fitted(model, products[places], now.of(places), self._near[hub], optimize_rest_pose)
        take(places, self._within(fitted))
        if former is not None:
            take(np.arange(len(products)), self._within(former))
        return best, present, least


def squared_error(model: BoneModel, state: VertexState, source: Rows) -> float:
    """Of all vertices and frames, each vertex as its importance has it."""
    return counted(all_errors(model, state, source), state)


def all_errors(model: BoneModel, state: VertexState, source: Rows) -> np.ndarray:
    """(N,) squared error of each vertex, the sum over the frames, which count by their importance."""
    errors = np.empty(len(state.weights))
    for part in vertex_blocks(len(errors)):
        data = source.rows(part)
        errors[part] = _squares(data) + vertex_errors(model, state.of(part), data)
    return errors


def counted(errors: np.ndarray, state: VertexState) -> float:
    """The sum of ``errors`` (N,), each vertex as its importance has it."""
    return float(errors.sum() if state.importance is None else errors @ state.importance)


def vertex_errors(model: BoneModel, state: VertexState, data: np.ndarray) -> np.ndarray:
    """(n,) squared error of each vertex less its ‖y‖²."""
    return _errors(model, model.data_products(data), state)


def _squares(data: np.ndarray) -> np.ndarray:
    squares: np.ndarray = np.einsum("nd,nd->n", data, data)
    return squares


def _errors(model: BoneModel, products: np.ndarray, state: VertexState) -> np.ndarray:
    return squared_errors(*blended_system(model, products, state.bones, state.weights), state.points)


def _fitted(
    model: BoneModel, products: np.ndarray, now: VertexState, allowed: np.ndarray, optimize_rest_pose: bool
) -> VertexState:
    """Vertices ``now`` (n,) with the bones ``allowed`` (n, P) alone."""
    usable = np.take_along_axis(allowed, now.bones, axis=1)
    weights = np.where(usable, now.weights, 0.0)
    # Some vertices may have no weight left: they begin anywhere.
    weights[:, 0] += weights.sum(axis=1) == 0
    bones = np.where(usable, now.bones, allowed.argmax(axis=1)[:, None]).astype(now.bones.dtype)
    part = VertexState(now.points, bones, weights / weights.sum(axis=1, keepdims=True), now.importance)
    given = model, products, part, slice(None)
    improve_by_products(*given, optimize_rest_pose=optimize_rest_pose, allowed=allowed)
    return part
