# SPDX-License-Identifier: GPL-3.0-or-later
"""The most memory that a decomposition needs: a panel shows it before the solver is loaded.

Loading scipy takes a third of a second, and the sizes here are those that the solver cuts its work by.
"""

from typing import TYPE_CHECKING

from .solve_effort import effort_of

if TYPE_CHECKING:
    from .decomposition import Settings

# The number of vertices that one thread works on at once; of threads that any work may have, and the most.
BLOCK_VERTICES, FEWEST_WORKERS, MOST_WORKERS = 2048, 4, 16
# Bytes of the blocks and sums that more threads than the fewest may work on.
_WORKERS_BYTES = 256 << 20
# Bytes up to which an animation, or its reduction, is kept in double precision: a larger one is converted when it is
# read, or kept in single precision.
MOST_DOUBLE = 48 << 20
# Bytes of inner products that are kept from sweep to sweep.
LARGEST_KEPT = 512 << 20
# With more rows than this, the animation's reduction is found by random probes instead of eigenvectors.
LARGEST_GRAM = 2400
# For residual shapes: the bytes of a block; the number of frames up to which the start is exact (the eigenvectors of a
# matrix of frames by frames); and the additional columns for longer animations.
RESIDUAL_BLOCK_BYTES, RESIDUAL_GRAM, RESIDUAL_OVERSAMPLING = 32 << 20, 1500, 20
# For a surface: the frames that one thread smooths errors in, at most of so many positions unless it is a single frame;
# the number of such threads; and the bytes that each needs for a position, mostly of its three edges.
SURFACE_FRAMES, SURFACE_POSITIONS, SURFACE_THREADS, SURFACE_BYTES = 16, 1 << 18, 4, 230
# For bones on joints: the number of threads, the most frames that one of them solves at once, the bytes up to which it
# takes more than one, and the bytes of factors that are kept until the joints have moved.
JOINT_THREADS, JOINT_FRAMES, JOINT_BLOCK_BYTES, JOINT_KEPT_BYTES = 8, 32, 8 << 20, 256 << 20


def memory_estimate(frame_count: int, vertex_count: int, settings: "Settings", jointed: bool = False) -> int:
    """Bytes that ``decompose`` needs beside ``frames`` (F, N, 3) float32, at the most. settings: or what is like it;
    jointed: whether ``solve_jointed`` follows."""
    height, columns = 3 * frame_count, 4 * settings.bone_count
    # It is unknown in advance how far an animation can be reduced; noise cannot be reduced at all.
    dimension = min(height, vertex_count)
    coefficients = max(min(8 * vertex_count * dimension, MOST_DOUBLE), 4 * vertex_count * dimension)
    if height > LARGEST_GRAM or settings.method == "KAVAN2010":
        # Beside what they are made of.
        coefficients *= 2
    reduced = 2 * height * dimension + min(height, LARGEST_GRAM) ** 2
    influences = min(settings.max_influences, settings.bone_count)
    state = vertex_count * (8 + 3 * influences + settings.bone_count / 2)
    # A sample has its own positions, in single precision, coefficients and state.
    effort = effort_of(vertex_count, settings)
    state += effort.sample * (height / 2 + dimension + 8 + 3 * influences)
    if effort.moves:
        # Bones move by all products of the sample, and by the vertices of each bone with other bones.
        state += (effort.sample or vertex_count) * (dimension + 2 * columns)
    workers = workers_at_once(height, columns)
    at_work = min(vertex_count, BLOCK_VERTICES * workers)
    blocks = at_work * (height + 4 * columns)
    motions = (4 + workers) * columns * (height + columns)
    needed = coefficients + 8 * int(reduced + state + blocks + motions) + (150 << 20)
    if settings.emphasis:
        # What all vertices that break the limit have, in single precision, and twice while they become more.
        needed += 2 * 4 * height * vertex_count
    if settings.surface:
        # Normals, errors, their copies and goals, in single precision; the mesh's edges; and what threads work on.
        needed += 4 * 4 * height * vertex_count + 1500 * vertex_count
        needed += SURFACE_THREADS * SURFACE_BYTES * surface_frames(frame_count, vertex_count) * vertex_count
    if settings.smoothness:
        needed += min(LARGEST_KEPT, 32 * vertex_count * settings.bone_count) + 800 * vertex_count
    if settings.residual_shapes:
        needed += residual_memory(frame_count, vertex_count, min(settings.residual_shapes, frame_count))
    if jointed:
        needed += joint_memory(frame_count, settings.bone_count)
    return needed


def joint_frames(bone_count: int) -> int:
    """The number of frames that one thread solves at once, with bones on joints."""
    return max(1, min(JOINT_FRAMES, JOINT_BLOCK_BYTES // _factor_bytes(bone_count)))


def joint_blocks_kept(bone_count: int) -> int:
    """How many times so many frames the factors are kept of."""
    return JOINT_KEPT_BYTES // (joint_frames(bone_count) * _factor_bytes(bone_count))


def joint_memory(frame_count: int, bone_count: int) -> int:
    """Bytes that a step of bones on joints needs, at the most."""
    factors = min(frame_count * _factor_bytes(bone_count), JOINT_KEPT_BYTES)
    # Factors, right sides, and what they are made of; and the motion, its products, and trials of it.
    at_work = 7 * JOINT_THREADS * joint_frames(bone_count) * _factor_bytes(bone_count)
    return factors + at_work + 8 * 12 * 12 * frame_count * bone_count


def _factor_bytes(bone_count: int) -> int:
    """Of a frame's turns."""
    return 8 * (3 * bone_count) ** 2


def surface_frames(frame_count: int, vertex_count: int) -> int:
    """The number of frames that one thread smooths errors in."""
    return max(1, min(frame_count, SURFACE_FRAMES, SURFACE_POSITIONS // max(1, vertex_count)))


def workers_at_once(dimension: int, columns: int) -> int:
    """How many blocks of vertices threads may work on: data of ``dimension`` numbers a vertex, ``columns`` of X."""
    numbers = BLOCK_VERTICES * (dimension + 4 * columns) + columns * (columns + dimension)
    return min(max(_WORKERS_BYTES // (8 * numbers), FEWEST_WORKERS), MOST_WORKERS)


def residual_memory(frame_count: int, vertex_count: int, count: int) -> int:
    """Bytes that ``fit_residual_shapes`` needs, at the most."""
    exact = 3 * min(frame_count, RESIDUAL_GRAM) ** 2 + 6 * frame_count * (2 * count + RESIDUAL_OVERSAMPLING)
    return 8 * (exact + 8 * vertex_count * count + 2 * frame_count * count**2) + 4 * RESIDUAL_BLOCK_BYTES
