# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones whose place beside their carrier is a quadratic function of joints' rotations (see ``channels``).

Location and rotation are along axes of the helper's own, in which few channels have most of the motion. Each channel
takes what explains it best of a few joints near the carrier. Nothing is added at rest, so the helper rests where it was
made.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ..decomposition.transforms import NormalEquations, from_rows, to_rows
from ..quaternions import canonical, from_matrices, to_matrices
from ..rotations import nearest_rotations
from .channels import PRODUCTS, chosen_terms, features, fitted
from .skeleton import Skeleton

CHANNELS = 6
# Ridge for each pose; and how firmly the rotation of a helper stays with its carrier.
_RIDGE, _HOLD = 1e-3, 1e-3
_STEPS_AWAY, _MOST_CANDIDATES = 3, 30
# At half a turn, where w is 0, the components of a quaternion leap: joints that come near it drive nothing.
_LEAST_W = 0.2
# A helper with a smaller sum of squared weights stays as it is.
_LEAST_MASS = 1e-6


@dataclass(frozen=True, eq=False)
class DrivenHelper:
    """carrier: the bone that carries it; center (3,) and axes (3, 3), in columns: its place at rest. joints: bones
    whose turns against their parents move it; coefficients (9 J, 6): from the joints' features to its shift, and the
    x y z of its rotation (1, x, y, z), not normalized, both relative to the carrier at rest and along its axes."""

    carrier: int
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    joints: tuple[int, ...] = ()
    coefficients: np.ndarray = field(default_factory=lambda: np.zeros((0, CHANNELS)))
    axes: np.ndarray = field(default_factory=lambda: np.eye(3))

    def beside(self, turns: np.ndarray) -> np.ndarray:
        """(F, 3, 4): what it does before its carrier moves it, for all bones' turns (F, P, 4)."""
        channels = features(turns, self.joints) @ self.coefficients
        return _matrices(channels[:, :3] @ self.axes.T, channels[:, 3:] @ self.axes.T, self.center)

    def scaled(self, size: float, origin: np.ndarray | float = 0.0) -> "DrivenHelper":
        """The helper where lengths are ``size`` times as large and the present origin is at ``origin`` (3,)."""
        coefficients = self.coefficients * np.repeat([size, 1.0], 3)
        return replace(self, center=self.center * size + origin, coefficients=coefficients)

    def within(self, matrix: np.ndarray) -> "DrivenHelper":
        """The helper in another rest space, to which ``matrix`` (4, 4), a similarity, leads."""
        linear = matrix[:3, :3]
        # Negative for a mirror image, which shifts the other way along axes that turn alike.
        size = np.cbrt(np.linalg.det(linear))
        axes = linear / size @ self.axes
        return replace(self.scaled(size), center=linear @ self.center + matrix[:3, 3], axes=axes)


def helper_motion(helpers: list[DrivenHelper], turns: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """(F, H, 3, 4): motion of the helpers for the turns (F, P, 4) and the motion (F, P, 3, 4) of the skeleton."""
    found = np.empty((len(turns), len(helpers), 3, 4))
    for index, helper in enumerate(helpers):
        found[:, index] = carried(motion[:, helper.carrier], helper.beside(turns))
    return found


def carried(first: np.ndarray, then: np.ndarray) -> np.ndarray:
    """The product of affine motions (F, 3, 4): ``then`` within ``first``."""
    result = first[..., :3] @ then
    result[..., 3] += first[..., 3]
    return result


def fit_in_turn(
    skeleton: Skeleton,
    turns: np.ndarray,
    helpers: list[DrivenHelper],
    own: np.ndarray,
    motion: np.ndarray,
    equations: NormalEquations,
    *,
    choose: bool,
    least_gain: float,
    importance: np.ndarray | None = None,
) -> tuple[list[DrivenHelper], np.ndarray]:
    """The helpers, each in turn fitted to what the others leave to it by the equations, and the new motion.

    own (F, P, 3, 4): motion of the skeleton. motion (F, M, 3, 4): of all bones of the equations, the helpers last.
    choose: whether the helpers choose their axes and variables anew, of which each must lower the squared error by
    ``least_gain``. importance (F,): by how much the errors of each frame count; None: all alike.
    """
    helpers, motion = list(helpers), motion.copy()
    rows, first = to_rows(motion), motion.shape[1] - len(helpers)
    counts = np.ones(len(turns)) if importance is None else importance
    for index, helper in enumerate(helpers):
        part = slice(4 * (first + index), 4 * (first + index) + 4)
        moment = equations.moments[part, part]
        if moment[3, 3] <= _LEAST_MASS:
            continue
        seen = equations.products[part] - equations.moments[part] @ rows + moment @ rows[part]
        wanted = _wanted(own[:, helper.carrier], from_rows(seen)[:, 0], moment)
        if choose:
            helpers[index] = _chosen_helper(skeleton, turns, helper.carrier, wanted, counts, least_gain)
        else:
            helpers[index] = _fitted_helper(turns, helper, wanted, counts)
        new = helper_motion([helpers[index]], turns, own)
        motion[:, first + index] = new[:, 0]
        rows[part] = to_rows(new)
    return helpers, motion


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The best free motion of a helper beside its carrier: shifts and rotations (F, 3), about and from ``center`` (3,).
    mass and spread (3, 3): of its vertices, of which they decide what an error of a channel costs."""

    shifts: np.ndarray
    rotations: np.ndarray
    center: np.ndarray
    mass: float
    spread: np.ndarray

    def along(self, axes: np.ndarray) -> np.ndarray:
        """(F, 6)"""
        return np.hstack([self.shifts @ axes, self.rotations @ axes])

    def costs(self, axes: np.ndarray) -> np.ndarray:
        """(6,) factors of the squared errors of the channels: a rotation (1, x, y, z) moves by twice its distance."""
        around = np.einsum("ji,jk,ki->i", axes, self.spread, axes)
        return np.concatenate([np.full(3, self.mass), 4.0 * (around.sum() - around)])

    def principal_axes(self, counts: np.ndarray) -> np.ndarray:
        """(3, 3) right-handed: those along and about which most or least of the motion is."""
        shifts, rotations = self.shifts * counts[:, None], self.rotations * counts[:, None]
        reach = 4.0 * np.trace(self.spread) / 1.5
        axes = np.linalg.eigh(self.mass * shifts.T @ shifts + reach * rotations.T @ rotations)[1]
        return np.asarray(axes * np.sign(np.linalg.det(axes)))


def _wanted(motion: np.ndarray, data: np.ndarray, moment: np.ndarray) -> _Wanted:
    """What a helper should do: motion (F, 3, 4) of the carrier; data (F, 3, 4) Σ u y vᵀ and moment (4, 4) Σ u² v vᵀ
    over its vertices [v; 1] of weight u, where y is what the other bones leave to it.

    The free rotation and shift of each pose are found in the carrier's space; the error is quadratic in both with the
    same metric in all poses, so that the regression of the optimum is the optimum.
    """
    mass, center = float(moment[3, 3]), moment[:3, 3] / moment[3, 3]
    spread = moment[:3, :3] - mass * np.outer(center, center)
    seen = np.linalg.solve(motion[:, :, :3], data - motion[:, :, 3:] * moment[3])
    covariance = seen[..., :3] - seen[..., 3:] * center
    rotations = nearest_rotations(covariance + (_HOLD * np.trace(spread) + 1e-12 * mass) * np.eye(3))
    quaternions = canonical(from_matrices(rotations))
    # A half turn would be infinite here; no helper that does any good is near one.
    vectors = quaternions[:, 1:] / np.maximum(quaternions[:, :1], 0.25)
    return _Wanted(seen[..., 3] / mass - center, vectors, center, mass, spread)


def _chosen_helper(
    skeleton: Skeleton, turns: np.ndarray, carrier: int, wanted: _Wanted, counts: np.ndarray, least_gain: float
) -> DrivenHelper:
    """The helper with the axes, joints and variables that are worth their time."""
    axes = wanted.principal_axes(counts)
    near = skeleton.neighbors(carrier, _STEPS_AWAY)[:_MOST_CANDIDATES]
    near = [joint for joint in near if np.abs(turns[:, joint, 0]).min() > _LEAST_W]
    gram, right = _regression(features(turns, near), wanted.along(axes), counts)
    costs = np.maximum(wanted.costs(axes), 1e-300)
    found = [
        chosen_terms(gram, each, least_gain / cost) if near else np.zeros(0, bool)
        for each, cost in zip(right.T, costs, strict=True)
    ]
    terms = np.stack(found, axis=-1).reshape(-1, len(PRODUCTS), CHANNELS)
    kept = np.flatnonzero(terms.any(axis=(1, 2)))
    coefficients = fitted(gram, right, terms.reshape(-1, CHANNELS)).reshape(terms.shape)[kept].reshape(-1, CHANNELS)
    return DrivenHelper(carrier, wanted.center, tuple(near[place] for place in kept), coefficients, axes)


def _fitted_helper(turns: np.ndarray, helper: DrivenHelper, wanted: _Wanted, counts: np.ndarray) -> DrivenHelper:
    """The helper with the same axes and variables."""
    gram, right = _regression(features(turns, helper.joints), wanted.along(helper.axes), counts)
    return replace(helper, center=wanted.center, coefficients=fitted(gram, right, helper.coefficients != 0))


def _regression(known: np.ndarray, wanted: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The normal equations (D, D) and (D, 6) of a regression, with a ridge; counts (F,): factors of the errors."""
    known, wanted = known * counts[:, None], wanted * counts[:, None]
    gram = known.T @ known
    gram[np.diag_indices(len(gram))] += _RIDGE * float(counts @ counts)
    return gram, known.T @ wanted


def _matrices(shifts: np.ndarray, vectors: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(F, 3, 4) of shifts (F, 3) and rotations (1, x, y, z) about ``center``, of which x y z are ``vectors`` (F, 3)."""
    quaternions = np.hstack([np.ones((len(vectors), 1)), vectors])
    rotations = to_matrices(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True))
    return np.concatenate([rotations, (center + shifts - rotations @ center)[:, :, None]], axis=2)
