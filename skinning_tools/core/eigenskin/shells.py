# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses spread over the range of a ball joint, for examples: evenly on two shells of angles."""

import numpy as np

# The angles of the shells, as shares of the range.
_OUTER, _INNER = 0.95, 0.5

_GOLDEN = np.pi * (3 - np.sqrt(5))

# The directions repel each other in this many steps; the first step moves them this far.
_STEPS = 500
_FIRST_STEP = 0.1


def even_directions(count: int, dimension: int) -> np.ndarray:
    """(count, dimension) unit vectors, evenly spread over the circle or, for dimension 3, the sphere.

    On the sphere each repels all others, as charges do. Twelve of them are an icosahedron's corners.
    """
    if dimension == 2:
        turn = 2 * np.pi * np.arange(count) / count
        return np.column_stack([np.cos(turn), np.sin(turn)])
    height = 1 - (2 * np.arange(count) + 1) / count
    turn, radius = _GOLDEN * np.arange(count), np.sqrt(1 - height**2)
    directions = np.column_stack([radius * np.cos(turn), radius * np.sin(turn), height])
    for step in range(_STEPS if count > 1 else 0):
        apart = directions[:, None] - directions
        cubes = (apart**2).sum(axis=-1) ** 1.5 + np.eye(count)
        forces = (apart / cubes[..., None]).sum(axis=1)
        forces -= (forces * directions).sum(axis=1, keepdims=True) * directions
        pace = _FIRST_STEP * (1 - step / _STEPS) / max(np.linalg.norm(forces, axis=1).max(), 1.0)
        directions += pace * forces
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions


def shell_turns(count: int, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """(M, 3) rotation vectors, radians, of at most ``count`` poses all over the range of a joint, each near to the one
    before.

    lowest ≤ 0 and highest ≥ 0 (3,): radians about each axis; where both are 0 the joint does not turn about it. At
    least two axes do. Between the axes the range is an ellipsoid.
    """
    free = np.flatnonzero((lowest < 0) | (highest > 0))
    turns = []
    for share, number in ((_OUTER, count - count // 2), (_INNER, count // 2)):
        directions = even_directions(number, len(free))
        limits = np.where(directions < 0, -lowest[free], highest[free])
        # A direction in which an axis has no range is left out of the pose.
        directions = np.where(limits > 0, directions, 0.0)
        shares = np.linalg.norm(directions / np.where(limits > 0, limits, 1.0), axis=1)
        found = np.zeros((number, 3))
        found[:, free] = share * directions / np.where(shares > 0, shares, 1.0)[:, None]
        turns.append(found[shares > 0])
    left = np.concatenate(turns)
    here, ordered = np.zeros(3), []
    while len(left):
        nearest = int(np.argmin(np.linalg.norm(left - here, axis=1)))
        here = left[nearest]
        ordered.append(here)
        left = np.delete(left, nearest, axis=0)
    return np.array(ordered)
