# SPDX-License-Identifier: GPL-3.0-or-later
"""Dense dimensionality reduction of the animation matrix (Kavan et al. 2010, section 3 and Algorithm 1).

The animation matrix A (3F, N) becomes a basis B (3F, d) with orthonormal columns and coefficients C (d, N) such that
‖BC − A‖_F ≤ ε. The sweeps of the solver then work on C, whose height d is far below 3F.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
import scipy.linalg

from ..animation import enclosing_ball
from ..dense import half_self_product, mirrored, product
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore
from ..solve_memory import LARGEST_GRAM, MOST_DOUBLE
from ..threads import for_each, mapped

STRATEGIES = ("EXACT", "MAXIMUM_NORM", "GRAM_SCHMIDT", "POWER_1", "POWER_2")

_BLOCK_BYTES = 8 << 20
# At least so many blocks, for as many threads, of at least so many vertices.
_FEWEST_BLOCKS, _SMALLEST_BLOCK = 8, 512
# Bytes of the vertices, in single precision, whose principal directions a long animation's basis starts with, and how
# many times as many vertices the animation must have: these cost a few passes over them, and save as many over all.
_SAMPLE_BYTES, _SAMPLE_SHARE = 32 << 20, 4
# Bytes of sums that threads may have beside each other.
_SUMS_BYTES = 256 << 20
_ROWS_AT_ONCE = 1024


class Rows(Protocol):
    """What gives the data of vertices as rows: of an animation, its reduction, or a sample of either."""

    def rows(self, part: slice | np.ndarray) -> np.ndarray: ...


class AnimationMatrix:
    """The matrix A (3F, N) of an animation in solver units, made block by block in float64 and never held whole.

    Solver units: each frame's mean position is taken out, and lengths are those of the unit ball around the first
    frame. As weights sum to one, moving a frame moves every bone of it alike, so nothing is lost, global motion costs
    no dimension, and a mesh far from its origin is as accurate as one at it.

    A frame's rows may be scaled by a weight, and with them the transforms Tᵀ, so that its errors count as much more:
    ``weigh`` and ``unweigh`` go between such rows and those of motions, which alone can be told to be rigid.
    """

    def __init__(self, frames: np.ndarray, frame_weights: np.ndarray | None = None):
        """frame_weights (F,): by which the errors of each frame are multiplied, 1 by default."""
        means = np.stack([positions.mean(axis=0, dtype=np.float64) for positions in frames])
        weights = np.ones(len(frames)) if frame_weights is None else np.asarray(frame_weights, dtype=np.float64)
        self._set(frames, means, enclosing_ball(frames[0])[1], weights)

    def of_vertices(self, vertices: np.ndarray) -> "AnimationMatrix":
        """The columns of the ``vertices`` (n,) alone, in the same units; their positions are copied, once."""
        few = object.__new__(AnimationMatrix)
        few._set(self._frames[:, vertices], self.means, self.radius, self._weights)
        return few

    def _set(self, frames: np.ndarray, means: np.ndarray, radius: float, weights: np.ndarray) -> None:
        self._frames, self.means, self.radius, self._weights = frames, means, radius, weights
        self.height = 3 * len(frames)
        self.vertex_count = frames.shape[1]
        self._kept = None
        self._shift: Callable[[slice | np.ndarray], np.ndarray] | None = None
        if 8 * self.height * self.vertex_count <= MOST_DOUBLE:
            kept = self._kept = np.empty((self.vertex_count, self.height))
            for_each(lambda part: self._read(part, kept[part]), self.parts())

    @cached_property
    def squared_norm(self) -> float:
        """‖A‖²; where the products of all rows have been made, their trace."""
        return sum(mapped(lambda part: float(np.vdot(self.rows(part), self.rows(part))), self.parts()))

    def counted_norm(self, importance: np.ndarray | None) -> float:
        """‖A‖² in which each vertex counts by its ``importance`` (N,); None: all alike."""
        if importance is None:
            return self.squared_norm
        return sum(float(importance[part] @ np.square(rows).sum(axis=1)) for part, rows in self.blocks())

    def rows(self, part: slice | np.ndarray) -> np.ndarray:
        """Columns of A as rows: (n, 3F) float64 of the vertices ``part`` (slice or indices), not to be written to."""
        rows = self._read(part) if self._kept is None else self._kept[part]
        return rows if self._shift is None else rows + self._shift(part)

    def shifted(self, shift: Callable[[slice | np.ndarray], np.ndarray]) -> "AnimationMatrix":
        """The same animation with ``shift(part)``, (n, 3F), added to its ``rows``."""
        other = copy(self)
        other._shift = shift
        # That of other rows, if it is known already.
        other.__dict__.pop("squared_norm", None)
        return other

    def _read(self, part: slice | np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Rows of A, into ``rows`` (n, 3F) where that is given."""
        positions = self._frames[:, part].transpose(1, 0, 2)
        # Into an array in C order: the difference alone would lie like the frames and be copied again.
        moved = np.empty(positions.shape) if rows is None else rows.reshape(positions.shape)
        np.subtract(positions, self.means, out=moved)
        moved /= (self.radius / self._weights)[:, None]
        return moved.reshape(len(moved), self.height)

    def rest_pose(self) -> np.ndarray:
        """The first frame (N, 3) in solver units."""
        return self.positions(0)

    def positions(self, frame: int) -> np.ndarray:
        """A frame (N, 3) in solver units, without its weight."""
        return (self._frames[frame] - self.means[frame]) / self.radius

    def weigh(self, rows: np.ndarray) -> np.ndarray:
        """(n, 3F) rows of motions with each frame scaled by its weight."""
        return rows * np.repeat(self._weights, 3)

    def unweigh(self, rows: np.ndarray) -> np.ndarray:
        """The inverse of ``weigh``."""
        return rows / np.repeat(self._weights, 3)

    def points_to_object_space(self, points: np.ndarray) -> np.ndarray:
        """Points (N, 3) at rest from solver units to the space of the animation."""
        return points * self.radius + self.means[0]

    def points_from_object_space(self, points: np.ndarray) -> np.ndarray:
        """The inverse of ``points_to_object_space``."""
        return (points - self.means[0]) / self.radius

    def to_object_space(self, rest: np.ndarray, transforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rest positions (N, 3) and transforms (F, P, 3, 4) from solver units to those of the animation."""
        origin = self.means[0]
        moved = transforms / self._weights[:, None, None, None]
        moved[..., 3] = moved[..., 3] * self.radius + self.means[:, None] - moved[..., :3] @ origin
        return self.points_to_object_space(rest), moved

    def from_object_space(self, rest: np.ndarray, transforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The inverse of ``to_object_space``."""
        origin = self.means[0]
        moved = transforms.copy()
        moved[..., 3] = (transforms[..., 3] + transforms[..., :3] @ origin - self.means[:, None]) / self.radius
        return self.points_from_object_space(rest), moved * self._weights[:, None, None, None]

    def parts(self) -> list[slice]:
        """Slices that cover the vertices, so that ``rows`` of each have a bounded size."""
        step = max(_SMALLEST_BLOCK, -(-self.vertex_count // _FEWEST_BLOCKS))
        step = max(1, min(step, _BLOCK_BYTES // (8 * self.height)))
        return [slice(start, min(start + step, self.vertex_count)) for start in range(0, self.vertex_count, step)]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice of vertices, ``rows`` of it), in blocks of bounded size."""
        for part in self.parts():
            yield part, self.rows(part)

    def summed(
        self, made: Callable[[slice], np.ndarray], size: int, watch: Callable[[slice], None] = lambda part: None
    ) -> np.ndarray:
        """The sum of ``made(part)``, each a new array of ``size`` entries, over all ``parts``; watch(part) after
        each."""
        total: list[np.ndarray] = []

        def add(part: slice, found: np.ndarray) -> None:
            if total:
                total[0] += found
            else:
                total.append(found)
            watch(part)

        for_each(made, self.parts(), add, max(2, _SUMS_BYTES // (8 * size + _BLOCK_BYTES)))
        return total[0]

    def squared_tolerance(self, per_element: float) -> float:
        """ε² for an error of ``per_element`` (unit-ball units) in the root mean square: ε = per_element · √(3NF)."""
        return per_element**2 * self.height * self.vertex_count


@dataclass(frozen=True)
class Reduction:
    """basis B (3F, d) with orthonormal columns; coefficients Cᵀ (N, d), float64, or float32 where they are many; lost
    ‖BC − A‖_F²."""

    basis: np.ndarray
    coefficients: np.ndarray
    lost: float

    @property
    def dimension(self) -> int:
        return self.basis.shape[1]

    def rows(self, part: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self.coefficients[part], dtype=np.float64)

    def of_vertices(self, vertices: np.ndarray) -> "Reduction":
        """That of the ``vertices`` (n,) alone, in the same basis."""
        coefficients = self.coefficients[vertices]
        return Reduction(self.basis, coefficients, self.lost * len(coefficients) / len(self.coefficients))


def reduce_animation(
    matrix: AnimationMatrix,
    per_element: float,
    strategy: str = "EXACT",
    progress: Progress = ignore,
    stabilize: bool = True,
) -> Reduction:
    """Find B and C with ‖BC − A‖_F ≤ per_element · √(3NF) (the paper, section 5: 0.0005).

    strategy: how the next direction is found. MAXIMUM_NORM (the paper's choice), GRAM_SCHMIDT, POWER_1 and POWER_2
    are Algorithm 1 with the choices of its Table 1; EXACT gives the smallest d: the eigenvectors of A Aᵀ, or where the
    animation is long, a randomized range finder (Halko, Martinsson & Tropp 2011, Algorithm 4.4), whose cost is linear
    in the number of frames and whose d may exceed the smallest by a few.
    stabilize: False leaves out line 5 of Algorithm 1, to see what it is for.
    Raises BadSettings on an unknown strategy, Cancelled.
    """
    if strategy not in STRATEGIES:
        raise BadSettings(f"The reduction strategy must be one of {', '.join(STRATEGIES)}, not {strategy}")
    squared_epsilon = matrix.squared_tolerance(per_element)
    if strategy != "EXACT":
        return _deflate(matrix, squared_epsilon, strategy, stabilize, progress)
    if matrix.height <= LARGEST_GRAM:
        return _eigenvectors(matrix, squared_epsilon, progress)
    return _range_finder(matrix, squared_epsilon, progress)


def _eigenvectors(matrix: AnimationMatrix, squared_epsilon: float, progress: Progress) -> Reduction:
    upper = matrix.summed(
        lambda part: half_self_product(matrix.rows(part)),
        matrix.height**2,
        lambda part: checkpoint(progress, 0.5 * part.stop / matrix.vertex_count, "Reducing"),
    )
    matrix.squared_norm = float(np.trace(upper))
    values, vectors = scipy.linalg.eigh(mirrored(upper), overwrite_a=True)
    basis = vectors[:, _count_to_drop(values, 0.0, squared_epsilon) :][:, ::-1]
    return _project(matrix, np.ascontiguousarray(basis), progress)


def _count_to_drop(ascending: np.ndarray, already_lost: float, squared_epsilon: float) -> int:
    """How many of the smallest eigenvalues, clipped at zero, fit into ε² together; at least one is kept."""
    lost = already_lost + np.cumsum(np.maximum(ascending, 0.0))
    return min(int(np.searchsorted(lost, squared_epsilon, side="right")), len(ascending) - 1)


def _project(matrix: AnimationMatrix, basis: np.ndarray, progress: Progress = ignore) -> Reduction:
    return _reduced(matrix, basis, lambda part: product(matrix.rows(part), basis), progress)


def _reduced(
    matrix: AnimationMatrix, basis: np.ndarray, made: Callable[[slice], np.ndarray], progress: Progress = ignore
) -> Reduction:
    """The reduction to ``basis`` whose coefficients, of some vertices, ``made(part)`` returns."""
    count, width = matrix.vertex_count, basis.shape[1]
    coefficients = np.empty((count, width), np.float64 if 8 * count * width <= MOST_DOUBLE else np.float32)
    captured = 0.0

    def make(part: slice) -> float:
        found = made(part)
        coefficients[part] = found
        return float(np.vdot(found, found))

    def take(part: slice, squared: float) -> None:
        nonlocal captured
        captured += squared
        checkpoint(progress, 0.5 + 0.5 * part.stop / count, "Reducing")

    for_each(make, matrix.parts(), take)
    return Reduction(basis, coefficients, max(0.0, matrix.squared_norm - captured))


def _range_finder(matrix: AnimationMatrix, squared_epsilon: float, progress: Progress) -> Reduction:
    """Grow a random basis block by block until it captures A to half of ε², then cut it to principal directions.

    Each block is sharpened by two power iterations. With many vertices the basis starts with that of a random few,
    which mostly is enough. The random numbers are the same in every run.
    """
    most = min(matrix.height, matrix.vertex_count)
    basis, captured, size = np.empty((matrix.height, 0)), 0.0, 48
    count = _SAMPLE_BYTES // (4 * matrix.height)
    if matrix.vertex_count >= _SAMPLE_SHARE * count > 0:
        few = matrix.of_vertices(np.sort(np.random.default_rng(0).permutation(matrix.vertex_count)[:count]))
        # Half of what may be lost, for its share of the vertices: the others lose a little more.
        allowed = 0.25 * squared_epsilon * count / matrix.vertex_count
        # Where all else lies in one place, the few may have no directions.
        if few.squared_norm > allowed:
            basis = _range_finder(few, allowed, progress).basis
            captured = matrix.summed(partial(_captured, matrix, basis), 1).item()
    while matrix.squared_norm - captured > 0.5 * squared_epsilon and basis.shape[1] < most:
        size = min(2 * size, 256, most - basis.shape[1])
        probe = matrix.summed(partial(_random_probe, matrix, basis.shape[1], size), matrix.height * size)
        for _ in range(2):
            probe = _orthonormal_beyond(basis, probe)
            checkpoint(progress, min(0.8, captured / matrix.squared_norm), "Reducing")
            probe = matrix.summed(partial(_sharpened, matrix, probe), matrix.height * size)
        probe = _orthonormal_beyond(basis, probe)
        captured += matrix.summed(partial(_captured, matrix, probe), 1).item()
        basis = np.hstack([basis, probe])
        checkpoint(progress, min(0.8, captured / matrix.squared_norm), "Reducing")
    found = _project(matrix, basis)
    upper = matrix.summed(lambda part: half_self_product(found.rows(part)), found.dimension**2)
    values, rotation = scipy.linalg.eigh(mirrored(upper), overwrite_a=True)
    kept = np.ascontiguousarray(rotation[:, _count_to_drop(values, found.lost, squared_epsilon) :][:, ::-1])
    # The basis is the largest array here: turned in place, and nothing beside it that is no longer needed.
    del rotation, upper
    for start in range(0, len(basis), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        basis[part, : kept.shape[1]] = product(basis[part], kept)
    turned = np.ascontiguousarray(basis[:, : kept.shape[1]])
    return _reduced(matrix, turned, lambda part: product(found.rows(part), kept))


def _random_probe(matrix: AnimationMatrix, already: int, size: int, part: slice) -> np.ndarray:
    rows = matrix.rows(part)
    return product(rows.T, np.random.default_rng((already, part.start)).standard_normal((len(rows), size)))


def _sharpened(matrix: AnimationMatrix, probe: np.ndarray, part: slice) -> np.ndarray:
    rows = matrix.rows(part)
    return product(rows.T, product(rows, probe))


def _captured(matrix: AnimationMatrix, probe: np.ndarray, part: slice) -> np.ndarray:
    return np.square(product(matrix.rows(part), probe)).sum(keepdims=True)


def _orthonormal_beyond(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span what ``vectors`` add to ``basis``; projected twice against rounding."""
    for _ in range(2):
        vectors = scipy.linalg.qr(vectors - product(basis, product(basis.T, vectors)), mode="economic")[0]
    return vectors


def _deflate(
    matrix: AnimationMatrix, squared_epsilon: float, strategy: str, stabilize: bool, progress: Progress
) -> Reduction:
    """Algorithm 1, one direction at a time, with the stabilization of its line 5."""
    remaining = np.empty((matrix.vertex_count, matrix.height))
    parts = matrix.parts()

    def take(part: slice) -> None:
        remaining[part] = matrix.rows(part)

    for_each(take, parts)
    powers = {"POWER_1": 1, "POWER_2": 2}.get(strategy, 0)
    norms = np.einsum("ij,ij->i", remaining, remaining)
    # The rounding error of a vertex whose motion is already in the basis.
    negligible = 1e-24 * float(norms.max())
    basis: list[np.ndarray] = []
    coefficients: list[np.ndarray] = []
    error, vertex = matrix.squared_norm, -1
    while error > squared_epsilon and len(basis) < min(remaining.shape):
        vertex = vertex + 1 if strategy == "GRAM_SCHMIDT" else int(np.argmax(norms))
        if vertex == len(remaining):
            break
        direction = remaining[vertex].copy()
        if direction @ direction <= negligible:
            if strategy == "GRAM_SCHMIDT":
                continue
            break
        for _ in range(powers):
            direction /= np.linalg.norm(direction)
            direction = np.sum(mapped(partial(_powered, remaining, direction), parts), axis=0)
        direction /= np.linalg.norm(direction)
        if basis and stabilize:
            known = np.array(basis)
            direction -= (known @ direction) @ known
            direction /= np.linalg.norm(direction)
        row = np.concatenate(mapped(partial(_deflated, remaining, direction), parts))
        norms -= row**2
        error -= float(row @ row)
        basis.append(direction)
        coefficients.append(row)
        checkpoint(progress, 1.0 - max(0.0, error) / matrix.squared_norm, "Reducing")
    return Reduction(np.array(basis).T.copy(), np.array(coefficients).T.copy(), max(0.0, error))


def _powered(remaining: np.ndarray, direction: np.ndarray, part: slice) -> np.ndarray:
    return (remaining[part] @ direction) @ remaining[part]


def _deflated(remaining: np.ndarray, direction: np.ndarray, part: slice) -> np.ndarray:
    """Line 7 of Algorithm 1 for some vertices, in place: their coefficients (n,) of ``direction``."""
    row = remaining[part] @ direction
    remaining[part] -= row[:, None] * direction
    return row
