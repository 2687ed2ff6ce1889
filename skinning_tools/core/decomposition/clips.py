# SPDX-License-Identifier: GPL-3.0-or-later
"""One decomposition of several clips of a mesh: one rest pose, one set of weights, and the bones' motion in each clip.

The clips are solved as one long animation. If all frames counted alike, a long or wild clip would get most of the
bones, and a short or calm one would be left with errors many times those of a solve of its own. So two short solves
find for each clip how much worse it fares among the others than alone with its share of the bones, and the errors of
its frames are then multiplied by that ratio / √ its number of frames.
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

# Sweeps of the short solves: the ratios of the clips' errors hardly change after them.
_FIRST_SWEEPS = 5
_FIRST_SHARE = 0.4
# The least error of a clip alone, as a share of the largest of all clips, that counts as one: a clip that hardly has
# any, such as a breathing one, must not draw the bones from those where they show. The same for the ratios.
_LEAST_SHARE = 0.1


def decompose_clips(
    animation: Animation,
    lengths: Sequence[int],
    settings: Settings,
    progress: Progress = ignore,
    importance: np.ndarray | None = None,
) -> Decomposition:
    """``decompose`` of clips that follow each other in ``animation``, each of ``lengths`` frames, which sum to F.

    The first frame of the first clip gives the scale of all errors, and the rest pose to start from. With a target
    error, and with the published method, all frames count alike. Raises as ``decompose``.
    """
    if settings.target_error or settings.method == "KAVAN2010" or len(lengths) == 1:
        return decompose(animation, settings, progress, importance=importance)
    first = replace(
        settings,
        iterations=min(_FIRST_SWEEPS, settings.iterations),
        smoothness=0.0,
        residual_shapes=0,
        prune=False,
        quality="STANDARD",
        emphasis=0.0,
        surface=0.0,
    )
    part = span(progress, 0.0, 0.5 * _FIRST_SHARE)
    together = decompose(animation, first, part, clip_weights(np.ones(len(lengths)), lengths), importance)
    errors = clip_errors(animation, together, lengths)
    del together
    share = replace(first, bone_count=max(1, round(settings.bone_count / len(lengths))))
    alone, scale = [], unit_scale(animation.frames)
    for rows in _rows(lengths):
        part = span(progress, 0.5 * _FIRST_SHARE * (1 + rows.start / len(animation.frames)), _FIRST_SHARE)
        clip = Animation(animation.frames[rows], animation.triangles, animation.frame_numbers[rows], animation.name)
        # In the scale of the first clip.
        alone.append(decompose(clip, share, part, importance=importance).e_rms * scale / unit_scale(clip.frames))
    ratios = errors / _at_least(np.array(alone))
    weights = clip_weights(ratios, lengths)
    return decompose(animation, settings, span(progress, _FIRST_SHARE, 1.0), weights, importance)


def _rows(lengths: Sequence[int]) -> list[slice]:
    """The frames of each clip."""
    ends = np.cumsum(lengths).tolist()
    return [slice(end - count, end) for end, count in zip(ends, lengths, strict=True)]


def _at_least(values: np.ndarray) -> np.ndarray:
    """Values ≥ 0, those far below the largest raised; 1 where all are 0."""
    largest = values.max()
    return np.maximum(values, _LEAST_SHARE * largest) if largest > 0 else np.ones(len(values))


def clip_weights(ratios: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """The weights (F,) of the frames of clips: ``ratios`` (C,) / √frames, 1 on average (root mean square)."""
    weights = np.repeat(_at_least(ratios) / np.sqrt(lengths), lengths)
    return weights / np.sqrt(np.square(weights).mean())


def clip_errors(animation: Animation, found: Decomposition, lengths: Sequence[int]) -> np.ndarray:
    """E_RMS (C,) of each clip, all in the scale of the first frame of ``animation``."""

    def squared(row: int) -> float:
        made = skin_frame(found.rest_at(row), found.bones, found.weights, found.transforms[row])
        return float(np.square(made - animation.frames[row]).mean())

    by_frame = np.array(mapped(squared, range(len(animation.frames))))
    means = [by_frame[rows].mean() for rows in _rows(lengths)]
    return 1000.0 * unit_scale(animation.frames) * np.sqrt(means)
