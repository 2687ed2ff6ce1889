# SPDX-License-Identifier: GPL-3.0-or-later
"""Radial basis interpolation over a joint's observations (EigenSkin, section 2.4)."""

import numpy as np

# The automatic radius in units of the mean distance to the nearest other observation, among a few that are far apart (a
# cluster of similar poses must not make it small for all others), and its upper bound in radians.
# Measured on the human rig with dual-quaternion shapes: smaller radii sag between observations, larger ones approach
# piecewise linear interpolation, with weights that grow and cancel. Leaving observations out one at a time would choose
# much too large ones, as the outermost observations dominate it.
_SPREAD = 7
_SPACINGS = 2.0
_LARGEST = 1.2

# The same where examples pose several joints at once: centers are then scattered over all rotations, and functions are
# fitted rather than met, which wider bases do better.
_SCATTERED_SPACINGS = 4.0
_SCATTERED_LARGEST = 2.0

# Smallest eigenvalue of the basis at its own centers: with less, weights cancel beyond what drivers can carry.
_LEAST_EIGENVALUE = 1e-4
_SHRUNK = 0.8
_MOST_STEPS = 40
# In radians; above, no step comes down to one that serves.
_LARGEST_RADIUS = 1e5


def basis_weights(distances: np.ndarray, values: np.ndarray, radius: float) -> np.ndarray:
    """λ (M, k) for which Σ_q λ_q exp(−r_q / radius) is ``values`` (M, k) at each of the M observations.

    distances (M, M) radians between observations, no two of which coincide; a radius that ``usable_radius`` keeps.
    """
    return np.linalg.solve(np.exp(-distances / radius), values)


def automatic_radius(distances: np.ndarray, scattered: bool = False) -> float:
    """The radius, radians, for observations at ``distances`` (M, M), at least two; scattered: some of them are of
    examples that pose several joints."""
    spread = _spread(distances)
    distances = distances[np.ix_(spread, spread)]
    nearest = np.where(np.eye(len(distances), dtype=bool), np.inf, distances).min(axis=1).mean()
    if scattered:
        return float(min(_SCATTERED_SPACINGS * nearest, _SCATTERED_LARGEST))
    return float(min(_SPACINGS * nearest, _LARGEST))


def _spread(distances: np.ndarray) -> list[int]:
    """At most _SPREAD of the observations, each the farthest from those before it, the first one first."""
    chosen = [0]
    nearest = distances[0].copy()
    while len(chosen) < min(_SPREAD, len(distances)):
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return chosen


def usable_radius(distances: np.ndarray, radius: float) -> float:
    """``radius``, or the largest of a few smaller ones with which observations at ``distances`` (M, M) can be told
    apart. About an axis the basis always is positive definite; over all rotations only for radii below about two."""
    radius = min(radius, _LARGEST_RADIUS)
    for _ in range(_MOST_STEPS):
        if np.linalg.eigvalsh(np.exp(-distances / radius))[0] >= _LEAST_EIGENVALUE:
            break
        radius *= _SHRUNK
    return radius
