# SPDX-License-Identifier: GPL-3.0-or-later
"""Indices of groups of unequal sizes, without loops over the groups. Needs numpy only."""

import numpy as np


def members(labels: np.ndarray, count: int) -> list[np.ndarray]:
    """The indices of each of the groups 0 … ``count`` − 1, ascending, from the group of each entry, ``labels`` (n,)."""
    ends = np.cumsum(np.bincount(labels, minlength=count))
    return np.split(np.argsort(labels, kind="stable"), ends[:-1])


def pieces(indices: np.ndarray, size: int) -> list[np.ndarray]:
    """``indices`` (n,) in order, at most ``size`` at a time; one empty piece of none."""
    return np.split(indices, range(size, len(indices), size))


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """start, start + 1, … of each of ``starts`` (n,), as many numbers as its count, one range after another."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
