# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes at rest that, blended over time and then skinned, correct the error that the bones leave.

The corrections in brackets of Kavan et al. 2010, Table 2 (after EigenSkin, Kry et al. 2002, and James & Twigg 2005):
vertex i of frame f is L_fi (v_i + Σ_k c_fk u_ki) + t_fi, with [L_fi | t_fi] its blended bone matrix. The start is the
truncated singular value decomposition of the residuals mapped to the rest pose; from there values and shapes take turns
in least squares of the error as it is after skinning, which counts a stretched vertex as much as it shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..deform.influences import weight_matrix
from ..dense import product, self_product
from ..eigenskin.displacements import damped_inverse
from ..progress import Progress, checkpoint, ignore
from ..solve_memory import RESIDUAL_BLOCK_BYTES as _BLOCK_BYTES
from ..solve_memory import RESIDUAL_GRAM as _LARGEST_GRAM
from ..solve_memory import RESIDUAL_OVERSAMPLING as _OVERSAMPLING

_STAGE = "Residual shapes"
# The most passes. For recorded motion the start is nearly optimal: the first pass that saves less than the given share
# of the squared error is the last.
_PASSES = 12
_WORTHWHILE = 1e-2
_RIDGE = 1e-10
_ITERATIONS = 4
# Row and column of the entries of a symmetric 3 × 3 matrix.
_ROWS, _COLUMNS = np.triu_indices(3)


@dataclass(frozen=True, eq=False)
class ResidualShapes:
    """shapes (R, N, 3) float64: offsets from the rest pose, object space, the one with most effect first. values (F, R)
    float64: how much of each in each frame, −1 to 1."""

    shapes: np.ndarray
    values: np.ndarray

    def rest(self, rest: np.ndarray, frame: int) -> np.ndarray:
        """``rest`` (N, 3) as corrected in a frame."""
        return rest + np.tensordot(self.values[frame], self.shapes, axes=1)

    def from_zero_to_one(self) -> tuple["ResidualShapes", np.ndarray | None]:
        """The same corrections with values between 0 and 1, which players of morph targets expect, and the constant
        offset (N, 3) to add in all frames, None if no value is negative.

        Each value begins at its lowest, and the offset makes up for that. A single offset for all shapes costs one
        shape; positive and negative parts would double them, and need more keys where a value passes zero.
        """
        lowest = np.minimum(self.values.min(axis=0), 0.0)
        ranges = self.values.max(axis=0, initial=0.0) - lowest
        ranges = np.where(ranges > 0, ranges, 1.0)
        one_sided = ResidualShapes(self.shapes * ranges[:, None, None], (self.values - lowest) / ranges)
        return one_sided, np.tensordot(lowest, self.shapes, axes=1) if lowest.any() else None


def fit_residual_shapes(
    frames: np.ndarray,
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    transforms: np.ndarray,
    count: int,
    progress: Progress = ignore,
) -> ResidualShapes:
    """The ``count`` shapes, at most F, that correct the skinning of ``rest`` towards ``frames`` (F, N, 3) best.

    rest (N, 3), bones and weights (N, K), transforms (F, P, 3, 4), all in object space. Each turn lowers the error.
    Deterministic. Raises Cancelled.
    """
    blocks = _Blocks(frames, rest, bones, weights, transforms, count)
    values = _first_values(blocks, count, progress)
    shapes = np.zeros((len(rest), count, 3))
    left = np.inf
    for number in range(_PASSES):
        normal = np.zeros((len(frames), count * (count + 1) // 2))
        right = np.zeros((len(frames), count))
        squared = 0.0
        for part, metric, mapped, squares in blocks:
            shapes[part] = _fit_shapes(values, metric, mapped)
            normal += product(metric.reshape(len(frames), -1), _pairs_of_shapes(shapes[part]).T)
            right += product(mapped.reshape(len(frames), -1), shapes[part].transpose(2, 0, 1).reshape(-1, count))
            squared += squares
            checkpoint(progress, (1 + number + part.stop / len(rest)) / (1 + _PASSES), _STAGE)
        values = _fit_values(normal, right)
        before, left = left, squared - float(np.vdot(values, right))
        if number > 0 and before - left <= _WORTHWHILE * before:
            break
    return _in_order(shapes.transpose(1, 0, 2), values)


class _Blocks:
    """Blocks of vertices with the data that all steps need; computed each time, as it is too much to keep in memory."""

    def __init__(
        self,
        frames: np.ndarray,
        rest: np.ndarray,
        bones: np.ndarray,
        weights: np.ndarray,
        transforms: np.ndarray,
        count: int,
    ):
        self._frames, self._rest, self._transforms = frames, rest, transforms
        self.frame_count, self.vertex_count = len(frames), len(rest)
        self._weights = weight_matrix(bones, weights, transforms.shape[1])
        # Matrices, their squares and inverses of each frame, and the equations of each vertex.
        self._step = max(1, _BLOCK_BYTES // (8 * (36 * len(frames) + 9 * count**2)))

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, float]]:
        """Yield a slice of n vertices, LᵀL (F, 6, n) as six entries, Lᵀ r (F, 3, n), and Σ ‖r‖²."""
        for part, linear, residuals in self.skinned():
            metric = np.einsum("fnij,fnik->fjkn", linear, linear)[:, _ROWS, _COLUMNS]
            mapped = np.einsum("fnij,fni->fjn", linear, residuals)
            yield part, metric, mapped, float(np.vdot(residuals, residuals))

    def at_rest(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield a slice of n vertices and the residuals mapped to the rest pose (F, 3 n), as large as they show."""
        for part, linear, residuals in self.skinned():
            inverses = damped_inverse(linear.reshape(-1, 3, 3))[0].reshape(linear.shape)
            at_rest = np.einsum("fnij,fnj->fni", inverses, residuals)
            size = np.sqrt(np.einsum("fnij,fnij->n", linear, linear) / (3 * len(linear)))
            yield part, (at_rest * size[:, None]).reshape(len(linear), -1)

    def skinned(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield a slice of n vertices, L (F, n, 3, 3) and the residuals r (F, n, 3) in object space."""
        frame_count, bone_count = self._transforms.shape[:2]
        matrices = self._transforms.transpose(1, 0, 2, 3).reshape(bone_count, -1)
        for start in range(0, len(self._rest), self._step):
            part = slice(start, min(start + self._step, len(self._rest)))
            blended = (self._weights[part] @ matrices).reshape(-1, frame_count, 3, 4).transpose(1, 0, 2, 3)
            linear = blended[..., :3]
            positions = np.einsum("fnij,nj->fni", linear, self._rest[part]) + blended[..., 3]
            yield part, linear, self._frames[:, part] - positions


def _first_values(blocks: _Blocks, count: int, progress: Progress) -> np.ndarray:
    """(F, count) orthonormal: the principal components over time of the residuals at rest.

    Of long animations by subspace iteration (Halko, Martinsson & Tropp 2011, Algorithm 4.4): linear in F.
    """
    if blocks.frame_count <= _LARGEST_GRAM:
        gram: np.ndarray | float = 0.0
        for part, at_rest in blocks.at_rest():
            gram = gram + self_product(at_rest.T)
            checkpoint(progress, part.stop / blocks.vertex_count / (1 + _PASSES), _STAGE)
        return np.ascontiguousarray(scipy.linalg.eigh(gram)[1][:, ::-1][:, :count])
    size = min(2 * count + _OVERSAMPLING, blocks.frame_count)
    sums = np.random.default_rng(0).normal(size=(blocks.frame_count, size))
    for number in range(_ITERATIONS):
        vectors = scipy.linalg.qr(sums, mode="economic")[0]
        sums = np.zeros(vectors.shape)
        for part, at_rest in blocks.at_rest():
            sums += product(at_rest, product(at_rest.T, vectors))
            done = (number + part.stop / blocks.vertex_count) / _ITERATIONS
            checkpoint(progress, done / (1 + _PASSES), _STAGE)
    directions = scipy.linalg.eigh(product(vectors.T, sums))[1][:, ::-1][:, :count]
    return product(vectors, directions)


def _fit_shapes(values: np.ndarray, metric: np.ndarray, mapped: np.ndarray) -> np.ndarray:
    """The least-squares shapes (n, R, 3) of some vertices for ``values`` (F, R)."""
    frame_count, count = values.shape
    vertices = mapped.shape[2]
    first, second = np.triu_indices(count)
    sums = product((values[:, first] * values[:, second]).T, metric.reshape(frame_count, -1)).reshape(-1, 6, vertices)
    system = np.empty((vertices, count, 3, count, 3))
    for entry, (row, column) in enumerate(zip(_ROWS, _COLUMNS, strict=True)):
        for place, (k, m) in enumerate(zip(first, second, strict=True)):
            for a, b in {(row, column), (column, row)}:
                system[:, k, a, m, b] = system[:, m, b, k, a] = sums[place, entry]
    right = product(values.T, mapped.reshape(frame_count, -1)).reshape(count, 3, vertices).transpose(2, 0, 1)
    flat = system.reshape(vertices, 3 * count, 3 * count)
    return _solved(flat, right.reshape(vertices, 3 * count)).reshape(vertices, count, 3)


def _pairs_of_shapes(shapes: np.ndarray) -> np.ndarray:
    """(R (R + 1) / 2, 6 n): what LᵀL of each vertex is to be multiplied by for uᵀ LᵀL u of each pair of shapes."""
    first, second = np.triu_indices(shapes.shape[1])
    u, v = shapes[:, first], shapes[:, second]
    pairs = u[..., _ROWS] * v[..., _COLUMNS]
    pairs = np.where(_ROWS == _COLUMNS, pairs, pairs + u[..., _COLUMNS] * v[..., _ROWS])
    return pairs.transpose(1, 2, 0).reshape(len(first), -1)


def _fit_values(normal: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The least-squares values (F, R) for given shapes: normal (F, R (R + 1) / 2), right (F, R)."""
    frame_count, count = right.shape
    first, second = np.triu_indices(count)
    system = np.empty((frame_count, count, count))
    system[:, first, second] = system[:, second, first] = normal
    return _solved(system, right)


def _solved(systems: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve symmetric systems (n, m, m), lightly held to zero where they are singular; right (n, m)."""
    size = np.einsum("nii->n", systems)
    diagonal = np.arange(systems.shape[1])
    systems[:, diagonal, diagonal] += (_RIDGE * size + np.where(size > 0, 0.0, 1.0))[:, None]
    return np.linalg.solve(systems, right[..., None])[..., 0]


def _in_order(shapes: np.ndarray, values: np.ndarray) -> ResidualShapes:
    """The same sums of ``values`` (F, R) times ``shapes`` (R, N, 3), the shapes orthogonal and in order of effect."""
    count = len(shapes)
    turned, triangle = np.linalg.qr(values)
    combined = product(triangle, shapes.reshape(count, -1))
    directions = scipy.linalg.eigh(self_product(combined.T))[1][:, ::-1]
    shapes, values = product(directions.T, combined), product(turned, directions)
    largest = np.take_along_axis(values, np.argmax(np.abs(values), axis=0)[None], axis=0)[0]
    largest = np.where(largest == 0, 1.0, largest)
    return ResidualShapes((shapes * largest[:, None]).reshape(count, -1, 3), values / largest)
