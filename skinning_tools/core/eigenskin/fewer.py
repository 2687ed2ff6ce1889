# SPDX-License-Identifier: GPL-3.0-or-later
"""Fewer basis functions than examples (EigenSkin, section 2.4: ideally), by least squares.

The centers of the functions are those of the examples that are worth most: chosen one after the other, each the one
whose function, beside those before it, lowers the squared error at all examples most (orthogonal least squares: Chen,
Cowan, Grant 1991). As many are taken as the examples need to predict each other as well as they can.
"""

from dataclasses import dataclass, replace

import numpy as np

from .basis import root
from .interpolation import RIDGE
from .pose_space import PoseSpace, hinge_angles

# How much worse the examples may predict each other than with the number that is best.
_NO_LOSS = 1.05

# So few examples leave nothing to choose by.
_WORTH_ONE_EACH = 8

# Of the square of the displacements.
_ROUNDING = 1e-10

# Of a function's own length: what is left of it beside the others below this is rounding.
_DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class Fitted:
    """A space with fewer centers. solver (B, M): takes values at M observations to factors on its B ``features``."""

    space: PoseSpace
    solver: np.ndarray

    def weights(self, values: np.ndarray) -> np.ndarray:
        """(B, …) factors on the features of the function that comes closest to ``values`` (M, …), zero at rest."""
        return np.tensordot(self.solver, values, axes=1)


def fewer_functions(space: PoseSpace, gram: np.ndarray, most: int) -> Fitted | None:
    """At most ``most`` functions in place of one for each of M observations; None where that saves nothing.

    space: of the rest pose and M observations. gram (M, M): inner products of their displacements.
    """
    count = len(space.centers) - 1
    if count < _WORTH_ONE_EACH and most >= count:
        return None
    covariance = space.covariance() - RIDGE * np.eye(count)
    inverse = np.linalg.inv(space.covariance())
    # Observations that the others say much about count, not the ends of the range.
    sure = np.diag(inverse)
    lowest = float((np.einsum("ij,jk,ik->i", inverse, gram, inverse) / sure).sum())
    chosen, errors = _ends(space)[:most], {}
    while True:
        if chosen:
            errors[len(chosen)] = _left_out(covariance[:, chosen] @ _solver(covariance, chosen), gram, sure)
        following = _worth_most(covariance, gram, chosen) if len(chosen) < min(most, count - 1) else None
        if following is None:
            break
        chosen.append(following)
    if not errors:
        return None
    nothing = _ROUNDING * float(sure @ np.diag(gram))
    enough = max(_NO_LOSS**2 * min(lowest, *errors.values()), nothing)
    taken = next((size for size, error in errors.items() if error <= enough), len(chosen))
    if taken == count - 1 < most and errors[taken] > enough:
        return None
    chosen = chosen[:taken]
    kept = replace(space, centers=space.centers[[0, *(index + 1 for index in chosen)]])
    at_rest, solver = kept.features(kept.centers[:1])[:, 1:], _solver(covariance, chosen)
    return Fitted(kept, np.concatenate([-at_rest @ solver, solver]))


def _ends(space: PoseSpace) -> list[int]:
    """The ends of a hinge that turns so far that its middle must not move."""
    if space.axis is None:
        return []
    angles = hinge_angles(space.centers, space.axis)
    if np.ptp(angles) <= np.pi:
        return []
    ends = (int(np.argmin(angles)) - 1, int(np.argmax(angles)) - 1)
    return [end for end in ends if end >= 0]


def _worth_most(functions: np.ndarray, gram: np.ndarray, chosen: list[int]) -> int | None:
    """The column of ``functions`` (M, M) that beside those ``chosen`` explains most; None if there is none."""
    left = functions
    if chosen:
        span, _ = np.linalg.qr(functions[:, chosen])
        # Twice, for the rounding of the first time.
        for _ in range(2):
            left = left - span @ (span.T @ left)
    lengths = np.linalg.norm(left, axis=0)
    usable = lengths > _DEPENDENT * np.linalg.norm(functions, axis=0)
    usable[chosen] = False
    if not usable.any():
        return None
    directions = left / np.where(usable, lengths, 1.0)
    explained = np.where(usable, np.einsum("mi,mn,ni->i", directions, gram, directions), -1.0)
    return int(np.argmax(explained))


def _solver(covariance: np.ndarray, chosen: list[int]) -> np.ndarray:
    """(K, M) from the values at all observations to the factors of the chosen functions; with all of them the
    interpolation's own."""
    functions = covariance[:, chosen]
    # Least squares without the product of the functions, whose condition is the square of theirs.
    ridge = np.sqrt(RIDGE) * root(functions[chosen])
    wanted = np.eye(len(functions) + len(chosen), len(functions))
    return np.linalg.lstsq(np.vstack([functions, ridge]), wanted, rcond=None)[0]


def _left_out(smoother: np.ndarray, gram: np.ndarray, sure: np.ndarray) -> float:
    """The squared error of the observations as the others predict them with these functions, weighted by ``sure``."""
    rest = np.eye(len(smoother)) - smoother
    own = np.maximum(np.diag(rest), 1e-9)
    return float((np.einsum("ij,jk,ik->i", rest, gram, rest) * sure / own**2).sum())
