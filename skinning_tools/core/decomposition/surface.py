# SPDX-License-Identifier: GPL-3.0-or-later
"""Normals brought closer at little cost of the distances: errors that vary less along the surface.

Minimized is Σ m·‖e‖² + b²/a · Σ_uv c_uv ((e_u − e_v)·n_uv)² over all frames, with e the error of a vertex, a the mean
area around one, c the cotangent weights of the edges and n_uv the normal of an edge in that frame of the animation. The
sum over edges is that of ‖(∇e)ᵀn‖², what errors turn normals by; where neighbors follow different bones, it is what the
eye sees as pocks and creases. A part that is displaced as a whole costs nothing there: ∇(e·n), the gradient of the
errors along normals, would count that wherever the surface is curved.

The alternating direction method of multipliers (Boyd et al. 2011, section 3), as in ``emphasis``: the errors get a
copy that is smooth over the surface, and the skin is fitted to both its places and that copy. So the sweeps stay as
they are, for all kinds of bones, and need no equations that couple vertices, which with normals that turn would be
others for each frame.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..deform.surface import normal_errors, vertex_normals
from ..progress import Progress, span
from ..threads import for_each, mapped
from .bone_kinds import FinalBones
from .reduction import AnimationMatrix
from .smoothness import neighbor_weights
from .sweeps import alternate, skin_errors, vertex_blocks
from .vertex_step import VertexState

_SWEEPS = 24
# b at full surface, as a share of the mesh's radius; by how much E_RMS may rise there; and by how much the largest
# error may, anywhere.
_LENGTH, _ALLOWED, _ALLOWED_LARGEST = 0.05, 0.1, 0.05
# Where that is too much, b becomes shorter.
_SHORTENED = 0.85
# How much the copy of an error counts beside a vertex's place.
_FIRMNESS = 4.0
# Steps of conjugate gradients for the copies, which begin with the last ones; and frames that take them together.
_STEPS, _FRAMES = 8, 16
# Frames in which normals are compared.
_LOOKED_AT = 16


def with_closer_surface(
    matrix: AnimationMatrix,
    triangles: np.ndarray,
    kind: FinalBones,
    rows: np.ndarray,
    state: VertexState,
    surface: float,
    optimize_rest_pose: bool,
    progress: Progress,
) -> tuple[np.ndarray, VertexState, float]:
    """Transforms and vertices whose normals are closer, and what is minimized, at the full b of ``surface``.

    triangles (T, 3); rows: Tᵀ (4P, 3F) in the unreduced animation; surface: from 0 to 1. Of all sweeps, the one with
    the closest normals among those whose E_RMS has risen by no more than ``surface`` allows, and whose largest error
    has hardly; at worst all stays as it is. Errors count by the importance of their vertices. Raises BadMesh,
    Cancelled.
    """
    copies = _Copies(matrix, triangles, state.importance, _LENGTH * surface)
    full = copies.strength
    first = copies.measure(rows, state)
    allowed, most = (1.0 + _ALLOWED * surface) ** 2 * first.squared, (1.0 + _ALLOWED_LARGEST) * first.largest
    best, least = (first.squared + full * first.turned, rows, state), copies.angle()
    follower = kind.toward(copies)
    for number in range(_SWEEPS):
        part = span(progress, number / _SWEEPS, (number + 1) / _SWEEPS)
        copies.update(rows, state)
        rows, state, _ = alternate(follower, rows, state.copy(), range(1, 2), optimize_rest_pose, part)
        now = copies.measure(rows, state)
        if now.squared > allowed or now.largest > most:
            copies.strength *= _SHORTENED**2
        elif (angle := copies.angle()) < least:
            best, least = (now.squared + full * now.turned, rows, state), angle
    rank, rows, state = best
    return rows, state, rank


class _Errors(NamedTuple):
    """Of a skin: ‖TX − A‖² by the vertices' importance, the sum over edges, and the largest distance."""

    squared: float
    turned: float
    largest: float


class _Copies:
    """The places that vertices are fitted to, so that their errors follow smooth copies.

    strength: b² / a. All in solver units; importance (N,) or None.
    """

    def __init__(self, matrix: AnimationMatrix, triangles: np.ndarray, importance: np.ndarray | None, length: float):
        self._matrix, count = matrix, matrix.vertex_count
        rest = matrix.rest_pose()
        corners = rest[triangles]
        double = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        area = 0.5 * float(np.linalg.norm(double, axis=1).sum()) / count
        self.strength = length**2 / area if area > 0 else 0.0
        self._own = np.ones(count) if importance is None else importance
        edges = sparse.triu(neighbor_weights(rest, triangles), 1).tocoo()
        self._first, self._second = edges.row, edges.col
        self._weights = (edges.data * np.sqrt(self._own[edges.row] * self._own[edges.col])).astype(np.float32)
        rows, ones = np.arange(len(edges.row)), np.ones(len(edges.row), np.float32)
        shape = len(rows), count
        self._differences = sparse.csr_matrix((ones, (rows, edges.row)), shape) - sparse.csr_matrix(
            (ones, (rows, edges.col)), shape
        )
        self._sums_at_ends = self._differences.T.tocsr()
        self._normals = _normals(matrix, triangles)
        self._triangles = triangles
        frames = matrix.height // 3
        self._looked_at = np.unique(np.linspace(0, frames - 1, min(frames, _LOOKED_AT)).astype(int))
        # The errors, their copies, and the errors that the skin is to have.
        self._errors, self._copies, self._goals = (np.zeros((count, frames, 3), np.float32) for _ in range(3))

    def rows(self, part: slice | np.ndarray) -> np.ndarray:
        """(n, 3F) what the vertices ``part`` are fitted to."""
        wanted = self._matrix.rows(part)
        return wanted + _FIRMNESS / (1.0 + _FIRMNESS) * self._goals[part].reshape(wanted.shape)

    def measure(self, rows: np.ndarray, state: VertexState) -> _Errors:
        found = np.empty((2, len(self._own)))

        def measure(part: slice) -> None:
            errors = skin_errors(self._matrix, rows, state, part)
            self._errors[part] = errors.reshape(len(errors), -1, 3)
            distances = np.square(self._matrix.unweigh(errors)).reshape(len(errors), -1, 3).sum(axis=2)
            found[:, part] = np.square(errors).sum(axis=1), distances.max(axis=1)

        for_each(measure, vertex_blocks(len(self._own)))
        turned = sum(mapped(self._turned, self._frame_parts()))
        return _Errors(float(self._own @ found[0]), turned, float(np.sqrt(found[1].max())))

    def angle(self) -> float:
        """The mean angle between the normals of the skin that was measured and of the animation, in some frames: where
        thin parts are far from their places, normals turn by more than the sum over edges says."""
        angles = np.zeros(len(self._looked_at))

        def find(number: int) -> None:
            frame = self._looked_at[number]
            wanted, weight = self._matrix.positions(frame), self._matrix.weigh(np.ones((1, self._matrix.height)))
            errors = self._errors[:, frame] / weight[0, 3 * frame]
            found = normal_errors(wanted + errors, wanted, self._triangles)
            angles[number] = found.mean() if len(found) else 0.0

        for_each(find, range(len(angles)))
        return float(angles.mean())

    def update(self, rows: np.ndarray, state: VertexState) -> None:
        """Take new copies of the errors that were measured."""
        for_each(self._smooth, self._frame_parts())

    def _frame_parts(self) -> list[slice]:
        frames = self._matrix.height // 3
        return [slice(start, min(start + _FRAMES, frames)) for start in range(0, frames, _FRAMES)]

    def _edge_normals(self, part: slice) -> np.ndarray:
        """(E, f, 3) of the frames ``part``."""
        normals = self._normals[:, part]
        sums = normals[self._first] + normals[self._second]
        lengths = np.linalg.norm(sums, axis=2, keepdims=True)
        return np.divide(sums, lengths, out=sums, where=lengths > 0)

    def _along(self, errors: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """(e_u − e_v)·n_uv (E, f) of errors (N, f, 3)."""
        differences = self._differences @ errors.reshape(len(errors), -1)
        return np.einsum("efi,efi->ef", differences.reshape(normals.shape), normals)

    def _turned(self, part: slice) -> float:
        along = self._along(self._errors[:, part], self._edge_normals(part))
        return float(np.square(along).sum(axis=1, dtype=float) @ self._weights)

    def _smooth(self, part: slice) -> None:
        """Copies and goals for the frames ``part``, by conjugate gradients with the diagonal as preconditioner."""
        normals = self._edge_normals(part)
        weights = np.float32(self.strength) * self._weights[:, None]
        own = (_FIRMNESS * self._own).astype(np.float32)[:, None, None]

        def image(copies: np.ndarray) -> np.ndarray:
            pulls = (weights * self._along(copies, normals))[:, :, None] * normals
            return own * copies + (self._sums_at_ends @ pulls.reshape(len(pulls), -1)).reshape(copies.shape)

        squares = (weights[:, :, None] * np.square(normals)).reshape(len(normals), -1)
        diagonal = own + (abs(self._sums_at_ends) @ squares).reshape(len(own), -1, 3)
        # What the skin missed its goals by asks for as much more the next time.
        missed = self._errors[:, part] - self._goals[:, part]
        found = self._copies[:, part].copy()
        left = own * (self._errors[:, part] + missed) - image(found)
        direction = left / diagonal
        size = np.einsum("nfi,nfi->f", left, direction)
        for _ in range(_STEPS):
            made = image(direction)
            length = np.einsum("nfi,nfi->f", direction, made)
            step = (size / np.where(length > 0, length, 1.0))[:, None]
            found += step * direction
            left -= step * made
            scaled = left / diagonal
            before, size = size, np.einsum("nfi,nfi->f", left, scaled)
            direction = scaled + (size / np.where(before > 0, before, 1.0))[:, None] * direction
        self._copies[:, part], self._goals[:, part] = found, found - missed


def _normals(matrix: AnimationMatrix, triangles: np.ndarray) -> np.ndarray:
    """(N, F, 3) float32: the normals of all frames."""
    normals = np.empty((matrix.vertex_count, matrix.height // 3, 3), np.float32)

    def find(frame: int) -> None:
        normals[:, frame] = vertex_normals(matrix.positions(frame), triangles)

    for_each(find, range(normals.shape[1]))
    return normals
