# SPDX-License-Identifier: GPL-3.0-or-later
"""One decomposition of several clips of a mesh: one rest pose, one set of weights, and the bones' motion in each clip.

The clips are solved as one long animation. If all frames counted alike, a long or wild clip would get most of the
bones, and a short or calm one would be left with errors that are large for what happens in it. So a first solve finds
how hard each clip is, and the errors of its frames are then multiplied by 1 / (that error · √ its number of frames).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..animation import Animation, unit_scale
from ..deform import skin_frame
from ..progress import Progress, ignore, span
from ..threads import mapped
from .solver import decompose
from .types import Decomposition, Settings

# Sweeps of the first solve: the ratios of the clips' errors hardly change after them.
_FIRST_SWEEPS = 5
_FIRST_SHARE = 0.3
# The least error, as a share of the largest of all clips, that counts as one: a clip that hardly has any, such as a
# breathing one, must not draw the bones from those where they show.
_LEAST_SHARE = 0.1


def decompose_clips(
    animation: Animation, lengths: Sequence[int], settings: Settings, progress: Progress = ignore
) -> Decomposition:
    """``decompose`` of clips that follow each other in ``animation``, each of ``lengths`` frames, which sum to F.

    The first frame of the first clip gives the scale of all errors, and the rest pose to start from. With a target
    error, and with the published method, all frames count alike. Raises as ``decompose``.
    """
    if settings.target_error or settings.method == "KAVAN2010" or len(lengths) == 1:
        return decompose(animation, settings, progress)
    first = replace(
        settings, iterations=min(_FIRST_SWEEPS, settings.iterations), smoothness=0.0, residual_shapes=0, prune=False
    )
    alike = clip_weights(np.ones(len(lengths)), lengths)
    found = decompose(animation, first, span(progress, 0.0, _FIRST_SHARE), alike)
    weights = clip_weights(clip_errors(animation, found, lengths), lengths)
    del found
    return decompose(animation, settings, span(progress, _FIRST_SHARE, 1.0), weights)


def clip_weights(errors: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """The weights (F,) of the frames of clips with ``errors`` (C,): 1 / (error · √frames) each, 1 on average (root mean
    square)."""
    counts = np.asarray(lengths)
    errors = np.maximum(errors, _LEAST_SHARE * errors.max())
    # Clips without any error.
    errors = np.where(errors > 0, errors, 1.0)
    weights = np.repeat(1.0 / (errors * np.sqrt(counts)), counts)
    return weights / np.sqrt(np.square(weights).mean())


def clip_errors(animation: Animation, found: Decomposition, lengths: Sequence[int]) -> np.ndarray:
    """E_RMS (C,) of each clip, all in the scale of the first frame of ``animation``."""

    def squared(row: int) -> float:
        made = skin_frame(found.rest_at(row), found.bones, found.weights, found.transforms[row])
        return float(np.square(made - animation.frames[row]).mean())

    by_frame = np.array(mapped(squared, range(len(animation.frames))))
    ends = np.cumsum(lengths)
    means = [by_frame[end - count : end].mean() for end, count in zip(ends, lengths, strict=True)]
    return 1000.0 * unit_scale(animation.frames) * np.sqrt(means)
