# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of joints that act together (a shoulder and its clavicle), found by the displacements that single joints do not
explain.

Beyond EigenSkin, which leaves this to future work. The basis of a pair is the product of two of the joints' own, each
zero at rest: a pair therefore adds nothing where only one of its joints is posed, and examples of one joint stay exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .. import dense
from .pose_space import PoseSpace

# Variance that a pair does not explain, as a multiple of its function's variance: how closely it follows the examples.
# Chosen for each pair.
_NOISES = (1e-6, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

# A share of the sum of squares: how much better the examples must predict each other for a looser fit to be chosen.
_LESS_CLOSELY = 1e-3


def pair_features(
    first: PoseSpace, second: PoseSpace, centers: np.ndarray, one: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """(F, M) products of the tied bases at rotations ``one`` and ``other`` (F, 4); centers (M, 2) indices, rest
    not counted."""
    return first.tied_features(one)[:, centers[:, 0]] * second.tied_features(other)[:, centers[:, 1]]


def pair_centers(first: PoseSpace, second: PoseSpace, one: np.ndarray, other: np.ndarray, most: int) -> np.ndarray:
    """(M, 2) pairs of centers, not counting rest, nearest to rotations ``one`` and ``other`` (E, 4), each once; if
    there are more than ``most``, those far from each other."""
    near = [
        np.argmin(space.distances(rotations)[:, 1:], axis=1) for space, rotations in ((first, one), (second, other))
    ]
    pairs = np.unique(np.stack(near, axis=1), axis=0)
    if len(pairs) <= most:
        return pairs
    places = [space.distances(space.centers[1:])[:, 1:] for space in (first, second)]
    apart = np.hypot(*(place[np.ix_(index, index)] for place, index in zip(places, pairs.T, strict=True)))
    chosen = [int(np.argmin(apart.sum(axis=1)))]
    while len(chosen) < most:
        chosen.append(int(np.argmax(apart[chosen].min(axis=0))))
    return pairs[np.sort(chosen)]


def candidate_pairs(moving: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of joints that some example poses together. moving (E, J) bool."""
    together = moving.T.astype(int) @ moving.astype(int)
    return [(a, b) for a, b in combinations(range(moving.shape[1]), 2) if together[a, b]]


@dataclass(eq=False)
class PairTrial:
    """What a pair of joints can explain of the residuals (E, N, …) of examples that pose both.

    centers (M, 2) and features (E, M) there; solver (M, E) takes residuals to the weights of the features; energy: how
    much the pair, weighted by its mask, lowers the residuals' sum of squares.
    """

    centers: np.ndarray
    features: np.ndarray
    solver: np.ndarray
    energy: float

    def explained(self, residuals: np.ndarray) -> np.ndarray:
        """The part of ``residuals`` (E, …) that the pair explains, float32."""
        return np.tensordot((self.features @ self.solver).astype(np.float32), residuals, axes=1)


def pair_trial(
    first: PoseSpace,
    second: PoseSpace,
    one: np.ndarray,
    other: np.ndarray,
    residuals: np.ndarray,
    mask: np.ndarray,
    most: int,
) -> PairTrial:
    """one, other (E, 4) rotations of the joints, residuals (E, n, 3), mask (n,); most: centers.

    The pair's function is the most likely one with the covariance of its features as the prior. The
    closeness of the fit is the one with which the examples predict each other best; the closest where they say nothing
    about each other, as with a single sculpted combination of two poses.
    """
    centers = pair_centers(first, second, one, other, most)
    features = pair_features(first, second, centers, one, other)
    masked = residuals * mask[:, None].astype(residuals.dtype)
    grams = inner_products(residuals, masked), inner_products(masked, masked)
    chosen, lowest = None, np.inf
    for solver, smoother, others in _fits(first, second, centers, features):
        error = -_explained(others, *grams)
        if chosen is None or error < lowest - _LESS_CLOSELY * np.trace(grams[0]):
            chosen, lowest = PairTrial(centers, features, solver, _explained(smoother, *grams)), error
    assert chosen is not None
    return chosen


def pair_predictors(
    first: PoseSpace, second: PoseSpace, one: np.ndarray, other: np.ndarray, most: int
) -> list[np.ndarray]:
    """(E, E) each: what takes residuals of examples to what the others predict, from the closest fit to the loosest.

    one, other (E, 4): rotations of the joints; most: centers."""
    centers = pair_centers(first, second, one, other, most)
    features = pair_features(first, second, centers, one, other)
    return [others for _, _, others in _fits(first, second, centers, features)]


def _fits(
    first: PoseSpace, second: PoseSpace, centers: np.ndarray, features: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each of the noises the solver (M, E), what it makes of the residuals (E, E), and what the others predict."""
    covariance = pair_features(
        first, second, centers, first.centers[1:][centers[:, 0]], second.centers[1:][centers[:, 1]]
    )
    for noise in _NOISES:
        solver = np.linalg.solve(features.T @ features + noise * covariance, features.T)
        smoother = features @ solver
        own = np.diag(smoother)
        yield solver, smoother, (smoother - np.diag(own)) / np.maximum(1 - own, 1e-9)[:, None]


def _explained(smoother: np.ndarray, once: np.ndarray, twice: np.ndarray) -> float:
    """By how much the prediction by ``smoother`` (E, E) lowers the sum of squares of the residuals, given their
    products with the mask applied once and twice."""
    return float(2 * np.vdot(smoother, once) - np.vdot(smoother.T @ smoother, twice))


def inner_products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(M, M) of the displacements ``first`` and ``second`` (M, n, 3)."""
    rows = [part.reshape(len(part), -1).astype(np.float64) for part in (first, second)]
    return dense.product(rows[0], rows[1].T)
