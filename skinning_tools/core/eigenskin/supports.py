# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the surface that a joint corrects (EigenSkin, section 2.2)."""

import numpy as np

# A mask rises from none to all between this share of the threshold and the threshold itself.
_BORDER = 0.5


def strengths(displacements: np.ndarray) -> np.ndarray:
    """(N,) the largest length of each vertex's ``displacements`` (M, N, 3)."""
    return np.sqrt(np.einsum("mni,mni->mn", displacements, displacements).max(axis=0, initial=0.0))


def support_mask(strength: np.ndarray, threshold: float) -> np.ndarray:
    """(N,) from 0 to 1: 1 where ``strength`` (N,) reaches ``threshold`` times its largest value, 0 below half of that,
    smooth between."""
    limit = threshold * strength.max(initial=0.0)
    if limit <= 0:
        return (strength > 0).astype(np.float64)
    return smooth_step((strength / limit - _BORDER) / (1 - _BORDER))


def limited_masks(masks: np.ndarray, strength: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """``masks`` (S, N), smaller where the supports that share a vertex have more than ``most`` components together.

    strength (S, N): the weakest supports of a vertex give way, and fade to none towards where they do. counts (S,):
    components of each support. A support with more than ``most`` alone would vanish: the caller sees to that.
    """
    order = np.argsort(-np.where(masks > 0, strength, 0.0), axis=0, kind="stable")
    ordered = np.take_along_axis(np.where(masks > 0, strength, 0.0), order, axis=0)
    present = ordered > 0
    total = np.cumsum(np.where(present, np.asarray(counts)[order], 0), axis=0)
    too_many = present & (total > most)
    # The strength of the strongest support that has no room: it, and what is weaker, must go.
    first = np.argmax(too_many, axis=0)[None]
    cut = np.where(too_many.any(axis=0), np.take_along_axis(ordered, first, axis=0)[0], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(cut > 0, strength / cut - 1.0, 1.0)
    return masks * smooth_step(above)


def room_left(masks: np.ndarray, counts: np.ndarray, count: int, most: int) -> np.ndarray:
    """(N,) from 0 to 1: where ``count`` components more are within ``most`` beside supports with ``masks`` (S, N) and
    ``counts`` (S,); it fades towards where they are not."""
    order = np.argsort(-masks, axis=0, kind="stable")
    ordered = np.take_along_axis(masks, order, axis=0)
    total = np.cumsum(np.asarray(counts)[order], axis=0)
    in_the_way = np.where(total > most - count, ordered, 0.0).max(axis=0)
    return 1.0 - in_the_way if count <= most else np.zeros(masks.shape[1])


def smooth_step(values: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, and a cubic with level ends between."""
    share = np.clip(values, 0.0, 1.0)
    return share * share * (3 - 2 * share)
