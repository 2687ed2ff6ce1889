# SPDX-License-Identifier: GPL-3.0-or-later
"""The best motion of bones that hang together by joints, from the normal equations alone.

A bone j is M_j v = B_j (v − h_j) + p_j with its joint h_j at rest. A jointed bone's p_j is the place to which its
parent takes that joint, p_j = M_parent h_j. The mesh is still linear in B_j, which moves its own vertices and, through
the joints, all bones below it. With X the stacked [w_k v; w_k] of all bones, B_j multiplies U_jᵀ X, where U_j (4P, 3)
is made of the joints alone. Each bone's best B_j, the others' B given, is therefore a weighted Procrustes problem (or
plain least squares) over U_jᵀ S U_j and (D − TS) U_j, with S = X Xᵀ and D = A Xᵀ: a sweep over the bones touches no
vertex, and never raises the error.
"""

from dataclasses import dataclass

import numpy as np

from ..bone_order import parents_first
from ..dense import product
from ..progress import Progress, checkpoint
from ..rotations import nearest_rotations
from . import rigid
from .transforms import NormalEquations, from_rows, reduced_equations, to_rows

_STAGE = "Motion"
_MOST_SWEEPS = 100
# The share of the remaining squared error that a sweep must save for another one to follow.
_WORTH_IT = 1e-5
# A share of the animation's squared norm: a smaller error is rounding.
_EXACT = 1e-13
# How firmly affine bones are held to the rigid motion, step by step: directions that the data leave open stay.
_HOLDS = (1e-4, 1e-6, 1e-6)
_FIRST_EXTRAPOLATION, _GROWTH, _LARGEST_EXTRAPOLATION = 0.7, 1.2, 4.0


def _alone(equations: NormalEquations, start: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(F, P, 3, 4): each free bone fitted to its own vertices, as if no other bone moved them."""
    result = start.copy()
    moments = equations.bone_moments
    busy = free & (moments[:, 3, 3] > 0)
    if busy.any():
        chosen = np.repeat(busy, 4)
        result[:, busy] = rigid.fit_alone(equations.products[chosen], moments[busy])
    return result


def joined(motion: np.ndarray, heads: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """``motion`` (F, P, 3, 4) with joints exactly where the parents take them, all rotations as they are."""
    result = motion.copy()
    for index in parents_first(parents):
        parent = parents[index]
        if parent >= 0:
            joint = result[:, parent, :, :3] @ heads[index] + result[:, parent, :, 3]
            result[:, index, :, 3] = joint - result[:, index, :, :3] @ heads[index]
    return result


def affine_motion(equations: NormalEquations, start: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(F, P, 3, 4): the ``free`` bones, affine and without joints, at their best; the others as in ``start``."""
    part = reduced_equations(equations, start, free)
    result = _alone(equations, start, free)
    rows = to_rows(result[:, free])
    for hold in _HOLDS:
        # Repeated, the hold fades where the data decide, and stays where they do not.
        rows = part.solve(rows, hold)
    result[:, free] = from_rows(rows)
    return result


@dataclass(frozen=True, eq=False)
class _Bone:
    """How one bone acts on the mesh: see the module's docstring.

    rows: those of U that are not zero; lever: U there (n, 3); pulled: S U (4P, 3); spread: Uᵀ S U (3, 3). For a free
    bone, which moves all that hangs on it along: carried (n,), S c (4P,), Uᵀ S c (3,) and cᵀ S c of c (4P,); mass 0
    marks a jointed one.
    """

    index: int
    rows: np.ndarray
    lever: np.ndarray
    pulled: np.ndarray
    spread: np.ndarray
    weight: float
    carried: np.ndarray
    pulled_carried: np.ndarray
    crossed: np.ndarray
    mass: float


class JointedBones:
    """The bones and their joints, in solver units; by default all are rigid and none is given."""

    def __init__(
        self,
        equations: NormalEquations,
        heads: np.ndarray,
        parents: np.ndarray,
        free: np.ndarray | None = None,
        kind: str = "RIGID",
        rigid_bones: np.ndarray | None = None,
        axes: np.ndarray | None = None,
    ):
        every = np.ones(len(parents), bool)
        free, rigid_bones = every if free is None else free, every if rigid_bones is None else rigid_bones
        axes = np.tile(np.eye(3), (len(parents), 1, 1)) if axes is None else axes
        self._equations = equations
        self._parents, self._free = np.asarray(parents), free
        # A bone without a joint turns about its vertices: about a far point, digits would be lost.
        self._heads = np.where(self._parents[:, None] < 0, rigid.centers(equations.bone_moments), heads)
        self._kind, self._rigid, self._axes = kind, rigid_bones, axes
        self._order = parents_first(self._parents)
        self._bones = [bone for index in self._order if free[index] for bone in [self._bone(index)] if bone.weight > 0]

    def _bone(self, index: int) -> _Bone:
        moments, size = self._equations.moments, 4 * self._equations.bone_count
        lever, carried = np.zeros((size, 3)), np.zeros(size)
        own = slice(4 * index, 4 * index + 3)
        lever[own] = np.eye(3)
        lever[4 * index + 3] = -self._heads[index]
        carried[4 * index + 3] = 1.0
        offsets = {index: np.zeros(3)}
        for child in self._order:
            parent = int(self._parents[child])
            if parent in offsets:
                # The bones below a child move with the child's joint.
                below = self._heads[child] - self._heads[index] if parent == index else offsets[parent]
                offsets[child] = below
                lever[4 * child + 3] = below
                carried[4 * child + 3] = 1.0
        rows = np.unique(np.concatenate([np.arange(4 * index, 4 * index + 3), np.flatnonzero(carried)]))
        pulled = product(np.ascontiguousarray(moments[:, rows]), lever[rows])
        pulled_carried = moments[:, rows] @ carried[rows]
        return _Bone(
            index,
            rows,
            lever[rows],
            pulled,
            lever[rows].T @ pulled[rows],
            float(carried[rows] @ pulled_carried[rows]),
            carried[rows],
            pulled_carried,
            lever[rows].T @ pulled_carried[rows],
            0.0 if self._parents[index] >= 0 else float(carried[rows] @ pulled_carried[rows]),
        )

    def solve(self, start: np.ndarray, squared_norm: float, progress: Progress) -> np.ndarray:
        """(F, P, 3, 4) from the given motion ``start``, which the fixed bones keep."""
        current, error = self._best_start(start)
        before, factor = None, _FIRST_EXTRAPOLATION
        for number in range(_MOST_SWEEPS):
            trial = current
            if before is not None:
                trial = self._extrapolated(current, before, factor)
            fitted, reached = self._sweep(trial)
            if reached > error and before is not None:
                factor *= 0.5
                fitted, reached = self._sweep(current)
            else:
                factor = min(factor * _GROWTH, _LARGEST_EXTRAPOLATION)
            gain, left = error - reached, max(reached + squared_norm, 0.0)
            if gain < 0:
                break
            before, current, error = current, fitted, reached
            checkpoint(progress, (number + 1) / _MOST_SWEEPS, _STAGE)
            if number and (gain <= _WORTH_IT * left or left <= _EXACT * squared_norm):
                break
        checkpoint(progress, 1.0, _STAGE)
        return current

    def slid(self, motion: np.ndarray, most: float) -> np.ndarray:
        """Better motion (F, P, 3, 4) in which a bone leaves its joint by up to ``most``: one sweep over rigid bones."""
        result, left = motion.copy(), self._left(motion)
        for bone in self._bones:
            self._improve(bone, result, left)
            parent = self._parents[bone.index]
            if parent >= 0:
                own, above = result[:, bone.index], result[:, parent]
                slip = (own - above)[..., :3] @ self._heads[bone.index] + (own - above)[..., 3]
                drawn = (left[:, bone.rows] @ bone.carried).reshape(slip.shape)
                wanted = slip + drawn / bone.weight
                size = np.linalg.norm(wanted, axis=1, keepdims=True)
                shift = wanted * np.minimum(1.0, most / np.maximum(size, np.finfo(float).tiny)) - slip
                left -= shift.reshape(-1, 1) * bone.pulled_carried
                self._turn(bone, result, np.zeros((len(result), 3, 3)), shift)
        return result

    def _best_start(self, start: np.ndarray) -> tuple[np.ndarray, float]:
        """Each bone fitted alone, the affine fit brought to what bones may do, or ``start``: whichever is closest."""
        alone = _alone(self._equations, start, self._free)
        found = [self.held(alone), self.held(start)]
        if self._free.any():
            found.append(self.held(affine_motion(self._equations, start, self._free)))
        errors = [self._equations.squared_error(to_rows(motion)) for motion in found]
        best = int(np.argmin(errors))
        return found[best], errors[best]

    def held(self, motion: np.ndarray) -> np.ndarray:
        """``motion`` (F, P, 3, 4) changed to the required bone kind, with all joints in place."""
        result = motion.copy()
        for index in self._order:
            if not self._free[index]:
                continue
            head, parent = self._heads[index], self._parents[index]
            carrier = parent if parent >= 0 else index
            joint = result[:, carrier, :, :3] @ head + result[:, carrier, :, 3]
            if self._kind != "AFFINE":
                axes = None if self._rigid[index] else self._axes[index][None]
                result[:, index] = rigid.nearest(result[:, index][:, None], axes)[:, 0]
            result[:, index, :, 3] = joint - result[:, index, :, :3] @ head
        return result

    def _extrapolated(self, current: np.ndarray, before: np.ndarray, factor: float) -> np.ndarray:
        moved = current + factor * (current - before)
        moved[:, ~self._free] = current[:, ~self._free]
        return self.held(moved)

    def _sweep(self, motion: np.ndarray) -> tuple[np.ndarray, float]:
        """Each bone set to its optimum in turn: the new motion and its ‖TX − A‖² − ‖A‖²."""
        result, left = motion.copy(), self._left(motion)
        for bone in self._bones:
            self._improve(bone, result, left)
        result = self.held(result) if self._kind == "AFFINE" else joined(result, self._heads, self._parents)
        return result, self._equations.squared_error(to_rows(result))

    def _left(self, motion: np.ndarray) -> np.ndarray:
        """(3F, 4P): what is left of the products, (A − TX) Xᵀ."""
        explained = product(self._equations.moments, to_rows(motion))
        return np.ascontiguousarray((self._equations.products - explained).T)

    def _improve(self, bone: _Bone, result: np.ndarray, left: np.ndarray) -> None:
        frame_count = len(result)
        current = result[:, bone.index, :, :3].copy()
        seen = product(np.ascontiguousarray(left[:, bone.rows]), bone.lever).reshape(frame_count, 3, 3)
        covariance, spread = seen + current @ bone.spread, bone.spread
        if bone.mass:
            joint = current @ self._heads[bone.index] + result[:, bone.index, :, 3]
            drawn = (left[:, bone.rows] @ bone.carried).reshape(frame_count, 3)
            covariance = covariance + joint[:, :, None] * bone.crossed
            target = drawn + current @ bone.crossed + bone.mass * joint
            covariance -= target[:, :, None] * (bone.crossed / bone.mass)
            spread = spread - np.outer(bone.crossed, bone.crossed) / bone.mass
        fitted = self._fit(bone, covariance, spread, current)
        change = fitted - current
        left -= product(change.reshape(-1, 3), np.ascontiguousarray(bone.pulled.T))
        shift = np.zeros((frame_count, 3))
        if bone.mass:
            shift = (target - fitted @ bone.crossed) / bone.mass - joint
            left -= shift.reshape(-1, 1) * bone.pulled_carried
        self._turn(bone, result, change, shift)

    def _fit(self, bone: _Bone, covariance: np.ndarray, spread: np.ndarray, current: np.ndarray) -> np.ndarray:
        hold = rigid.twist_hold(bone.weight, spread)
        if self._rigid[bone.index]:
            return nearest_rotations(covariance + hold * current)
        if self._kind == "SCALED":
            return rigid.rotation_and_scales(covariance, spread, bone.weight, hold, self._axes[bone.index], current)
        step = np.linalg.solve(spread + hold * np.eye(3), (covariance - current @ spread).swapaxes(1, 2))
        return current + step.swapaxes(1, 2)

    def _turn(self, bone: _Bone, result: np.ndarray, change: np.ndarray, shift: np.ndarray) -> None:
        """Add ``change`` (F, 3, 3) and ``shift`` (F, 3) of a bone to it and to all bones below it."""
        columns = np.zeros((len(result), 3, len(bone.rows)))
        columns += change @ bone.lever.T
        columns += shift[:, :, None] * bone.carried
        targets, parts = np.divmod(bone.rows, 4)
        result[:, targets, :, parts] += columns.transpose(2, 0, 1)
