# SPDX-License-Identifier: GPL-3.0-or-later
"""Radial basis interpolation over a joint's observations (EigenSkin, section 2.4)."""

import numpy as np

# The automatic radius in units of the mean distance to the nearest other observation, and its upper bound in radians.
# Measured on the human rig with dual-quaternion shapes: smaller radii sag between observations, larger ones approach
# piecewise linear interpolation, with weights that grow and cancel. Leaving observations out one at a time would choose
# much too large ones, as the outermost observations dominate it.
_SPACINGS = 2.0
_LARGEST = 1.2


def basis_weights(distances: np.ndarray, values: np.ndarray, radius: float) -> np.ndarray:
    """λ (M, k) for which Σ_q λ_q exp(−r_q / radius) is ``values`` (M, k) at each of the M observations.

    distances (M, M) radians between observations, no two of which coincide: the matrix is then positive definite.
    """
    return np.linalg.solve(np.exp(-distances / radius), values)


def automatic_radius(distances: np.ndarray) -> float:
    """The radius, radians, for observations at ``distances`` (M, M), at least two."""
    nearest = np.where(np.eye(len(distances), dtype=bool), np.inf, distances).min(axis=1)
    return float(min(_SPACINGS * nearest.mean(), _LARGEST))
