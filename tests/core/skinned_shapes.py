# SPDX-License-Identifier: GPL-3.0-or-later
"""Small skinned meshes, and the plain formula for centres of rotation that the real code is measured against."""

import numpy as np

NO_TRIANGLES = np.zeros((0, 3), int)


def cuboid(columns=60, rows=12, length=6.0):
    """A closed bar along x, 1 × 1 across: rest (N, 3) and triangles (T, 3), outside out."""
    side = np.linspace(-0.5, 0.5, rows + 1)[:-1]
    edge = np.full(rows, 0.5)
    ring = np.concatenate(
        [np.column_stack(pair) for pair in ((side, -edge), (edge, side), (-side, edge), (-edge, -side))]
    )
    count = len(ring)
    rest = np.concatenate([np.column_stack([np.full(count, x), ring]) for x in np.linspace(0, length, columns + 1)])
    index = np.arange(len(rest)).reshape(-1, count)
    a, b = index[:-1], index[1:]
    next_a, next_b = np.roll(a, -1, axis=1), np.roll(b, -1, axis=1)
    first, last = len(rest), len(rest) + 1
    ends = [np.column_stack([np.full(count, first), np.roll(index[0], -1), index[0]])]
    ends.append(np.column_stack([np.full(count, last), index[-1], np.roll(index[-1], -1)]))
    sides = [np.stack(corners, axis=-1).reshape(-1, 3) for corners in ((a, next_b, b), (a, next_a, next_b))]
    return np.vstack([rest, [[0, 0, 0], [length, 0, 0]]]), np.concatenate(sides + ends)


def chain_weights(x, joints, reach=1.0):
    """Bones (N, P) and weights (N, P) of a chain along x: smooth steps of width 2 · reach at each of the joints."""
    steps = np.clip((x[:, None] - np.asarray(joints, float) + reach) / (2 * reach), 0, 1)
    steps = np.column_stack([np.ones(len(x)), steps**2 * (3 - 2 * steps), np.zeros(len(x))])
    weights = -np.diff(np.cumprod(steps, axis=1), axis=1)
    return np.tile(np.arange(weights.shape[1], dtype=np.int32), (len(x), 1)), weights


def volume(points, triangles):
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


def about(rotation, joint):
    """(3, 4) rotation about a point."""
    joint = np.asarray(joint, dtype=float)
    return np.column_stack([rotation, joint - rotation @ joint])


def dense(bones, weights, bone_count=None):
    """(N, P) with rows that sum to 1."""
    result = np.zeros((len(bones), bone_count or int(np.max(bones)) + 1))
    np.add.at(result, (np.arange(len(bones))[:, None], bones), weights)
    return result / result.sum(axis=1, keepdims=True)


def split_triangles(points, weights, epsilon):
    """(L, 3, 3) corners and (L, 3, P) corner weights of one triangle (3, 3), (3, P), cut until no edge is longer."""
    lengths = np.sum((weights - np.roll(weights, -1, axis=0)) ** 2, axis=1)
    # The first among values that are equal except for rounding.
    edge = int(np.argmax(lengths >= lengths.max() * (1 - 1e-9)))
    if epsilon == 0 or lengths.max() <= epsilon**2 * (1 + 1e-9):
        return [points], [weights]
    i, j, k = edge, (edge + 1) % 3, (edge + 2) % 3
    found = [], []
    for keep in (i, j):
        halves = []
        for values in (points, weights):
            middle = (values[i] + values[j]) / 2
            order = [values[i], middle, values[k]] if keep == i else [middle, values[j], values[k]]
            halves.append(np.array(order))
        for parts, more in zip(found, split_triangles(*halves, epsilon), strict=True):
            parts += more
    return found


def naive_centers(rest, triangles, weights, sigma=0.1, epsilon=0.0, vertices=None):
    """Equation 10 of the evaluation as published, over all bones j ≠ k; NaN where nothing is similar.

    rest (N, 3), triangles (T, 3), weights (N, P) dense; centres (n, 3) of ``vertices``, all if None.
    """
    parts = [split_triangles(rest[triangle], weights[triangle], epsilon) for triangle in triangles]
    corners = np.concatenate([np.array(part[0]) for part in parts])
    corner_weights = np.concatenate([np.array(part[1]) for part in parts])
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    return weighted_centers(corners.mean(axis=1), areas, corner_weights.mean(axis=1), weights, sigma, vertices)


def weighted_centers(middles, areas, face_weights, weights, sigma, vertices=None):
    """As ``naive_centers``, of faces given by middles (L, 3), areas (L,) and weights (L, P)."""
    result = []
    for p in weights if vertices is None else weights[vertices]:
        similarity = np.zeros(len(areas))
        for j in np.flatnonzero(p):
            for k in np.flatnonzero(p):
                if j != k:
                    t_j, t_k = face_weights[:, j], face_weights[:, k]
                    similarity += p[j] * p[k] * t_j * t_k * np.exp(-(((p[j] * t_k - p[k] * t_j) / sigma) ** 2))
        total = similarity @ areas
        result.append((similarity * areas) @ middles / total if total > 0 else np.full(3, np.nan))
    return np.array(result)
