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

import numpy as np
from scipy import sparse

from ..deform.surface import angles_between, vertex_normals
from ..progress import Progress, span
from ..solve_memory import SURFACE_THREADS, surface_frames
from ..threads import for_each
from .bone_kinds import FinalBones
from .reduction import AnimationMatrix
from .smoothness import neighbor_weights
from .sweeps import alternate, skin_errors, vertex_blocks
from .vertex_step import VertexState

# Rounds, each with new copies, and the sweeps of one. More rounds of one sweep end no closer in the same time.
_ROUNDS, _SWEEPS = 10, 2
# b at full surface, as a share of the mesh's radius; by how much E_RMS may rise there; and by how much the largest
# error may, anywhere.
_LENGTH, _ALLOWED, _ALLOWED_LARGEST = 0.05, 0.1, 0.05
# Where that is too much, or turns normals by more than before, b becomes shorter.
_SHORTENED = 0.75
# How much the copy of an error counts beside a vertex's place.
_FIRMNESS = 4.0
# Steps of conjugate gradients for the copies, which begin with the last ones.
_STEPS = 2
# Frames in which normals are compared.
_LOOKED_AT = 8


def with_closer_surface(
    matrix: AnimationMatrix,
    triangles: np.ndarray,
    kind: FinalBones,
    rows: np.ndarray,
    state: VertexState,
    surface: float,
    optimize_rest_pose: bool,
    progress: Progress,
) -> tuple[np.ndarray, VertexState, float, bool]:
    """Transforms and vertices whose normals are closer; what is minimized, at the full b of ``surface``; whether all
    stays as it is.

    triangles (T, 3); rows: Tᵀ (4P, 3F) in the unreduced animation; surface: from 0 to 1. Of all rounds, the one with
    the closest normals among those whose E_RMS has risen by no more than ``surface`` allows, and whose largest error
    has hardly; at worst all stays as it is. Errors count by the importance of their vertices. Raises BadMesh,
    Cancelled.
    """
    copies = _Copies(matrix, triangles, state.importance, _LENGTH * surface)
    full = copies.strength
    squared, largest = copies.measure(rows, state)
    allowed, most = (1.0 + _ALLOWED * surface) ** 2 * squared, (1.0 + _ALLOWED_LARGEST) * largest
    copies.most = largest
    present = copies.angle()
    best, least, unchanged = (rows, state), present, True
    if present == 0:
        # All normals are as in the animation, or there are none, as of loose vertices and wires.
        return rows, state, squared + full * copies.turned(), True
    follower = kind.toward(copies, rows)
    for number in range(_ROUNDS):
        part = span(progress, number / _ROUNDS, (number + 1) / _ROUNDS)
        copies.update()
        rows, state, _ = alternate(follower, rows, state.copy(), range(1, 1 + _SWEEPS), optimize_rest_pose, part)
        squared, largest = copies.measure(rows, state)
        angle = copies.angle()
        if squared > allowed or largest > most or angle > present:
            copies.strength *= _SHORTENED**2
        elif angle < least:
            best, least, unchanged = (rows, state), angle, False
    squared, _ = copies.measure(*best)
    return *best, squared + full * copies.turned(), unchanged


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
        roots = np.sqrt(edges.data * np.sqrt(self._own[edges.row] * self._own[edges.col]))
        self._roots = roots.astype(np.float32)
        # Of both ends of each edge: differences (E, N), their transpose, and that of sums.
        numbers, ones = np.arange(len(roots)), np.ones(len(roots), np.float32)
        places = np.tile(numbers, 2), np.concatenate([edges.row, edges.col])
        self._differences = sparse.csr_matrix((np.concatenate([ones, -ones]), places), (len(roots), count))
        self._ends = self._differences.T.tocsr()
        self._squares = abs(self._ends)
        self._normals = _normals(matrix, triangles)
        self._triangles = triangles
        frames = matrix.height // 3
        self._looked_at = np.unique(np.linspace(0, frames - 1, min(frames, _LOOKED_AT)).astype(int))
        self._wanted = [vertex_normals(matrix.positions(frame), triangles) for frame in self._looked_at]
        self._frame_weights = matrix.weigh(np.ones((1, matrix.height)))[0, ::3].astype(np.float32)
        self.most = np.inf
        self._shown = np.zeros((count, len(self._looked_at), 3))
        # The errors, their copies, and the errors that the skin is to have.
        self._errors, self._copies, self._goals = (np.zeros((count, frames, 3), np.float32) for _ in range(3))

    def rows(self, part: slice | np.ndarray) -> np.ndarray:
        """(n, 3F) what the vertices ``part`` are fitted to."""
        wanted = self._matrix.rows(part)
        return wanted + _FIRMNESS / (1.0 + _FIRMNESS) * self._goals[part].reshape(wanted.shape)

    def measure(self, rows: np.ndarray, state: VertexState) -> tuple[float, float]:
        """‖TX − A‖² by the vertices' importance, and the largest distance."""
        found = np.empty((2, len(self._own)))

        def measure(part: slice) -> None:
            errors = skin_errors(self._matrix, rows, state, part)
            self._errors[part] = errors.reshape(len(errors), -1, 3)
            shown = self._matrix.unweigh(errors).reshape(len(errors), -1, 3)
            self._shown[part] = shown[:, self._looked_at]
            found[:, part] = np.square(errors).sum(axis=1), np.square(shown).sum(axis=2).max(axis=1)

        for_each(measure, vertex_blocks(len(self._own)))
        return float(self._own @ found[0]), float(np.sqrt(found[1].max()))

    def angle(self) -> float:
        """The mean angle between the normals of the skin that was measured and of the animation, in some frames: where
        thin parts are far from their places, normals turn by more than the sum over edges says."""
        angles = np.zeros(len(self._looked_at))

        def find(number: int) -> None:
            made = self._matrix.positions(self._looked_at[number]) + self._shown[:, number]
            found = angles_between(vertex_normals(made, self._triangles), self._wanted[number])
            angles[number] = found.mean() if len(found) else 0.0

        for_each(find, range(len(angles)))
        return float(angles.mean())

    def turned(self) -> float:
        """The sum over edges of the errors that were measured."""
        sums: list[float] = []
        for_each(self._turned, self._frame_parts(), lambda _, found: sums.append(found), most=SURFACE_THREADS)
        return sum(sums)

    def update(self) -> None:
        """Take new copies of the errors that were measured."""
        for_each(self._smooth, self._frame_parts(), most=SURFACE_THREADS)

    def _frame_parts(self) -> list[slice]:
        count = self._matrix.height // 3
        size = surface_frames(count, len(self._own))
        return [slice(start, start + size) for start in range(0, count, size)]

    def _edge_normals(self, part: slice) -> np.ndarray:
        """(3, E, f) of the frames ``part``, as long as the roots of the edges' weights."""
        normals = np.ascontiguousarray(self._normals[:, :, part])
        sums = normals[:, self._first]
        sums += normals[:, self._second]
        lengths = np.sqrt(_dot(sums, sums))
        sums *= np.divide(self._roots[:, None], lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return sums

    def _along(self, errors: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """(e_u − e_v)·n_uv (E, f) of errors (3, N, f)."""
        x, y, z = (normal * (self._differences @ error) for error, normal in zip(errors, normals, strict=True))
        return x + y + z

    def _turned(self, part: slice) -> float:
        return float(np.square(self._along(_planes(self._errors, part), self._edge_normals(part))).sum(dtype=float))

    def _smooth(self, part: slice) -> None:
        """Copies and goals for the frames ``part``, by conjugate gradients with the diagonal as preconditioner."""
        normals = self._edge_normals(part) * np.float32(np.sqrt(self.strength))
        own = (_FIRMNESS * self._own).astype(np.float32)[:, None]

        def image(copies: np.ndarray) -> np.ndarray:
            pulls = self._along(copies, normals)
            return own * copies + np.stack([self._ends @ (pulls * normal) for normal in normals])

        diagonal = own + np.stack([self._squares @ np.square(normal) for normal in normals])
        errors, goals, found = (_planes(each, part) for each in (self._errors, self._goals, self._copies))
        # What the skin missed its goals by asks for as much more the next time.
        missed = errors - goals
        left = own * (errors + missed) - image(found)
        direction = left / diagonal
        size = np.vdot(left, direction)
        for _ in range(_STEPS):
            if size <= 0:
                break
            made = image(direction)
            step = size / np.vdot(direction, made)
            found += step * direction
            left -= step * made
            scaled = left / diagonal
            before, size = size, np.vdot(left, scaled)
            direction *= size / before
            direction += scaled
        lengths = np.sqrt(_dot(found, found))
        most = np.float32(self.most) * self._frame_weights[part]
        found *= np.minimum(1.0, np.divide(most, lengths, out=np.ones_like(lengths), where=lengths > 0))
        self._copies[:, part], self._goals[:, part] = (each.transpose(1, 2, 0) for each in (found, found - missed))


def _planes(vectors: np.ndarray, part: slice) -> np.ndarray:
    """(3, N, f): of vectors (N, F, 3), each axis alone in memory, with which products and sums take half as long."""
    return np.ascontiguousarray(vectors[:, part].transpose(2, 0, 1))


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of vectors (3, ...)."""
    return first[0] * second[0] + first[1] * second[1] + first[2] * second[2]


def _normals(matrix: AnimationMatrix, triangles: np.ndarray) -> np.ndarray:
    """(3, N, F) float32: the normals of all frames."""
    normals = np.empty((3, matrix.vertex_count, matrix.height // 3), np.float32)

    def find(frame: int) -> None:
        normals[:, :, frame] = vertex_normals(matrix.positions(frame), triangles).T

    for_each(find, range(normals.shape[2]))
    return normals
