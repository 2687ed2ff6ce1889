# SPDX-License-Identifier: GPL-3.0-or-later
"""Normals brought closer at little cost of the distances: errors that vary less along the surface.

Minimized is Σ m·‖e‖² + b²·∫ ‖∇(e·n)‖² / a over all frames, with e the error of a vertex, n its normal in that frame of
the animation and a the mean area around a vertex. ∇(e·n) is what an error turns the normal by; where neighbors follow
different bones, it is what the eye sees as pocks and creases.

The alternating direction method of multipliers (Boyd et al. 2011, section 3), as in ``emphasis``: the errors along
normals get a copy that is smooth over the surface, and the skin is fitted to both its places and that copy. So the
sweeps stay as they are, for all kinds of bones, and need no equations that couple vertices, which with normals that
turn would be others for each frame.
"""

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
# b at full surface, as a share of the mesh's radius; and by how much E_RMS may rise there.
_LENGTH, _ALLOWED = 0.05, 0.1
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
    the closest normals among those whose E_RMS has risen by no more than ``surface`` allows; at worst all stays as it
    is. Errors count by the importance of their vertices. Raises BadMesh, Cancelled.
    """
    copies = _Copies(matrix, triangles, state.importance, _LENGTH * surface)
    full = copies.strength
    squared, turned = copies.measure(rows, state)
    allowed = (1.0 + _ALLOWED * surface) ** 2 * squared
    best, least = (squared + full * turned, rows, state), copies.angle()
    follower = kind.toward(copies)
    for number in range(_SWEEPS):
        part = span(progress, number / _SWEEPS, (number + 1) / _SWEEPS)
        copies.update(rows, state)
        rows, state, _ = alternate(follower, rows, state.copy(), range(1, 2), optimize_rest_pose, part)
        squared, turned = copies.measure(rows, state)
        if squared > allowed:
            copies.strength *= _SHORTENED**2
        elif (angle := copies.angle()) < least:
            best, least = (squared + full * turned, rows, state), angle
    rank, rows, state = best
    return rows, state, rank


class _Copies:
    """The places that vertices are fitted to, so that their errors along normals follow smooth copies.

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
        root = sparse.diags(np.sqrt(self._own))
        neighbors = root @ neighbor_weights(rest, triangles) @ root
        self._laplacian = (sparse.diags(np.asarray(neighbors.sum(axis=1)).ravel()) - neighbors).tocsr()
        self._normals = _normals(matrix, triangles)
        shape = count, matrix.height // 3
        self._triangles = triangles
        self._looked_at = np.unique(np.linspace(0, shape[1] - 1, min(shape[1], _LOOKED_AT)).astype(int))
        self._shown = np.zeros((count, len(self._looked_at), 3))
        # Errors along the normals, their copies, and the sums of what the two differed by.
        self._along, self._copies, self._sums = (np.zeros(shape, np.float32) for _ in range(3))
        self._skin: tuple[np.ndarray, VertexState] | None = None

    def rows(self, part: slice | np.ndarray) -> np.ndarray:
        """(n, 3F) what the vertices ``part`` are fitted to: along their normals the copies, in other directions what
        they are, as often as these."""
        assert self._skin is not None
        errors = skin_errors(self._matrix, *self._skin, part)
        more = self._copies[part] - self._sums[part] - self._along[part]
        errors += (more[:, :, None] * self._normals[part]).reshape(errors.shape)
        errors *= _FIRMNESS / (1.0 + _FIRMNESS)
        errors += self._matrix.rows(part)
        return errors

    def measure(self, rows: np.ndarray, state: VertexState) -> tuple[float, float]:
        """‖TX − A‖² and ∫ ‖∇(e·n)‖² by the vertices' importance."""
        squares = np.empty(len(self._own))

        def measure(part: slice) -> None:
            errors = skin_errors(self._matrix, rows, state, part)
            squares[part] = np.einsum("ij,ij->i", errors, errors)
            self._shown[part] = self._matrix.unweigh(errors).reshape(len(errors), -1, 3)[:, self._looked_at]
            self._along[part] = np.einsum(
                "nfi,nfi->nf", errors.reshape(*self._normals[part].shape), self._normals[part]
            )

        for_each(measure, vertex_blocks(len(self._own)))
        return float(self._own @ squares), sum(mapped(self._turned, self._frame_parts()))

    def angle(self) -> float:
        """The mean angle between the normals of the skin that was measured and of the animation, in some frames: what
        errors turn a normal by is not all of ∇(e·n) where thin parts are far from their places."""
        angles = np.zeros(len(self._looked_at))

        def find(number: int) -> None:
            frame = self._matrix.positions(self._looked_at[number])
            found = normal_errors(frame + self._shown[:, number], frame, self._triangles)
            angles[number] = found.mean() if len(found) else 0.0

        for_each(find, range(len(angles)))
        return float(angles.mean())

    def update(self, rows: np.ndarray, state: VertexState) -> None:
        """Take new copies of the errors that were measured of this skin."""
        if self._skin is not None:
            self._sums += self._along - self._copies
        self._skin = rows, state
        system = (self.strength * self._laplacian + _FIRMNESS * sparse.diags(self._own)).tocsr()
        for_each(lambda part: self._smooth(part, system), self._frame_parts())

    def _frame_parts(self) -> list[slice]:
        return [slice(start, start + _FRAMES) for start in range(0, self._matrix.height // 3, _FRAMES)]

    def _turned(self, part: slice) -> float:
        along = self._along[:, part].astype(float)
        return float(np.vdot(along, self._laplacian @ along))

    def _smooth(self, part: slice, system: sparse.csr_matrix) -> None:
        """Copies for the frames ``part``, by conjugate gradients with the diagonal as preconditioner."""
        found = self._copies[:, part].astype(float)
        wanted = (_FIRMNESS * self._own)[:, None] * (self._along[:, part] + self._sums[:, part])
        diagonal = system.diagonal()[:, None]
        left = wanted - system @ found
        direction = left / diagonal
        size = np.einsum("nf,nf->f", left, direction)
        for _ in range(_STEPS):
            image = system @ direction
            length = np.einsum("nf,nf->f", direction, image)
            step = size / np.where(length > 0, length, 1.0)
            found += step * direction
            left -= step * image
            scaled = left / diagonal
            before, size = size, np.einsum("nf,nf->f", left, scaled)
            direction = scaled + size / np.where(before > 0, before, 1.0) * direction
        self._copies[:, part] = found


def _normals(matrix: AnimationMatrix, triangles: np.ndarray) -> np.ndarray:
    """(N, F, 3) float32: the normals of all frames."""
    normals = np.empty((matrix.vertex_count, matrix.height // 3, 3), np.float32)

    def find(frame: int) -> None:
        normals[:, frame] = vertex_normals(matrix.positions(frame), triangles)

    for_each(find, range(normals.shape[1]))
    return normals
