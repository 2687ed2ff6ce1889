# SPDX-License-Identifier: GPL-3.0-or-later
"""How bones move with sliders: turns and moves that add up, and their best fit to the shapes.

A bone about its pivot c takes a point v to R(τ)(v − c) + c + t. The turn τ is tan(θ/2) times the axis, so that (1, τ)
is the rotation's quaternion up to its length. Of several sliders the τ and the t are summed.
"""

import numpy as np
import scipy.linalg

# Entries of a bone's motion [R − I | t], row after row: those of R − I, and those of t.
_LINEAR = np.array([0, 1, 2, 4, 5, 6, 8, 9, 10])
_MOVE = np.array([3, 7, 11])
_STEPS = 4
_HALVINGS = 4
_GOOD_ENOUGH = 1e-5
_LONGEST_STEP = 0.3


def rotations(turns: np.ndarray) -> np.ndarray:
    """The rotation matrices (..., 3, 3) of ``turns`` (..., 3)."""
    squared = np.einsum("...i,...i->...", turns, turns)[..., None, None]
    crossed = cross_matrices(turns)
    return np.eye(3) + 2.0 * (crossed + crossed @ crossed) / (1.0 + squared)


def turns_of(matrices: np.ndarray) -> np.ndarray:
    """The turns (..., 3) of rotation matrices (..., 3, 3); half a revolution, which has none, becomes a little less."""
    from scipy.spatial.transform import Rotation

    quaternions = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat()
    quaternions *= np.where(quaternions[:, 3:] < 0, -1.0, 1.0)
    turns = quaternions[:, :3] / np.maximum(quaternions[:, 3:], 1e-2)
    return turns.reshape(matrices.shape[:-1])


def cross_matrices(vectors: np.ndarray) -> np.ndarray:
    """(..., 3, 3) that take the cross product with ``vectors`` (..., 3) from the left."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    zero = np.zeros_like(x)
    rows = (zero, -z, y), (z, zero, -x), (-y, x, zero)
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def motions(turns: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """[R − I | t] (..., 3, 4) of ``turns`` and ``moves`` (..., 3): what a bone adds to a point about its pivot."""
    return np.concatenate([rotations(turns) - np.eye(3), moves[..., None]], axis=-1)


def about(turns: np.ndarray, moves: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """The moves (S, P, 3) for pivots that have been moved by ``shifts`` (P, 3): each shape stays as it is."""
    return moves + np.einsum("spij,pj->spi", rotations(turns) - np.eye(3), shifts)


def _slopes(turns: np.ndarray) -> np.ndarray:
    """How the entries of [R − I | t] change with turn and move: (..., 12, 6)."""
    size = 1.0 + np.einsum("...i,...i->...", turns, turns)[..., None, None]
    change = np.zeros((*turns.shape[:-1], 12, 6))
    unit, rotated = np.eye(3), rotations(turns)
    for k in range(3):
        product = turns[..., :, None] * unit[k]
        rise = product + np.swapaxes(product, -1, -2) + cross_matrices(unit[k])
        rise = 2.0 * (rise - turns[..., k, None, None] * (unit + rotated)) / size
        change[..., _LINEAR, k] = rise.reshape(*turns.shape[:-1], 9)
        change[..., _MOVE[k], 3 + k] = 1.0
    return change


def fit_motions(
    normal: np.ndarray, right: np.ndarray, hold: np.ndarray, turns: np.ndarray, moves: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The turns and moves (S, P, 3) of least uᵀ·normal·u − 2·uᵀ·right + Σ hold·‖R − I‖², u the bones' [R − I | t].

    normal (12P, 12P), right (S, 12P), hold (P,). active (S, P): which bones move; all others stay at rest. Gauss–Newton
    in all bones of a shape together, from ``turns`` and ``moves``; a step that does not lower the error is halved.
    Returns turns, moves and the errors (S,).
    """
    held = _held(normal, hold)
    errors = np.zeros(len(turns))
    turns, moves = np.where(active[..., None], turns, 0.0), np.where(active[..., None], moves, 0.0)
    for shape, chosen in enumerate(active):
        if chosen.any():
            rows = (12 * np.flatnonzero(chosen)[:, None] + np.arange(12)).ravel()
            part = held if chosen.all() else held[np.ix_(rows, rows)]
            found = _fit_shape(part, right[shape, rows], turns[shape, chosen], moves[shape, chosen])
            turns[shape, chosen], moves[shape, chosen], errors[shape] = found
    return turns, moves, errors


def _held(normal: np.ndarray, hold: np.ndarray) -> np.ndarray:
    """``normal`` with the terms that hold the bones at rest."""
    held = normal.copy()
    linear = (12 * np.arange(len(hold))[:, None] + _LINEAR).ravel()
    held[linear, linear] += np.repeat(hold, 9)
    return held


def _fit_shape(
    held: np.ndarray, right: np.ndarray, turn: np.ndarray, move: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Turn and move (P, 3) of one shape, and its error."""
    values, error = _error(held, right, turn, move)
    for _ in range(_STEPS):
        slopes = _slopes(turn)
        downhill = np.einsum("pak,pa->pk", slopes, (right - values).reshape(-1, 12)).ravel()
        step = scipy.linalg.solve(_curvature(held, slopes), downhill, assume_a="pos", check_finite=False).reshape(-1, 6)
        largest = np.abs(step[:, :3]).max(initial=0.0)
        step *= min(1.0, _LONGEST_STEP / max(largest, 1e-30))
        before = error
        for _ in range(_HALVINGS):
            tried = _error(held, right, turn + step[:, :3], move + step[:, 3:])
            if tried[1] <= error:
                turn, move, (values, error) = turn + step[:, :3], move + step[:, 3:], tried
                break
            step = 0.5 * step
        if before - error <= _GOOD_ENOUGH * abs(before):
            break
    return turn, move, error


def _curvature(held: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The Gauss–Newton matrix (6P, 6P) of turns and moves; bones that move nothing stay where they are."""
    bone_count = len(slopes)
    reach = (held.reshape(-1, bone_count, 12).transpose(1, 0, 2) @ slopes).transpose(1, 0, 2)
    system = np.einsum("pak,pal->pkl", slopes, reach.reshape(bone_count, 12, -1)).reshape(6 * bone_count, -1)
    diagonal = np.einsum("ii->i", system)
    idle = diagonal.reshape(-1, 6).sum(axis=1) <= 0
    diagonal += 1e-9 * diagonal.max() + np.repeat(np.where(idle, 1.0, 0.0), 6)
    return system


def drop_motions(
    normal: np.ndarray,
    hold: np.ndarray,
    turns: np.ndarray,
    moves: np.ndarray,
    active: np.ndarray,
    importance: np.ndarray,
    allowed: float,
) -> np.ndarray:
    """``active`` (S, P) without the motions that cost least, as long as all together cost at most ``allowed``.

    turns and moves are optimal. importance (S,): the weight of each shape's error. Each shape keeps at least one bone.
    The other bones compensate for a motion p that is dropped, so that it costs pᵀ(C⁻¹)⁻¹p, with C⁻¹ the bone's block of
    the inverse curvature. The inverse without the bone is a change of rank 6, and no vertex is touched.
    """
    held, active = _held(normal, hold), active.copy()
    motion = np.concatenate([turns, moves], axis=2)
    bone_count = active.shape[1]
    inverses, costs = [], np.full(active.shape, np.inf)
    for shape, chosen in enumerate(active):
        system = _curvature(held, _slopes(turns[shape]))
        gone = np.repeat(~chosen, 6)
        system[gone], system[:, gone] = 0.0, 0.0
        system[gone, gone] = 1.0
        inverses.append(np.linalg.inv(system))
        costs[shape] = importance[shape] * _costs(inverses[-1], motion[shape], chosen)
    while (cost := costs.min()) <= allowed:
        allowed -= cost
        shape, bone = divmod(int(np.argmin(costs)), bone_count)
        inverse, rows = inverses[shape], slice(6 * bone, 6 * bone + 6)
        across = inverse[:, rows] @ np.linalg.inv(inverse[rows, rows])
        motion[shape] -= (across @ motion[shape, bone]).reshape(bone_count, 6)
        inverse -= across @ inverse[rows]
        active[shape, bone] = False
        costs[shape] = importance[shape] * _costs(inverse, motion[shape], active[shape])
    return active


def _costs(inverse: np.ndarray, motion: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """(P,) by how much the error grows without each bone; infinite for those that are not ``chosen``, and the last."""
    blocks = inverse.reshape(len(motion), 6, len(motion), 6)[chosen, :, chosen]
    costs = np.full(len(motion), np.inf)
    if chosen.sum() > 1:
        costs[chosen] = np.einsum("pk,pk->p", motion[chosen], np.linalg.solve(blocks, motion[chosen, :, None])[..., 0])
    return costs


def _error(held: np.ndarray, right: np.ndarray, turn: np.ndarray, move: np.ndarray) -> tuple[np.ndarray, float]:
    """held·u (12P,) and the error of one shape."""
    entries = motions(turn, move).ravel()
    values = held @ entries
    return values, float(entries @ (values - 2.0 * right))
