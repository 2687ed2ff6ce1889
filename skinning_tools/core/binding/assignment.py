# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones that the places of a body belong to, before smoothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..progress import Progress, checkpoint
from .distances import TIE, BoneDistances, Rows
from .types import Body, Skeleton

if TYPE_CHECKING:
    from .containment import Falloff, Volume
    from .parts import Parts
    from .solid import Solid

# Weights fade out over this share of a limit.
_FADE = 0.2


@dataclass(frozen=True, eq=False)
class Assignment:
    """shares (W, P) sparse: ≥ 0, rows sum to 1. distances (W,) > 0: from each place to its bones."""

    shares: sparse.csr_matrix
    distances: np.ndarray


@dataclass(frozen=True, eq=False)
class Request:
    """The input of a binding method. solid: of all meshes of the body's character. falloff and volumes: of CONTAINMENT,
    None to generate volumes. whole_parts: of RIGID, one bone for each connected part."""

    body: Body
    skeleton: Skeleton
    distances: BoneDistances
    limits: "Limits"
    solid: "Solid"
    volumes: Sequence["Volume"] | None = None
    whole_parts: bool = False
    falloff: "Falloff | None" = None

    @cached_property
    def parts(self) -> "Parts":
        """What the body's loose parts do."""
        from .parts import parts_of

        return parts_of(self.body, self.skeleton, self.solid)


class Limits:
    """The distance limit of each bone's influence, like its envelope: ``reach`` (P,), infinite without a limit.

    Places that no bone reaches belong to the nearest one, so that every place belongs to a bone.
    """

    def __init__(self, distances: BoneDistances, reach: np.ndarray):
        self._distances, self._reach = distances, reach
        self.none = bool(np.isinf(reach).all())

    def applied(self, rows: Rows, scores: np.ndarray) -> np.ndarray:
        """``scores`` (n, P) of a block of places with infinity for bones that do not reach them.

        Where that leaves no bone, the distances to the bones that do reach.
        """
        if self.none:
            return scores
        plain = self._within(self._distances.plain(rows))
        limited = np.where(np.isfinite(plain), scores, np.inf)
        lost = ~np.isfinite(limited).any(axis=1)
        limited[lost] = plain[lost]
        return limited

    def faded(self, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """``weights`` (W, M) of ``bones`` (W, M), zero where a bone does not reach, rows scaled to sum to 1.

        Rows of zeros where nothing is left.
        """
        if self.none:
            return weights
        reach = self._reach[bones]
        limited = np.isfinite(reach)
        room = np.where(limited, reach - self._distances.pairs(bones), 1.0)
        width = np.where(limited & (reach > 0), _FADE * reach, 1.0)
        weights = weights * np.clip(room / width, 0, 1)
        sums = weights.sum(axis=1, keepdims=True)
        return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)

    def _within(self, plain: np.ndarray) -> np.ndarray:
        beyond = plain > self._reach
        nearest = plain <= plain.min(axis=1, keepdims=True) * (1 + TIE)
        return np.where(beyond & ~(nearest & beyond.all(axis=1, keepdims=True)), np.inf, plain)


def nearly_best(scores: np.ndarray, margin: float) -> np.ndarray:
    """(n, P) shares from ``scores`` (n, P) > 0, lower is better: 1 for the best, falling to 0 where a score is
    worse by the share ``margin``. Equal scores, as halfway between two bones, have equal shares.
    """
    least = scores.min(axis=1, keepdims=True)
    return np.maximum(1 - (scores / least - 1) / margin, 0) ** 2


def assigned(
    distances: BoneDistances,
    block: Callable[[slice], tuple[np.ndarray, np.ndarray]],
    progress: Progress,
    stage: str,
) -> Assignment:
    """From ``block``, which returns shares (n, P) of any sum and distances (n,) of a block of places."""
    shares, reached = [], []
    for rows in distances.blocks():
        checkpoint(progress, rows.start / len(distances.points), stage)
        dense, distance = block(rows)
        dense /= dense.sum(axis=1, keepdims=True)
        shares.append(sparse.csr_matrix(dense))
        reached.append(distance)
    return Assignment(sparse.vstack(shares, format="csr"), np.concatenate(reached))
