# SPDX-License-Identifier: GPL-3.0-or-later
"""The regions of the surface that a joint corrects (EigenSkin, section 2.2)."""

import numpy as np

from ..smooth_step import smooth_step

# A mask rises from none to all between this share of the threshold and the threshold itself.
_BORDER = 0.5

# The share of the displacements' threshold that holds for normals. With all of it, five components of an elbow keep
# twice the least error that five can have, with this one 1.05 times.
_NORMALS_SHARE = 0.25

# Where supports compete, one is full at this many times the importance of the strongest support without room.
_WHOLE = 1.25


def strengths(displacements: np.ndarray) -> np.ndarray:
    """(N,) the largest length of each vertex's ``displacements`` (M, N, 3)."""
    return np.sqrt(np.einsum("mni,mni->mn", displacements, displacements).max(axis=0, initial=0.0))


def support_mask(strength: np.ndarray, threshold: float, least: float = 0.0) -> np.ndarray:
    """(N,) from 0 to 1: 1 where ``strength`` (N,) reaches ``threshold`` times its largest value, 0 below half of that,
    smooth between. least: the lowest limit, above rounding."""
    limit = max(threshold * strength.max(initial=0.0), least)
    if limit <= 0:
        return (strength > 0).astype(np.float64)
    return smooth_step((strength / limit - _BORDER) / (1 - _BORDER))


def normals_mask(corrections: np.ndarray, threshold: float) -> np.ndarray:
    """(n,) from 0 to 1 of ``corrections`` (M, n, 3) of normals, which reach farther than the displacements."""
    return support_mask(strengths(corrections), _NORMALS_SHARE * threshold)


def limited_masks(masks: np.ndarray, strength: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """``masks`` (S, N), smaller where the supports that share a vertex have more than ``most`` components together.

    strength (S, N): of their displacements. The least important supports of a vertex are removed there, and fade out
    towards it. counts (S,): components of each support; one with more than ``most`` alone vanishes.
    """
    masks = masks.copy()
    crowded = np.asarray(counts) @ (masks > 0) > most
    masks[:, crowded] *= _room(masks[:, crowded] * strength[:, crowded], counts, most)
    return masks


def _room(importance: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """(S, N) from 0 to 1: the remaining share of each support. importance (S, N): masks times strengths, since
    strengths alone would jump where a support ends."""
    order = np.argsort(-importance, axis=0, kind="stable")
    ordered = np.take_along_axis(importance, order, axis=0)
    total = np.cumsum(np.where(ordered > 0, np.asarray(counts)[order], 0), axis=0)
    # The importance of the strongest support without room: supports that are no more important are removed, too.
    cut = np.where(total > most, ordered, 0.0).max(axis=0, initial=0.0)
    above = np.divide(importance, cut, out=np.full(importance.shape, np.inf), where=cut > 0) - 1
    return smooth_step(above / (_WHOLE - 1))
