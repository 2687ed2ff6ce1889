# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones whose place beside their carrier is a quadratic function of joints' rotations.

The nine products of a quaternion's components that vanish at rest (x w, y w, z w, x², y², z², x y, x z, y z) are the
same for q and −q, and smooth over all rotations. A helper takes a few joints near its carrier: those that explain
its motion best. Nothing is added at rest, so the helper rests where it was made.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..decomposition.transforms import NormalEquations, from_rows, to_rows
from ..quaternions import canonical, from_matrices, to_matrices
from ..rotations import nearest_rotations
from .skeleton import Skeleton

# Pairs of components w x y z, in the order of the features of a joint.
PRODUCTS = ((0, 1), (0, 2), (0, 3), (1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (2, 3))
# Ridge for each pose; and how firmly the rotation of a helper stays with its carrier.
_RIDGE, _HOLD = 1e-3, 1e-3
# A further joint must explain this share of a helper's motion.
_WORTH_A_JOINT = 0.005
_STEPS_AWAY, _MOST_CANDIDATES = 3, 30
# A helper with a smaller sum of squared weights stays as it is.
_LEAST_MASS = 1e-6


@dataclass(frozen=True, eq=False)
class DrivenHelper:
    """carrier: the bone that carries it; center (3,): its place at rest. joints: bones whose turns against their
    parents move it; coefficients (9 J, 6): from the joints' features to its shift, and the x y z of its rotation
    (1, x, y, z), not normalized, both relative to the carrier at rest and along the axes of the rest space."""

    carrier: int
    center: np.ndarray
    joints: tuple[int, ...]
    coefficients: np.ndarray

    def beside(self, turns: np.ndarray) -> np.ndarray:
        """(F, 3, 4): what it does before its carrier moves it, for all bones' turns (F, P, 4)."""
        channels = features(turns, self.joints) @ self.coefficients
        return _matrices(channels, self.center)

    def scaled(self, size: float, origin: np.ndarray | float = 0.0) -> "DrivenHelper":
        """The helper where lengths are ``size`` times as large and the present origin is at ``origin`` (3,)."""
        coefficients = self.coefficients * np.repeat([size, 1.0], 3)
        return replace(self, center=self.center * size + origin, coefficients=coefficients)

    def within(self, matrix: np.ndarray) -> "DrivenHelper":
        """The helper in another rest space, to which ``matrix`` (4, 4), a similarity, leads."""
        linear = matrix[:3, :3]
        size = np.cbrt(abs(np.linalg.det(linear)))
        # A mirror image turns the other way.
        turn = linear / size * np.sign(np.linalg.det(linear))
        coefficients = np.hstack([self.coefficients[:, :3] @ linear.T, self.coefficients[:, 3:] @ turn.T])
        return replace(self, center=linear @ self.center + matrix[:3, 3], coefficients=coefficients)


def features(turns: np.ndarray, joints: tuple[int, ...] | list[int]) -> np.ndarray:
    """(F, 9 J) the products of the joints' quaternions; turns (F, P, 4)."""
    parts = [turns[:, joint, a] * turns[:, joint, b] for joint in joints for a, b in PRODUCTS]
    return np.array(parts).reshape(-1, len(turns)).T


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
    most_joints: int,
    importance: np.ndarray | None = None,
) -> tuple[list[DrivenHelper], np.ndarray]:
    """The helpers, each in turn fitted to what the others leave to it by the equations, and the new motion.

    own (F, P, 3, 4): motion of the skeleton. motion (F, M, 3, 4): of all bones of the equations, the helpers last.
    choose: whether the helpers choose their joints anew, ``most_joints`` each. importance (F,): of the frames.
    """
    helpers, motion = list(helpers), motion.copy()
    rows, first = to_rows(motion), motion.shape[1] - len(helpers)
    for index, helper in enumerate(helpers):
        part = slice(4 * (first + index), 4 * (first + index) + 4)
        moment = equations.moments[part, part]
        if moment[3, 3] <= _LEAST_MASS:
            continue
        seen = equations.products[part] - equations.moments[part] @ rows + moment @ rows[part]
        helpers[index] = fitted_helper(
            skeleton,
            turns,
            helper.carrier,
            own[:, helper.carrier],
            from_rows(seen)[:, 0],
            moment,
            most_joints,
            () if choose else helper.joints,
            importance,
        )
        new = helper_motion([helpers[index]], turns, own)
        motion[:, first + index] = new[:, 0]
        rows[part] = to_rows(new)
    return helpers, motion


def fitted_helper(
    skeleton: Skeleton,
    turns: np.ndarray,
    carrier: int,
    motion: np.ndarray,
    data: np.ndarray,
    moment: np.ndarray,
    most_joints: int,
    joints: tuple[int, ...] = (),
    importance: np.ndarray | None = None,
) -> DrivenHelper:
    """The helper that best carries its vertices where they should be.

    motion (F, 3, 4) of the carrier. data (F, 3, 4) Σ u y vᵀ and moment (4, 4) Σ u² v vᵀ over its vertices [v; 1] of
    weight u, where y is what the other bones leave to it. joints: () to choose ``most_joints``. importance (F,): by how
    much the errors of each pose count; None: all alike.
    The free rotation and shift of each pose are found in the carrier's space, then their regression; the error is
    quadratic in both with the same metric in all poses, so that the regression of the optimum is the optimum.
    """
    mass, center = moment[3, 3], moment[:3, 3] / moment[3, 3]
    spread = moment[:3, :3] - mass * np.outer(center, center)
    seen = np.linalg.solve(motion[:, :, :3], data - motion[:, :, 3:] * moment[3])
    covariance = seen[..., :3] - seen[..., 3:] * center
    rotations = nearest_rotations(covariance + (_HOLD * np.trace(spread) + 1e-12 * mass) * np.eye(3))
    quaternions = canonical(from_matrices(rotations))
    # A half turn would be infinite here; no helper that does any good is near one.
    vectors = quaternions[:, 1:] / np.maximum(quaternions[:, :1], 0.25)
    wanted = np.hstack([seen[..., 3] / mass - center, vectors])
    counts = np.ones(len(turns)) if importance is None else importance
    if not joints:
        reach = 2.0 * np.sqrt(max(np.trace(spread), 0.0) / mass)
        joints = _chosen_joints(skeleton, turns, carrier, wanted * np.repeat([1.0, reach], 3), counts, most_joints)
    return DrivenHelper(carrier, center, joints, _regression(features(turns, joints), wanted, counts)[0])


def _chosen_joints(
    skeleton: Skeleton, turns: np.ndarray, carrier: int, wanted: np.ndarray, counts: np.ndarray, most: int
) -> tuple[int, ...]:
    """The joints whose features explain ``wanted`` (F, 6) best, one added after the other."""
    candidates = skeleton.neighbors(carrier, _STEPS_AWAY)[:_MOST_CANDIDATES]
    chosen: tuple[int, ...] = ()
    explained, total = 0.0, float(((wanted * counts[:, None]) ** 2).sum())
    while candidates and len(chosen) < most:
        gains = [_regression(features(turns, (*chosen, joint)), wanted, counts)[1] for joint in candidates]
        best = int(np.argmax(gains))
        if chosen and gains[best] - explained < _WORTH_A_JOINT * total:
            break
        explained = gains[best]
        chosen = (*chosen, candidates.pop(best))
    return chosen


def _regression(known: np.ndarray, wanted: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients (D, 6), and how much of the sum of squares they explain; counts (F,): factors of the errors."""
    known, wanted = known * counts[:, None], wanted * counts[:, None]
    gram, right = known.T @ known, known.T @ wanted
    gram[np.diag_indices(len(gram))] += _RIDGE * float(counts @ counts)
    coefficients = np.linalg.solve(gram, right)
    return coefficients, float((right * coefficients).sum())


def _matrices(channels: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(F, 3, 4) of shifts and rotations (F, 6) about ``center``."""
    quaternions = np.hstack([np.ones((len(channels), 1)), channels[:, 3:]])
    rotations = to_matrices(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True))
    shift = center + channels[:, :3] - rotations @ center
    return np.concatenate([rotations, shift[:, :, None]], axis=2)
