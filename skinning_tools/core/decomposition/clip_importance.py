# SPDX-License-Identifier: GPL-3.0-or-later
"""How much the frames of several clips count, so that a solve over all of them neglects none."""

from collections.abc import Sequence

import numpy as np

from ..deform import skin_frame

# Relative to the largest error of a clip: a clip with less counts as if it had this, or it would decide everything.
_LEAST_ERROR = 0.05


def importance_of(errors: Sequence[float] | np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """(F,) for each frame of the clips: 1 / (its clip's error · √(its clip's number of frames)), with a mean square of
    1.

    errors: the root mean square of each clip before the solve. A long clip then counts as much as a short one, and each
    by how much of its error is left: the solve lowers Σ (error after / error before)² over the clips.
    """
    errors = np.asarray(errors, float)
    largest = errors.max(initial=0.0)
    errors = np.maximum(errors, _LEAST_ERROR * largest) if largest > 0 else np.ones_like(errors)
    counts = np.asarray(lengths)
    found = np.repeat(1.0 / (errors * np.sqrt(counts)), counts)
    return found / np.sqrt(np.mean(found**2))


def clip_errors(
    frames: np.ndarray,
    rest: np.ndarray,
    transforms: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    lengths: Sequence[int],
) -> np.ndarray:
    """(C,) root mean square distance, in object space, between each clip's ``frames`` and what weights make of it.

    frames (F, N, 3) of all clips one after the other, transforms (F, P, 3, 4), bones and weights (N, K). Vertices
    without weights do not count.
    """
    moved = weights.any(axis=1)
    squares = [
        np.square(np.subtract(positions, skin_frame(rest, bones, weights, matrices), dtype=float))[moved].sum(axis=1)
        for positions, matrices in zip(frames, transforms, strict=True)
    ]
    means = np.array([row.mean() if len(row) else 0.0 for row in squares])
    ends = np.cumsum(lengths)[:-1]
    return np.sqrt([part.mean() for part in np.split(means, ends)])


def mixed_poses(poses: np.ndarray, count: int) -> np.ndarray:
    """(count, B, 4, 4) poses of ``poses`` (F, B, 4, 4), the own channels of B bones: each mixes two frames, and each
    bone takes its channels from one of the two at random. The same in every run."""
    random = np.random.default_rng(0)
    pairs = random.integers(len(poses), size=(2, count))
    first = random.random((count, poses.shape[1])) < 0.5
    return np.where(first[..., None, None], poses[pairs[0]], poses[pairs[1]])
