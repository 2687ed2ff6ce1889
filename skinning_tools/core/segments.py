# SPDX-License-Identifier: GPL-3.0-or-later
"""Distances from points to line segments. Needs numpy only."""

import numpy as np


def offsets_from_segments(points: np.ndarray, starts: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(..., d) from the nearest point of a segment to each of ``points`` (..., d).

    The segments run from ``starts`` (..., d) to ``starts`` + ``axes``; those without length are points.
    """
    offsets = points - starts
    squares = np.einsum("...i,...i->...", axes, axes)
    shares = np.einsum("...i,...i->...", offsets, axes) / np.where(squares > 0, squares, 1.0)
    return offsets - np.clip(shares, 0.0, 1.0)[..., None] * axes


def segment_distances(points: np.ndarray, starts: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(...) the lengths of ``offsets_from_segments``."""
    return np.linalg.norm(offsets_from_segments(points, starts, axes), axis=-1)
