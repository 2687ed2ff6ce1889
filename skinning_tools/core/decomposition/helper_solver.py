# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones added to a rig, whose own bones keep their motion, where the error is largest.

A vertex is moved by (1 − h) g + Σ u_j φ_j, where g is its position by the rig's own weights, φ_j its position by
helper j, and the helpers' weights u_j sum to h. So g is one more point of the convex fit, always kept: the rig's own
weights are only scaled, by 1 − h, and where no helper helps they do not change. Helpers and their motion take
turns as in the decomposition; each step is a least-squares optimum, so the error never rises, and it starts at the
rig's own. Where the rig's own weights may adapt, all weights and the helpers' motion then take turns, with the
weights pulled to their previous values.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from ..animation import Animation, ErrorMeter, unit_scale
from ..binding.influence_rows import matrix_influences, padded_influences
from ..deform import skin_frame
from ..deform.influences import weight_matrix
from ..progress import Progress, checkpoint, ignore
from . import rigid
from .bone_model import BoneModel, monomials
from .helper_motion import HOLD, NEARNESS, add_near, keep_near
from .helper_targets import LEAST_BUDGET, HelperTargets
from .partial import Given, WeightProblem
from .partial_transforms import skin_equations
from .sweeps import vertex_blocks
from .transforms import NormalEquations, from_rows, reduced_equations, to_rows
from .vertex_step import Pull, best_shares, predictions_gram

_STAGE = "Helper bones"
# Vertices around the worst place from which a new helper takes its first motion: at least, and as a share of all.
_SEED_VERTICES, _SEED_SHARE = 12, 0.01
_SEED_ROUNDS = 3
_ROUGH_STEPS = 16
_PASSES_PER_SWEEP = 2
# The share of the squared error that a sweep must save for another one to follow.
_WORTH_IT = 1e-4
# Smaller weights count as zero.
_LEAST_WEIGHT = 1e-4
# The share of the weights that the rig's own bones keep where helpers take everything: too small to see, but enough to
# keep their ratios.
_LEAST_OWN = 1e-6
# A complete change of a vertex's weights costs this many times the average error of a vertex.
_OWN_PULL = 1.0


@dataclass(frozen=True)
class HelperBones:
    """transforms (F, H, 3, 4) of the helpers, object space, and bone_axes (H, 3, 3) along which SCALED ones stretch.

    bones (N, K) int32 and weights (N, K) of the whole, the rig's P bones first, then the helpers; rows do not change
    where no helper takes part; ``changed`` (N,): where one does. e_rms, max_error: with the helpers, and before.
    """

    transforms: np.ndarray
    bone_axes: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    changed: np.ndarray
    e_rms: float
    max_error: float
    e_rms_before: float
    max_error_before: float


class HelperSolver:
    """Everything in solver units. shares (N, H): the helpers' of what is not locked; rows Tᵀ (4H, 3F). Arguments: see
    ``helper_bones.add_helper_bones``."""

    def __init__(
        self, animation: Animation, rest: np.ndarray, transforms: np.ndarray, targets: HelperTargets, most: int
    ):
        self._animation, self._rest, self._transforms = animation, np.asarray(rest, float), transforms
        self._targets, self._most = targets, most
        self._adapted: tuple[np.ndarray, np.ndarray] | None = None
        self._matrix, self._points = targets.matrix, targets.points
        self._budget, self._chosen = targets.budget, targets.chosen
        # (3F,) by what the rows are multiplied.
        self._scale = self._matrix.weigh(np.ones((1, self._matrix.height)))[0]

    # --- where helpers are needed -----------------------------------------------------------------------------------

    def seed(self, count: int, kind: str, progress: Progress) -> None:
        """Helpers one after the other where the most error is left, each moving as its vertices should."""
        self._kind = kind
        self._axes = np.tile(np.eye(3), (count, 1, 1)) if kind == "SCALED" else None
        self.rows = np.zeros((4 * count, self._matrix.height))
        self.shares = np.zeros((len(self._points), count))
        places = self._points[self._chosen, :3]
        size = min(max(_SEED_VERTICES, int(_SEED_SHARE * len(places))), len(places))
        self._near = cKDTree(places).query(places, k=size)[1].reshape(len(places), size)
        left = self._targets.left()
        for helper in range(count):
            self._seed_one(helper, left)
            left = np.minimum(left, self._targets.left_by(self._rows_of(helper)))
            checkpoint(progress, (helper + 1) / count, _STAGE)

    def _rows_of(self, helper: int) -> np.ndarray:
        return self.rows[4 * helper : 4 * helper + 4]

    def _seed_one(self, helper: int, left: np.ndarray) -> None:
        worst = int(np.argmax(left[self._near].sum(axis=1)))
        members = self._chosen[self._near[worst]]
        own = slice(4 * helper, 4 * helper + 4)
        for _ in range(_SEED_ROUNDS):
            data, _ = self._targets.of(members)
            equations = NormalEquations.of_one_bone(self._points[members], data)
            equations = equations.divided(self._scale)
            motion = rigid.fit_alone(equations.products, equations.moments[None])
            if self._kind == "AFFINE":
                self.rows[own] = self._scale * equations.solve(to_rows(motion), HOLD)
            elif self._axes is not None:
                affine = from_rows(equations.solve(to_rows(motion), HOLD))
                axes = rigid.stretch_axes(affine, equations.moments[None])
                self._axes[helper] = axes[0]
                self.rows[own] = self._scale * to_rows(rigid.sweep(equations, motion, axes))
            else:
                self.rows[own] = self._scale * to_rows(motion)
            gain = left - self._targets.left_by(self._rows_of(helper))
            # The vertices that it would help, strongest first, up to most of its total gain.
            order = np.argsort(-gain, kind="stable")
            total = np.cumsum(np.maximum(gain[order], 0.0))
            if not total[-1] > 0:
                return
            enough = int(np.searchsorted(total, 0.7 * total[-1])) + 1
            members = self._chosen[order[: max(enough, min(_SEED_VERTICES, len(order)))]]

    # --- weights and motion in turn -----------------------------------------------------------------------------------

    def solve(self, iterations: int, progress: Progress) -> None:
        last = np.inf
        for number in range(iterations):
            equations, error, left = self.weights_step()
            idle = np.flatnonzero(self.shares.max(axis=0) < _LEAST_WEIGHT)
            if len(idle) and number < iterations - 1:
                for helper in idle.tolist():
                    self.shares[:, helper] = 0.0
                    self._seed_one(helper, left)
                    left = np.minimum(left, self._targets.left_by(self._rows_of(helper)))
            self.motion_step(equations)
            checkpoint(progress, (number + 1) / iterations, _STAGE)
            if not len(idle) and last - error <= _WORTH_IT * error:
                break
            last = error
        # The best weights for the last motion.
        self.weights_step()

    def weights_step(self) -> tuple[NormalEquations, float, np.ndarray]:
        """New shares; the normal equations of the helpers, the squared error (a sum) and its parts (n,)."""
        model = BoneModel(self.rows)
        helper_count = model.bone_count
        equations, near = (NormalEquations(helper_count, self._matrix.height) for _ in range(2))
        left = np.zeros(len(self._points))
        room = np.minimum(self._targets.room, helper_count)
        for allowed in np.unique(room[self._chosen]):
            same = self._chosen[room[self._chosen] == allowed]
            for block in vertex_blocks(len(same)):
                self._improve(model, same[block], int(allowed), equations, near, left)
        left = left[self._chosen]
        self._keep_near(equations, near)
        return equations, float(left.sum()), left

    def _improve(
        self,
        model: BoneModel,
        part: np.ndarray,
        allowed: int,
        equations: NormalEquations,
        near: NormalEquations,
        left: np.ndarray,
    ) -> None:
        points, budget = self._points[part], self._budget[part]
        data, own = self._targets.of(part)
        count, helper_count = len(part), model.bone_count
        everyone = np.tile(np.arange(helper_count), (count, 1))
        gram = np.empty((helper_count + 1, helper_count + 1, count))
        gram[1:, 1:] = predictions_gram(model, everyone, monomials(points))
        gram[0, 0] = np.einsum("ij,ij->i", own, own)
        gram[0, 1:] = gram[1:, 0] = np.einsum("npi,ni->pn", model.data_products(own), points)
        products = np.empty((helper_count + 1, count))
        products[0] = np.einsum("ij,ij->i", own, data)
        products[1:] = np.einsum("npi,ni->pn", model.data_products(data), points)
        present = np.vstack([1.0 - self.shares[part].sum(axis=1), self.shares[part].T])
        norms = np.einsum("ij,ij->i", data, data)
        diagonal = np.arange(1, helper_count + 1)
        astray = np.maximum(gram[diagonal, diagonal] - 2.0 * products[1:] + norms, 0.0)
        products[1:] -= 0.5 * NEARNESS * astray
        fitted, errors = best_shares(gram, products, present, allowed, _ROUGH_STEPS)
        self.shares[part] = fitted[1:].T
        errors -= NEARNESS * (fitted[1:] * astray).sum(axis=0)
        left[part] = budget**2 * np.maximum(errors + norms, 0.0)
        design = (budget[:, None] * fitted[1:].T)[:, :, None] * points[:, None, :]
        target = budget[:, None] * (data - fitted[0][:, None] * own)
        equations.add(design.reshape(count, -1), target)
        self._add_near(near, part, data)

    def _add_near(self, near: NormalEquations, part: np.ndarray, data: np.ndarray) -> None:
        """Equations for each helper alone: it should move its vertices as they move, weighted by its shares."""
        add_near(near, self._points[part], self._budget[part, None] ** 2 * self.shares[part], data)

    def _keep_near(self, equations: NormalEquations, near: NormalEquations) -> None:
        """Keep each helper close to the motion of its vertices."""
        shares, counts = self.shares[self._chosen], self._budget[self._chosen] ** 2
        keep_near(equations, near, counts @ shares**2, counts @ shares)

    def motion_step(self, equations: NormalEquations) -> None:
        if self._kind == "AFFINE":
            self.rows = equations.solve(self.rows, HOLD)
            return
        equations = equations.divided(self._scale)
        motion = from_rows(self.rows / self._scale)
        for _ in range(_PASSES_PER_SWEEP):
            motion = rigid.sweep(equations, motion, self._axes)
        self.rows = self._scale * to_rows(motion)

    def adapt(self, iterations: int, progress: Progress) -> None:
        """All weights and the helpers' motion in turn."""
        own_count, helper_count = len(self._targets.locked), self.shares.shape[1]
        bones, weights, _ = self.whole()
        chosen = np.zeros(len(bones), bool)
        chosen[self._chosen] = True
        locked = np.concatenate([self._targets.locked, np.zeros(helper_count, bool)])
        rows = np.vstack([self._targets.own_rows, self.rows])
        given = Given(bones, weights, locked, ~chosen)
        problem = WeightProblem.of(self._matrix, self._points, rows, self._most, given)
        problem.start_from(bones, weights)
        before = weight_matrix(bones, weights, len(locked))
        errors = self.weights_step()[1]
        strength = _OWN_PULL * errors / len(self._chosen)
        free = np.arange(len(locked)) >= own_count
        last = np.inf
        for number in range(iterations):
            left = 0.0
            for _, allowed, group in problem.groups():
                for block in vertex_blocks(len(group)):
                    part = group[block]
                    pull = Pull(np.full(len(part), strength), before[part].toarray())
                    left += problem.improve(part, allowed, pull)
            matrix = problem.weights()
            change = matrix - before
            left += strength * float(change.multiply(change).sum())
            checkpoint(progress, (number + 1) / iterations, _STAGE)
            if last - left <= _WORTH_IT * left or number == iterations - 1:
                break
            last = left
            bones, weights = problem.result()
            self.shares = matrix[:, own_count:].toarray() / np.maximum(self._budget, LEAST_BUDGET)[:, None]
            equations = skin_equations(self._matrix, self._points, bones, weights, len(locked), ignore)
            self.adapted_motion_step(reduced_equations(equations, from_rows(rows), free))
            rows = np.vstack([self._targets.own_rows, self.rows])
            problem.move(rows)
        self._adapted = problem.result()

    def adapted_motion_step(self, equations: NormalEquations) -> None:
        """``motion_step`` that keeps helpers near their vertices; a motion that is not better is dropped."""
        held, near = (NormalEquations(equations.bone_count, equations.products.shape[1]) for _ in range(2))
        held += equations
        for block in vertex_blocks(len(self._chosen)):
            part = self._chosen[block]
            self._add_near(near, part, self._targets.of(part)[0])
        self._keep_near(held, near)
        before, error = self.rows, equations.squared_error(self.rows)
        self.motion_step(held)
        if not equations.squared_error(self.rows) <= error:
            self.rows = before

    def whole(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bones and weights (N, K) of rig and helpers, and which vertices (N,) helpers take part in."""
        own_count, helper_count = len(self._targets.locked), self.shares.shape[1]
        shares = np.where(self.shares > _LEAST_WEIGHT, self.shares, 0.0)
        given = shares.sum(axis=1)
        changed = given > 0
        left = np.maximum(1.0 - given, _LEAST_OWN)
        shares[changed] *= ((1.0 - left[changed]) / given[changed])[:, None]
        own = self._targets.weights * np.where(self._targets.locked[self._targets.bones], 1.0, left[:, None])
        total = weight_matrix(self._targets.bones, own, own_count)
        total.resize(len(own), own_count + helper_count)
        columns = np.tile(np.arange(own_count, own_count + helper_count), (len(own), 1))
        total = total + weight_matrix(columns, shares * self._budget[:, None], own_count + helper_count)
        total.eliminate_zeros()
        widest = int(np.diff(total.indptr).max(initial=1))
        return *padded_influences(*matrix_influences(total.tocsr(), widest), widest), changed

    def result(self, progress: Progress) -> HelperBones:
        helper_count = self.shares.shape[1]
        bones, weights, changed = self.whole()
        if self._adapted is not None:
            (bones, weights), changed = self._adapted, np.zeros(len(bones), bool)
            changed[self._chosen] = True
        motion = self._matrix.to_object_space(self._points[:, :3], from_rows(self.rows))[1]
        before, after = self._measured(bones, weights, motion, progress)
        counted = [np.linalg.norm(self._scale[::3] * meter.frame_e_rms) for meter in (before, after)]
        if not counted[1] <= counted[0]:
            # The gain of helpers can be less than rounding.
            bones, weights, after = self._targets.bones, self._targets.weights, before
            changed = np.zeros(len(bones), bool)
        return HelperBones(
            motion,
            np.tile(np.eye(3), (helper_count, 1, 1)) if self._axes is None else self._axes,
            bones,
            weights,
            changed,
            after.e_rms,
            after.max_error,
            before.e_rms,
            before.max_error,
        )

    def _measured(
        self, bones: np.ndarray, weights: np.ndarray, motion: np.ndarray, progress: Progress
    ) -> tuple[ErrorMeter, ErrorMeter]:
        frames = self._animation.frames
        before, after = (ErrorMeter(unit_scale(frames), len(self._points)) for _ in range(2))
        given = self._targets.bones, self._targets.weights
        for row, positions in enumerate(frames):
            every = np.concatenate([self._transforms[row], motion[row]])
            before.add(positions, skin_frame(self._rest, *given, self._transforms[row]))
            after.add(positions, skin_frame(self._rest, bones, weights, every))
            checkpoint(progress, (row + 1) / len(frames), "Measuring")
        return before, after
