# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of joints that act together (a shoulder and its clavicle), found by what single joints leave unexplained.

Beyond EigenSkin, which leaves this to future work. The basis of a pair is the product of two of the joints' own, each
made zero at rest: a pair so adds nothing where only one of its joints is posed, and examples of one joint stay exact.
"""

from itertools import combinations

import numpy as np

from .pose_space import PoseSpace

# Of the mean square of the features: keeps the regression solvable where two of them are alike.
_RIDGE = 1e-9


def tied_features(features: np.ndarray, at_rest: np.ndarray) -> np.ndarray:
    """(F, M − 1) basis functions that are zero at rest: features (F, M), those of the centre at rest first, minus
    their share of it; at_rest (M,) are the features at rest."""
    return features[:, 1:] - features[:, :1] * at_rest[1:]


def pair_features(
    first: PoseSpace, second: PoseSpace, centers: np.ndarray, one: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """(F, M) products of the tied bases at rotations ``one`` and ``other`` (F, 4); centers (M, 2) indices, rest
    not counted."""
    tied = [
        tied_features(space.features(rotations), space.features(space.centers[:1])[0])
        for space, rotations in ((first, one), (second, other))
    ]
    return tied[0][:, centers[:, 0]] * tied[1][:, centers[:, 1]]


def nearest_centers(first: PoseSpace, second: PoseSpace, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(M, 2) the pairs of centres, rest not counted, next to the rotations ``one`` and ``other`` (E, 4), each once."""
    near = [
        np.argmin(space.distances(rotations)[:, 1:], axis=1) for space, rotations in ((first, one), (second, other))
    ]
    return np.unique(np.stack(near, axis=1), axis=0)


def candidate_pairs(moving: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of joints that some example poses together. moving (E, J) bool."""
    together = moving.T.astype(int) @ moving.astype(int)
    return [(a, b) for a, b in combinations(range(moving.shape[1]), 2) if together[a, b]]


def explained_energy(features: np.ndarray, residuals: np.ndarray, prior: np.ndarray) -> float:
    """By how much ``features`` (E, M) lessen the sum of squares of ``residuals`` (E, N, 3) where what they explain is
    taken over in the share that ``prior`` (N,) says."""
    chosen = prior > 0
    rows = residuals[:, chosen].astype(np.float64)
    share = prior[chosen][:, None]
    once = _gram(rows, rows * share)
    twice = _gram(rows * share, rows * share)
    smoother = features @ regression(features, np.eye(len(features)))
    return float(2 * np.vdot(smoother, once) - np.vdot(smoother.T @ smoother, twice))


def regression(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(M, V) for which features (E, M) times it comes near ``values`` (E, V), as exactly as they allow."""
    square = features.T @ features
    ridge = _RIDGE * max(float(np.trace(square)), 1e-300) / len(square)
    return np.linalg.solve(square + ridge * np.eye(len(square)), features.T @ values)


def _gram(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return first.reshape(len(first), -1) @ second.reshape(len(second), -1).T
