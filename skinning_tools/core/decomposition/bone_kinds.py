# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of bones as the sweeps use them: how their transforms are fitted, extrapolated and finished.

All take the data of vertices from their ``source``, and turn their transforms into the ``model`` that vertices are
fitted to. Affine bones work on rows Tᵀ (4P, d) in the reduced animation, which they can follow anywhere. The transforms
of stiffer ones are rows (4P, 3F) of the animation itself, as a rotation is not a linear combination of others; their
vertices need no more than the reduced animation all the same.
"""

import numpy as np

from ..dense import product
from . import rigid
from .bone_model import BoneModel
from .reduction import AnimationMatrix, Reduction, Rows
from .transforms import NormalEquations, from_rows, to_rows

# How firmly affine transforms are held where the data say little: in the sweeps to the transforms of the last sweep, at
# the end to a rigid motion.
_HOLD_IN_SWEEPS = 1e-9
_HOLD_AT_START = 1e-6
_HOLD_AT_END = 3e-5
# The allowed cost of that hold: this share of the error, and this much of the unit ball; beyond that it is loosened.
_COST_OF_HOLD, _LEAST_COST = 1.0, 1e-3
_LOOSENED, _MOST_LOOSENINGS = 0.3, 12
# Stiff bones are solved in the unreduced animation if their squared error is below this multiple of what is lost.
_TELLING = 25.0
# A multiple of the size of a bone that does not move. Two bones with nearly equal weights can move to opposite
# infinities and fit ever better by their difference, until the error is nothing but rounding: extrapolation does not
# push them beyond this.
_RUNAWAY = 100.0


class AffineBones:
    """Any 3 × 4 matrix a frame."""

    axes = None

    def __init__(self, matrix: AnimationMatrix, reduction: Reduction, bone_count: int):
        self.source = reduction
        self.final = HeldAffineBones(matrix)
        self._standstill = product(matrix.weigh(standstill(bone_count, matrix.height // 3)), reduction.basis)

    def on(self, matrix: AnimationMatrix, reduction: Reduction) -> "AffineBones":
        """The same bones on other vertices."""
        return AffineBones(matrix, reduction, len(self._standstill) // 4)

    def model(self, rows: np.ndarray) -> BoneModel:
        return BoneModel(rows)

    def of_source(self, equations: NormalEquations) -> NormalEquations:
        """The equations of the transforms, from those with the data of ``source``."""
        return equations

    def for_error(self, _squared_error: float) -> "AffineBones":
        return self

    def start(self, equations: NormalEquations) -> np.ndarray:
        return equations.solve(self._standstill, _HOLD_AT_START)

    def fit(self, equations: NormalEquations, rows: np.ndarray) -> np.ndarray:
        return equations.solve(rows, _HOLD_IN_SWEEPS)

    def extrapolate(self, rows: np.ndarray, change: np.ndarray, factor: float) -> np.ndarray:
        limit = _RUNAWAY * np.linalg.norm(self._standstill[:4])
        sizes = np.linalg.norm(rows.reshape(len(rows) // 4, -1), axis=1)
        return rows + factor * change if sizes.max() <= limit else rows


class _UnreducedAffineBones:
    """Any 3 × 4 matrix a frame, for data of the unreduced animation's size."""

    def __init__(self, source: Rows):
        self.source = source

    def model(self, rows: np.ndarray) -> BoneModel:
        return BoneModel(rows)

    def of_source(self, equations: NormalEquations) -> NormalEquations:
        return equations

    def extrapolate(self, rows: np.ndarray, _change: np.ndarray, _factor: float) -> np.ndarray:
        return rows


class FollowingAffineBones(_UnreducedAffineBones):
    """Affine bones in the unreduced animation that follow other data of their vertices, and where these say little keep
    the transforms that they begin with: held to those of the last sweep instead, they would drift away sweep by sweep.
    """

    def __init__(self, source: Rows, beginning: np.ndarray):
        super().__init__(source)
        self._beginning = beginning

    def fit(self, equations: NormalEquations, _rows: np.ndarray) -> np.ndarray:
        return equations.solve(self._beginning, _HOLD_AT_END)


class HeldAffineBones(_UnreducedAffineBones):
    """Affine bones in the unreduced animation, held to a rigid motion of each bone's region: for the last sweeps.

    In the thin direction of a piece of cloth, a bone's matrix is nearly free, and the best fit of each single frame
    jumps from frame to frame: exact at the frames, wrong between them.
    """

    source: AnimationMatrix

    def __init__(self, matrix: AnimationMatrix):
        super().__init__(matrix)
        self._allowed = np.inf

    def allow(self, squared_error: float, squared_norm: float) -> None:
        """Take ‖TX − A‖² − ‖A‖² of affine bones that are not held as what to stay close to; and ‖A‖²."""
        size = self.source.height * self.source.vertex_count
        error = np.sqrt(max(squared_error + squared_norm, 0.0) / size)
        allowed = (1.0 + _COST_OF_HOLD) * error + _LEAST_COST
        self._allowed = size * allowed**2 - squared_norm

    def fit(self, equations: NormalEquations, _rows: np.ndarray) -> np.ndarray:
        rigid_rows = to_rows(rigid.fit_alone(self.source.unweigh(equations.products), equations.bone_moments))
        rows = self.source.weigh(rigid_rows)
        # Repeated, the hold fades where the data decide, and stays where they do not.
        rows = equations.solve(rows, _HOLD_AT_END)
        hold = _HOLD_AT_END
        for _ in range(_MOST_LOOSENINGS):
            rows = equations.solve(rows, hold)
            if equations.squared_error(rows) <= self._allowed:
                break
            hold *= _LOOSENED
        return rows

    def toward(self, targets: Rows, rows: np.ndarray) -> FollowingAffineBones:
        """Bones that go on from their transforms ``rows`` to other data of the same vertices."""
        return FollowingAffineBones(targets, rows)


class StiffBones:
    """Rotations and translations (RIGID), or with scales along axes of each bone's own (SCALED).

    ``final`` are the same bones with vertices in the unreduced animation, for the last sweeps.
    """

    def __init__(self, matrix: AnimationMatrix, reduction: Reduction | None, scaled: bool):
        self.source: Rows = matrix if reduction is None else reduction
        self.axes: np.ndarray | None = None
        self._matrix, self._reduction, self._scaled = matrix, reduction, scaled

    @property
    def final(self) -> "StiffBones":
        return self._with(self._matrix, None)

    def toward(self, targets: Rows, _rows: np.ndarray) -> "StiffBones":
        """Bones that go on from their transforms to other data of the same vertices, in the unreduced animation."""
        other = self.final
        other.source = targets
        return other

    def on(self, matrix: AnimationMatrix, reduction: Reduction) -> "StiffBones":
        """The same bones on other vertices."""
        return self._with(matrix, None if self._reduction is None else reduction)

    def _with(self, matrix: AnimationMatrix, reduction: Reduction | None) -> "StiffBones":
        other = StiffBones(matrix, reduction, self._scaled)
        other.axes = self.axes
        return other

    def for_error(self, squared_error: float) -> "StiffBones":
        """``final`` where bones with this ‖TX − A‖² leave little more than the reduction loses: rigid parts are then
        met exactly."""
        if self._reduction is None or squared_error > _TELLING * self._reduction.lost:
            return self
        return self.final

    def allow(self, _squared_error: float, _squared_norm: float) -> None:
        pass

    def model(self, rows: np.ndarray) -> BoneModel:
        if self._reduction is None:
            return BoneModel(rows)
        # With the products of the whole transforms, distances to BC are exact: its part outside of B is zero.
        return BoneModel(product(rows, self._reduction.basis), product(rows, rows.T))

    def of_source(self, equations: NormalEquations) -> NormalEquations:
        """The equations of the transforms, from those with the data of ``source``: X (BC)ᵀ = (X Cᵀ) Bᵀ."""
        if self._reduction is None:
            return equations
        return equations.of(product(equations.products, self._reduction.basis.T))

    def start(self, equations: NormalEquations) -> np.ndarray:
        equations = self._unweighted(self.of_source(equations))
        motion = rigid.fit_alone(equations.products, equations.bone_moments)
        if self._scaled:
            affine = from_rows(equations.solve(to_rows(motion), _HOLD_AT_START))
            self.axes = rigid.stretch_axes(affine, equations.bone_moments)
        return self._matrix.weigh(to_rows(motion))

    def fit(self, equations: NormalEquations, rows: np.ndarray) -> np.ndarray:
        return self.swept(equations, rows, 1)

    def swept(self, equations: NormalEquations, rows: np.ndarray, passes: int) -> np.ndarray:
        """``rows`` Tᵀ (4P, 3F) after some passes of ``rigid.sweep``."""
        equations, transforms = self._unweighted(equations), from_rows(self._matrix.unweigh(rows))
        for _ in range(passes):
            transforms = rigid.sweep(equations, transforms, self.axes)
        return self._matrix.weigh(to_rows(transforms))

    def extrapolate(self, rows: np.ndarray, change: np.ndarray, factor: float) -> np.ndarray:
        moved = from_rows(self._matrix.unweigh(rows + factor * change))
        return self._matrix.weigh(to_rows(rigid.nearest(moved, self.axes)))

    def _unweighted(self, equations: NormalEquations) -> NormalEquations:
        return equations.of(self._matrix.unweigh(equations.products))


def standstill(bone_count: int, frame_count: int) -> np.ndarray:
    """Tᵀ (4P, 3F) of bones that do not turn, in solver units: all follow the mean position."""
    rows = np.zeros((bone_count, 4, frame_count, 3))
    rows[:, :3] = np.eye(3)[:, None]
    return rows.reshape(4 * bone_count, -1)


BoneKind = AffineBones | StiffBones
FinalBones = HeldAffineBones | StiffBones
AnyBones = BoneKind | FinalBones | FollowingAffineBones
