# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the solution starts from: the general solver with the shapes as frames, which chooses bones on a sample.

Of a face that is symmetric, on its left half. A bone there becomes two, one on either side, or one in the middle that
is its own mirror image.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from ..animation import Animation
from ..decomposition import Settings as StartSettings
from ..decomposition import decompose
from ..progress import Progress
from ..solve_effort import Effort
from .mirror import POLAR, Mirror, find_mirror
from .motion import rotations, turns_of
from .state import State
from .types import Settings, Shapes

# Vertices that move by less than this share of the largest motion do not tell how large the face is.
_MOVING = 0.02
# How far the start treats large and small shapes alike, from 0 to 1. Shapes below a share of the largest stay small.
_BALANCE, _SMALLEST = 0.3, 0.01
# Of the bones of a symmetric face, those of its left half with the middle; and the balance there, where less leaves
# pupils without bones.
_HALF, _HALF_BALANCE = 0.675, 0.45
# The vertices of a sample for each bone, and at least; and the share of all above which there is none.
_SAMPLE_PER_BONE, _LEAST_SAMPLE, _MOST_SAMPLED = 100, 2000, 0.5
# By quality: the most moves of bones that are tried, sweeps over the sample, and over all vertices after it.
_EFFORTS = {"DRAFT": (0, 20, 2), "STANDARD": (10, 24, 2)}
# At least so many bones for each move; and influences while bones are chosen, which take time by their square: more
# join in the sweeps that follow.
_BONES_PER_MOVE, _START_INFLUENCES = 4, 4


@dataclass(frozen=True)
class Frame:
    """Of the shapes' units, solver units: center (3,) and size, which become 0 and 1."""

    center: np.ndarray
    size: float


def started(shapes: Shapes, settings: Settings, progress: Progress) -> tuple[State, Frame]:
    """Bones and weights to start from, in solver units."""
    center, size = face_size(shapes)
    found = find_mirror(shapes.rest, shapes.deltas) if settings.symmetric else None
    half = max(round(_HALF * settings.bone_count), (settings.bone_count + 1) // 2)
    mirror, plane = found if found is not None else (None, 0.0)
    if mirror is not None and len(mirror.solved) < half:
        mirror = None
    if mirror is not None:
        center = np.array([plane, *center[1:]])
    rest = (shapes.rest - center) / size
    deltas = shapes.deltas / size
    if mirror is not None:
        rest, deltas = mirror.points(rest), mirror.shapes(deltas)
    gains = _gains(deltas, _BALANCE if mirror is None else _HALF_BALANCE)[:, None, None]
    frames = np.concatenate([rest[None], rest + gains * deltas]).astype(np.float32)
    solver = StartSettings(
        bone_count=settings.bone_count,
        bone_kind="RIGID",
        max_influences=min(settings.max_influences, _START_INFLUENCES),
        optimize_rest_pose=False,
    )
    triangles = shapes.triangles
    if mirror is not None:
        solver = replace(solver, bone_count=half)
        frames, triangles = frames[:, mirror.solved], _between(triangles, mirror.solved, len(rest))
    solver = replace(solver, effort=_effort(frames.shape[1], solver.bone_count, settings.quality))
    solution = decompose(Animation(frames, triangles, name=shapes.name), solver, progress)
    # The first frame is the neutral, where no bone moves.
    transforms, bones, weights = solution.transforms[1:], solution.bones, solution.weights
    if mirror is not None:
        mirror, transforms, bones, weights = _doubled(mirror, rest, transforms, bones, weights, settings.bone_count)
    state = State(
        points=np.concatenate([rest, np.ones((len(rest), 1))], axis=1),
        target=np.ascontiguousarray(deltas.transpose(1, 2, 0), dtype=np.float64),
        bones=_wide(bones, min(settings.max_influences, settings.bone_count)),
        weights=_wide(weights, min(settings.max_influences, settings.bone_count), filled=0.0),
        pivots=np.zeros((settings.bone_count, 3)),
        turns=turns_of(transforms[..., :3]),
        moves=transforms[..., 3].copy(),
        active=np.ones(transforms.shape[:2], bool),
        importance=gains.ravel() ** 2,
        mirror=mirror,
    )
    if mirror is not None:
        state.make_symmetric()
    state.center_pivots()
    state.turns /= gains
    state.moves /= gains
    return state, Frame(center, size)


def _effort(vertex_count: int, bone_count: int, quality: str) -> Effort:
    """Which bone goes where is decided on a sample of the vertices: several starts, then moves of bones."""
    sample = max(_SAMPLE_PER_BONE * bone_count, _LEAST_SAMPLE)
    if sample > _MOST_SAMPLED * vertex_count:
        sample = 0
    moves, sweeps, last = _EFFORTS[quality]
    moves = min(moves, bone_count // _BONES_PER_MOVE)
    return Effort(last, 1, sample, sweeps, moves) if sample else Effort(sweeps + last, 1, moves=moves)


def face_size(shapes: Shapes) -> tuple[np.ndarray, float]:
    """The middle (3,) and the diagonal of the box around what the shapes move: a body below the face counts not."""
    moving = shapes.rest[moves_visibly(shapes.deltas.transpose(1, 2, 0))]
    low, high = moving.min(axis=0), moving.max(axis=0)
    size = float(np.linalg.norm(high - low))
    if size <= 0:
        # A single vertex moves: as large as it goes far.
        size = float(np.abs(shapes.deltas).max())
    return 0.5 * (low + high), size


def moves_visibly(deltas: np.ndarray) -> np.ndarray:
    """(N,) bool, of (N, 3, S): which vertices some shape moves by a share of the largest motion that counts."""
    motion = np.abs(deltas).max(axis=(1, 2))
    return motion > _MOVING * motion.max()


def _gains(deltas: np.ndarray, balance: float) -> np.ndarray:
    """(S,) by which shapes are enlarged for the start: small ones get bones of their own, too, as a pupil's."""
    norms = np.linalg.norm(deltas.reshape(len(deltas), -1), axis=1)
    gains = (norms.max() / np.maximum(norms, _SMALLEST * norms.max())) ** balance
    return gains * np.sqrt(np.sum(norms**2) / np.sum((gains * norms) ** 2))


def _between(triangles: np.ndarray, chosen: np.ndarray, count: int) -> np.ndarray:
    """The triangles between ``chosen`` vertices, by their places among them."""
    places = np.full(count, -1, np.int32)
    places[chosen] = np.arange(len(chosen))
    found = places[triangles]
    return found[(found >= 0).all(axis=1)]


def _wide(slots: np.ndarray, influences: int, filled: float | None = None) -> np.ndarray:
    """slots (N, K) with ``influences`` columns: more repeat the first, or are ``filled``."""
    more = np.repeat(slots[:, :1], influences - slots.shape[1], axis=1)
    return np.concatenate([slots, more if filled is None else np.full_like(more, filled)], axis=1)


def _doubled(
    mirror: Mirror, rest: np.ndarray, transforms: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int
) -> tuple[Mirror, np.ndarray, np.ndarray, np.ndarray]:
    """The mirror with its bones, transforms (S, P, 3, 4), bones and weights (N, K) of the whole face, from those of its
    ``solved`` vertices. As many bones become their own mirror image as leaves ``bone_count``: those that are it most.
    """
    own_count = transforms.shape[1]
    signs = np.outer(POLAR, [*POLAR, 1.0])
    images = transforms[mirror.sliders] * signs
    points = np.concatenate([rest[mirror.solved], np.ones((len(mirror.solved), 1))], axis=1)
    costs = np.zeros(own_count)
    for bone in range(own_count):
        share = np.where(bones == bone, weights, 0.0).sum(axis=1)
        reached = share > 0
        away = (share[reached, None] * points[reached]) @ (images - transforms)[:, bone].transpose(0, 2, 1)
        costs[bone] = np.square(away).sum()
    middle = np.argsort(costs, kind="stable")[: 2 * own_count - bone_count]
    transforms = transforms.copy()
    transforms[:, middle, :, 3] = 0.5 * (transforms + images)[:, middle, :, 3]
    turns = turns_of(transforms[:, middle, :, :3])
    turns = 0.5 * (turns - POLAR * turns[mirror.sliders])
    transforms[:, middle, :, :3] = rotations(turns)
    paired = np.setdiff1d(np.arange(own_count), middle)
    partners = np.arange(bone_count)
    partners[paired], partners[own_count:] = np.arange(own_count, bone_count), paired
    transforms = np.concatenate([transforms, (transforms[mirror.sliders] * signs)[:, paired]], axis=1)
    all_bones, all_weights = np.zeros((len(rest), bones.shape[1]), np.int32), np.zeros((len(rest), weights.shape[1]))
    all_bones[mirror.solved], all_weights[mirror.solved] = bones, weights
    mirror = mirror.with_bones(partners)
    # Vertices without a partner on the right do as what is nearest their mirror image.
    alone = np.flatnonzero(mirror.alone & (rest[:, 0] < 0))
    others = np.setdiff1d(mirror.solved, alone)
    if len(alone) and len(others):
        nearest = others[cKDTree(rest[others]).query(rest[alone] * POLAR)[1]]
        all_bones[alone], all_weights[alone] = partners[all_bones[nearest]], all_weights[nearest]
    mirror.follow(mirror.solved, all_bones, all_weights, None)
    return mirror, transforms, all_bones, all_weights
