# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums over a surface, weighted by how alike two sets of skinning weights are, for one pair of bones.

The part of bones j and k in the similarity of the weights p and t (Le & Hodgins 2016; the evaluation of 2019,
equation 6) is p_j p_k t_j t_k exp(−(p_j t_k − p_k t_j)² / σ²). With S = p_j + p_k and u = p_j / S, the difference in
the exponent is S_p S_t (u_p − u_t): a Gaussian in u and in S, no narrower than σ. So where many places on the surface
share a pair of bones, their sum is carried by a few nodes of a Chebyshev grid without loss, and the work grows with
the number of places and not with its square.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .dense import product

# Error of interpolating the exponential, which is at most 1: close to rounding.
INTERPOLATION_ERROR = 1e-12
# Elements at a time: three passes over such a block stay in a processor core's own cache.
_BLOCK = 1 << 15
# The cost of one node in the products to or from a grid, relative to one exponential.
_NODE_COST = 0.2
# The numbers of nodes along an axis to choose from.
_COUNTS = np.arange(1, 201)
_HALF_LOG_FACTORIALS = 0.5 * np.cumsum(np.log(_COUNTS))


@dataclass(frozen=True)
class Shares:
    """Two bones' weights at many places. sums (n,): of both. ratios (n,): the first bone's part of the sum."""

    sums: np.ndarray
    ratios: np.ndarray

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray) -> "Shares":
        """From the two bones' weights (n,), both positive."""
        sums = first + second
        return cls(sums, first / sums)

    def __len__(self) -> int:
        return len(self.sums)


def similarity_sums(
    targets: Shares, sources: Shares, moments: np.ndarray, sigma: float, exact: bool, pulse: Callable[[], None]
) -> tuple:
    """(n, m) sums of exp(−(S_p S_t (u_p − u_t))² / σ²) · moments over the sources; and whether all was summed directly.

    targets: n places, sources: L places, moments (L, m). exact: never by grids. pulse() is called regularly.
    Otherwise the error is at most some ten times INTERPOLATION_ERROR · Σ|moments|.
    """
    collect = spread = None
    if not exact:
        cost = len(targets) * len(sources)
        grid = _Grid.over(sources, targets, sigma)
        if grid is not None and grid.size * (_NODE_COST * len(sources) + len(targets)) < cost:
            collect = grid
        nodes = len(sources) if collect is None else collect.size
        grid = _Grid.over(targets, sources, sigma)
        if grid is not None and grid.size * (_NODE_COST * len(targets) + nodes) < len(targets) * nodes:
            spread = grid
    if collect is not None:
        moments = collect.collected(sources, moments)
        sources = collect.nodes
    if spread is None:
        result = _direct_sums(targets, sources, moments, sigma, pulse)
    else:
        result = spread.spread(targets, _direct_sums(spread.nodes, sources, moments, sigma, pulse))
    return result, collect is None and spread is None


def _direct_sums(
    targets: Shares, sources: Shares, moments: np.ndarray, sigma: float, pulse: Callable[[], None]
) -> np.ndarray:
    result = np.zeros((len(targets), moments.shape[1]))
    width = max(1, min(len(sources), _BLOCK // min(len(targets), 64)))
    height = max(1, _BLOCK // width)
    scales = -((targets.sums / sigma) ** 2)[:, None]
    buffer = np.empty(height * width)
    for top in range(0, len(targets), height):
        pulse()
        rows = slice(top, min(top + height, len(targets)))
        for left in range(0, len(sources), width):
            columns = slice(left, min(left + width, len(sources)))
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            block = buffer[: shape[0] * shape[1]].reshape(shape)
            np.subtract(targets.ratios[rows, None], sources.ratios[columns], out=block)
            block *= sources.sums[columns]
            np.multiply(block, block, out=block)
            block *= scales[rows]
            np.exp(block, out=block)
            result[rows] += product(block, moments[columns])
    return result


class _Grid:
    """Chebyshev nodes in ratio and sum that carry the exponential over the range of some places."""

    def __init__(self, ranges: tuple[tuple[float, float], tuple[float, float]], counts: tuple[int, int]):
        self._ranges, self._counts = ranges, counts
        self.size = counts[0] * counts[1]

    @classmethod
    def over(cls, places: Shares, others: Shares, sigma: float) -> "_Grid | None":
        """A grid for ``places``, for comparison with ``others``; None where the Gaussian is too narrow for a grid."""
        ratios, sums = ((float(values.min()), float(values.max())) for values in (places.ratios, places.sums))
        reach = max(ratios[1] - others.ratios.min(), others.ratios.max() - ratios[0])
        most = others.sums.max() / sigma
        by_ratio, by_sum = _node_count(ratios, sums[1] * most), _node_count(sums, reach * most)
        return None if by_ratio is None or by_sum is None else cls((ratios, sums), (by_ratio, by_sum))

    @cached_property
    def _axes(self) -> "tuple[_Axis, _Axis]":
        ratios, sums = (_Axis(*ends, count) for ends, count in zip(self._ranges, self._counts, strict=True))
        return ratios, sums

    @property
    def nodes(self) -> Shares:
        ratios, sums = np.meshgrid(*(axis.nodes for axis in self._axes), indexing="ij")
        return Shares(sums.ravel(), ratios.ravel())

    def collected(self, places: Shares, moments: np.ndarray) -> np.ndarray:
        """(nodes, m): moments at the nodes that stand for ``moments`` (n, m) at ``places``."""
        result = np.zeros((moments.shape[1], *self._counts))
        for part in self._parts(places):
            by_ratio, by_sum = self._bases(places, part)
            for column, values in enumerate(moments[part].T):
                result[column] += product((by_ratio * values[:, None]).T, by_sum)
        return result.reshape(len(result), -1).T

    def spread(self, places: Shares, values: np.ndarray) -> np.ndarray:
        """(n, m): ``values`` (nodes, m) interpolated at ``places``."""
        result = np.empty((len(places), values.shape[1]))
        for part in self._parts(places):
            by_ratio, by_sum = self._bases(places, part)
            for column, table in enumerate(values.T.reshape(-1, *self._counts)):
                along = product(by_ratio, np.ascontiguousarray(table))
                result[part, column] = np.einsum("ns,ns->n", along, by_sum)
        return result

    def _bases(self, places: Shares, part: slice) -> tuple[np.ndarray, np.ndarray]:
        return self._axes[0].basis(places.ratios[part]), self._axes[1].basis(places.sums[part])

    def _parts(self, places: Shares) -> Iterator[slice]:
        step = 1 << 14
        return (slice(start, start + step) for start in range(0, len(places), step))


def _node_count(ends: tuple[float, float], sharpness: float) -> int | None:
    """Nodes for exp(−(sharpness · x)²) with any shift on an interval; None where that takes too many.

    The remainder of n nodes is 2 (l/4)ⁿ/n! · max|f⁽ⁿ⁾| for an interval of length l, and the n-th derivative of exp(−x²)
    is at most 1.09 √(2ⁿ n!).
    """
    ratio = (ends[1] - ends[0]) * sharpness * np.sqrt(0.125)
    if ratio == 0:
        return 1
    enough = _COUNTS * np.log(ratio) - _HALF_LOG_FACTORIALS <= np.log(INTERPOLATION_ERROR / 2.2)
    return int(np.argmax(enough)) + 1 if enough.any() else None


class _Axis:
    """Chebyshev nodes (count,) of an interval, with the barycentric formula of Lagrange interpolation."""

    def __init__(self, low: float, high: float, count: int):
        angles = (np.arange(count) + 0.5) * np.pi / count
        self.count = count
        self.nodes = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angles)
        self._weights = np.sin(angles) * np.where(np.arange(count) % 2, -1.0, 1.0)

    def basis(self, positions: np.ndarray) -> np.ndarray:
        """(n, count) the values of the Lagrange polynomials at ``positions`` (n,)."""
        if self.count == 1:
            return np.ones((len(positions), 1))
        distances = positions[:, None] - self.nodes
        hits = distances == 0
        distances[hits] = 1.0
        terms = self._weights / distances
        struck = hits.any(axis=1)
        terms[struck] = hits[struck]
        return terms / terms.sum(axis=1, keepdims=True)
