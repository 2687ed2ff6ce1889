# SPDX-License-Identifier: GPL-3.0-or-later
"""A vertex animation as arrays: its checks, its scale and the error measures used everywhere."""

from dataclasses import dataclass

import numpy as np

from .errors import BadAnimation, BadMesh

# Beyond this, single precision cannot hold the squares of distances, and neither Blender nor a solver works.
LARGEST_POSITION = 1e15


@dataclass(frozen=True)
class Animation:
    """A mesh of fixed connectivity that moves.

    frames (F, N, 3) float32: vertex positions, object space; an array in C order is used without a copy, so that a
    sequence may stay on disk (numpy.memmap). triangles (T, 3) int32: may be empty.
    frame_numbers (F,) float64: the scene's frame of each row, named in messages; 1, 2, … by default.
    name: what messages call the object ('object "Flag"').
    """

    frames: np.ndarray
    triangles: np.ndarray
    frame_numbers: np.ndarray = None  # type: ignore[assignment] # __post_init__ makes it an array
    name: str = "the animation"

    def __post_init__(self) -> None:
        frames = np.asarray(self.frames)
        if frames.ndim != 3 or frames.shape[2] != 3:
            raise BadAnimation(
                f"The positions of {self.name} must have the shape (frames, vertices, 3), not {frames.shape}"
            )
        frames = np.ascontiguousarray(frames, dtype=np.float32)
        triangles = np.ascontiguousarray(self.triangles, dtype=np.int32).reshape(-1, 3)
        numbers = (
            np.arange(1.0, len(frames) + 1) if self.frame_numbers is None else np.asarray(self.frame_numbers, float)
        )
        if numbers.shape != (len(frames),):
            raise BadAnimation(f"{self.name} has {len(frames)} frames, but {numbers.size} frame numbers")
        object.__setattr__(self, "frames", frames)
        object.__setattr__(self, "triangles", triangles)
        object.__setattr__(self, "frame_numbers", numbers)

    @property
    def vertex_count(self) -> int:
        return self.frames.shape[1]

    def frame_label(self, row: int) -> str:
        """The scene's number of a row of ``frames`` as people write it: 12, or 12.5 between frames."""
        return f"{self.frame_numbers[row]:g}"


def check_animation(animation: Animation, *, may_stand_still: bool = False, may_be_a_pose: bool = False) -> None:
    """Refuse animations that no skinning can be solved from.

    Raises BadMesh (no vertices, zero size, triangles that refer to missing vertices) and BadAnimation (fewer than two
    frames, unless it may be one pose; NaN or infinite positions; nothing moves, unless it may), each naming the object
    and, where it applies, frame and vertex.
    """
    frames, name = animation.frames, animation.name
    if animation.vertex_count == 0:
        raise BadMesh(f"{name} has no vertices. Choose a mesh that has some")
    if len(frames) < 2 and not (may_be_a_pose and len(frames)):
        count = f"{len(frames)} frame{'' if len(frames) == 1 else 's'}"
        raise BadAnimation(f"{name} has {count} in the range; at least two are needed. Widen the frame range")
    check_triangles(animation.triangles, animation.vertex_count, name)
    for row, positions in enumerate(frames):
        check_finite(positions, animation.frame_label(row), name)
    if not np.any(np.ptp(frames[0], axis=0) > 0):
        raise BadMesh(
            f"{name} has no size at frame {animation.frame_label(0)}: all of its vertices lie at one point. "
            "Start the range at a frame where the mesh has its shape"
        )
    if not may_stand_still and all(np.array_equal(positions, frames[0]) for positions in frames[1:]):
        raise BadAnimation(
            f"Nothing moves: {name} has the same shape from frame {animation.frame_label(0)} to "
            f"{animation.frame_label(len(frames) - 1)}. Check the frame range, or that the animation is on the mesh "
            "and not on the object's own transform. For shape keys without keyframes use Convert Shape Keys"
        )


def check_triangles(triangles: np.ndarray, vertex_count: int, name: str = "the mesh") -> None:
    """Raise BadMesh where ``triangles`` (T, 3) refers to a missing vertex."""
    if triangles.size and (triangles.min() < 0 or triangles.max() >= vertex_count):
        raise BadMesh(
            f"A triangle of {name} refers to a vertex that is not among its {vertex_count}. The mesh is damaged"
        )


def check_finite(positions: np.ndarray, frame_label: str, name: str) -> None:
    """Raise BadAnimation naming a vertex of ``positions`` (N, 3) that is NaN, infinite or farther out than
    ``LARGEST_POSITION``."""
    finite = np.isfinite(positions)
    if not finite.all():
        vertex = int(np.argmin(finite.all(axis=1)))
        raise BadAnimation(
            f"{name} has a position that is not a number (NaN or infinite) at frame {frame_label}, vertex {vertex}. "
            "Repair the cache or simulation there, or leave that frame out of the range"
        )
    if len(positions) and max(positions.max(), -positions.min()) > LARGEST_POSITION:
        place = np.unravel_index(np.argmax(np.abs(positions)), positions.shape)
        raise BadAnimation(
            f"{name} has a position that is far too large, {positions[place]:.3g}, at frame {frame_label}, vertex "
            f"{place[0]}. Repair the cache or simulation there, or leave that frame out of the range"
        )


def enclosing_ball(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Center (3,) and radius of the smallest ball around ``points`` (N, 3).

    Active-set pivoting (Gärtner 1999): the farthest point enters the support until none lies outside. Exact but for
    rounding; a handful of passes over the points.
    """
    points = np.asarray(points, dtype=np.float64)
    origin = points.mean(axis=0)
    points = points - origin
    center, radius_squared, support = points[0] * 0.0, 0.0, points[:0]
    tolerance = 1e-12 * max(float(np.einsum("ij,ij->i", points, points).max()), float(np.finfo(float).tiny))
    for _ in range(1000):
        offsets = points - center
        distances = np.einsum("ij,ij->i", offsets, offsets)
        farthest = int(np.argmax(distances))
        if distances[farthest] <= radius_squared + tolerance:
            break
        support, center, radius_squared = _smallest_ball_of_few(np.vstack([support, points[farthest]]), tolerance)
    return center + origin, float(np.sqrt(radius_squared))


def _smallest_ball_of_few(points: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Support, center and squared radius of the smallest ball around at most five points: the best of all subsets."""
    best = None
    for mask in range(1, 1 << len(points)):
        subset = points[[i for i in range(len(points)) if mask >> i & 1]]
        if len(subset) > 4:
            continue
        edges = subset[1:] - subset[0]
        # The center lies in the affine hull of the subset, equally far from all of its points.
        offset = np.linalg.lstsq(edges, 0.5 * np.einsum("ij,ij->i", edges, edges), rcond=None)[0] if len(edges) else 0.0
        center = subset[0] + offset
        distances = np.einsum("ij,ij->i", points - center, points - center)
        radius_squared = float(np.max(distances[[i for i in range(len(points)) if mask >> i & 1]]))
        if distances.max() <= radius_squared + tolerance and (best is None or radius_squared < best[2]):
            best = subset, center, radius_squared
    assert best is not None
    return best


def unit_scale(frames: np.ndarray) -> float:
    """The factor that fits the first of ``frames`` (F, N, 3) tightly into a unit ball (Kavan et al. 2010, section 5).

    Raises BadMesh where the first frame has no extent.
    """
    radius = enclosing_ball(frames[0])[1]
    if not radius > 0:
        raise BadMesh("The first frame has no size: all vertices lie at one point")
    return 1.0 / radius


def motion_size(frames: np.ndarray) -> float:
    """How far the vertices of ``frames`` (F, N, 3) are from where they are in the first, root mean square, in the scale
    of E_RMS: tells whether two animations are the same."""
    total = sum(float(np.square(np.subtract(each, frames[0], dtype=np.float64)).sum()) for each in frames)
    return 1000 * unit_scale(frames) * float(np.sqrt(total / frames.size))


class ErrorMeter:
    """Collects the distance between an animation and its approximation, frame by frame.

    scale: object-space distance to unit-ball distance (see ``unit_scale``). Frames are added one at a time, so
    that an approximation never has to be in memory as a whole.
    """

    def __init__(self, scale: float, vertex_count: int):
        self._scale = scale
        self._squared_sums: list[float] = []
        self._largest: list[float] = []
        self._vertex_squared = np.zeros(vertex_count)
        self._worst_squared = -1.0
        self.worst_vertex = 0
        """The vertex with the largest distance of all, in the space of ``vertex_error``."""
        self.worst_row = 0
        """The frame of that distance, counted from 0."""

    def add(self, expected: np.ndarray, actual: np.ndarray, to_world: np.ndarray | None = None) -> None:
        """Compare one frame: both (N, 3), object space. to_world (3, 3): the object's linear part at that frame."""
        difference = np.subtract(actual, expected, dtype=np.float64)
        squared = np.einsum("ij,ij->i", difference, difference)
        self._squared_sums.append(float(squared.sum()))
        self._largest.append(float(squared.max()))
        if to_world is not None:
            difference = difference @ np.asarray(to_world).T
            squared = np.einsum("ij,ij->i", difference, difference)
        worst = int(squared.argmax())
        if squared[worst] > self._worst_squared:
            self._worst_squared, self.worst_vertex = float(squared[worst]), worst
            self.worst_row = len(self._largest) - 1
        np.maximum(self._vertex_squared, squared, out=self._vertex_squared)

    @property
    def e_rms(self) -> float:
        """E_RMS of Kavan et al. 2010, section 5: per mille of the unit ball."""
        elements = 3 * len(self._squared_sums) * len(self._vertex_squared)
        return 1000 * self._scale * float(np.sqrt(sum(self._squared_sums) / elements))

    @property
    def max_error(self) -> float:
        """Largest distance of a vertex in any frame, in the scale of ``e_rms``."""
        return 1000 * self._scale * float(np.sqrt(max(self._largest)))

    @property
    def frame_e_rms(self) -> np.ndarray:
        """(F,) the E_RMS of each frame alone."""
        return 1000 * self._scale * np.sqrt(np.array(self._squared_sums) / (3 * len(self._vertex_squared)))

    @property
    def frame_max_error(self) -> np.ndarray:
        """(F,) the largest vertex distance of each frame, in the scale of ``e_rms``."""
        return 1000 * self._scale * np.sqrt(np.array(self._largest))

    @property
    def vertex_error(self) -> np.ndarray:
        """(N,) largest distance of each vertex over all frames: in world space where ``add`` got
        ``to_world``, else in object space."""
        return np.sqrt(self._vertex_squared)
