# SPDX-License-Identifier: GPL-3.0-or-later
"""Convex weights that come closest to given points (Kavan et al. 2010, section 4.4).

A vertex sees its bones as points φ_1 … φ_m in d dimensions, the predictions of the bones alone, and its data as a point
y. All that its weights depend on are the inner products gram[i, j] = φ_i·φ_j and data[i] = φ_i·y. Every function works
on many vertices at once, with the vertices along the last axis.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

# A tetrahedron or triangle whose volume, squared and relative to its edges, falls below this is flat: one of its bones
# is redundant, and the best point lies on a smaller face as well.
_FLAT = 1e-10
# A corner is far from the others if its square exceeds this multiple of the smallest one.
_FAR = 1e4
_GENERAL_TOLERANCE = 1e-10
_DAMPING = 1e-12


def fit_convex(gram: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (m, n), convex, that minimize ‖Σ w_i φ_i − y‖² for gram (m, m, n) and data (m, n), and that minimum
    less ‖y‖² (n,).

    Up to four influences: the closest point on a tetrahedron in its three-dimensional subspace. More:
    ``fit_convex_general``.
    """
    if len(gram) <= 4:
        return closest_on_simplex(gram, data)
    return fit_convex_general(gram, data)


def closest_on_simplex(gram: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As ``fit_convex`` for at most four corners: the best among the closest points of all faces, the largest first.

    Where the closest point of a face's plane lies outside the face, smaller faces hold the face's own closest point.
    They are tried if the plane's is closer than the best so far. Most vertices end with the largest face.
    """
    everyone, squares = np.arange(data.shape[1]), np.einsum("iin->in", gram)
    costs = squares - 2.0 * data
    nearest = np.argmin(costs, axis=0)
    weights, cost = np.zeros(data.shape), costs[nearest, everyone]
    weights[nearest, everyone] = 1.0
    _try_faces(gram, data, len(data), weights, cost)
    # Edges begin at the first corner: where it has run away, the others are the same from there but for rounding.
    far = np.flatnonzero(squares[0] > _FAR * squares.min(axis=0))
    if len(far):
        order = np.argsort(squares[:, far], axis=0)
        few = gram[order[:, None], order[None], far], data[order, far]
        weights[order, far], cost[far] = closest_on_simplex(*few)
    return weights, cost


def _try_faces(gram: np.ndarray, data: np.ndarray, corners: int, weights: np.ndarray, cost: np.ndarray) -> None:
    """Better ``weights`` (m, n) and their ``cost`` (n,), in place, where faces with up to so many corners have them."""
    if corners < 2:
        return
    size, count = data.shape
    bound = np.full(count, np.inf)
    for origin in range(size + 1 - corners):
        products, along = _edges(gram, data, origin)
        for edges in combinations(range(len(along)), corners - 1):
            system = [[products[i][j] for j in edges] for i in edges]
            values, solid = solve_small(system, [along[i] for i in edges], _FLAT)
            first, reached = np.ones(count), gram[origin, origin] - 2.0 * data[origin]
            inside, shares = solid.copy(), {origin: first}
            for edge, value in zip(edges, values, strict=True):
                first -= value
                reached -= value * along[edge]
                inside &= value >= 0
                shares[origin + 1 + edge] = value
            inside &= first >= 0
            # The smaller faces of a flat one hold the same points.
            reached[~solid] = -np.inf
            better = inside & (reached < cost)
            np.copyto(cost, reached, where=better)
            for corner, row in enumerate(weights):
                np.copyto(row, shares.get(corner, 0.0), where=better)
            np.copyto(bound, reached, where=~inside & (reached < bound))
    left = np.flatnonzero(bound < cost)
    if len(left):
        few = weights[:, left], cost[left]
        _try_faces(gram[:, :, left], data[:, left], corners - 1, *few)
        weights[:, left], cost[left] = few


def _edges(gram: np.ndarray, data: np.ndarray, origin: int) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """Inner products of the edges from one corner to those after it, and of these edges with the data seen from it."""
    others = range(origin + 1, len(data))
    from_origin, at_origin = gram[origin], gram[origin, origin]
    products: list[list[np.ndarray]] = [[] for _ in others]
    for i, a in enumerate(others):
        for j, b in enumerate(others[: i + 1]):
            products[i].append(gram[a, b] - from_origin[a] - from_origin[b] + at_origin)
            if j < i:
                products[j].append(products[i][j])
    return products, [data[a] - data[origin] - from_origin[a] + at_origin for a in others]


def solve_small(
    matrices: np.ndarray | Sequence[Sequence[np.ndarray]], right: np.ndarray | Sequence[np.ndarray], flat: float
) -> tuple[list[np.ndarray], np.ndarray]:
    """Solve symmetric systems of up to three unknowns, matrices (m, m, n) and right (m, n), by cofactors.

    Returns the unknowns, m arrays (n,), and where the system is positive definite: all lengths and leading minors above
    zero, and minors above ``flat`` times their diagonals' products. Of edges as short as rounding, the determinant may
    be positive all the same.
    """
    if len(matrices) == 1:
        solid = matrices[0][0] > 0
        return [right[0] / np.where(solid, matrices[0][0], 1.0)], solid
    if len(matrices) == 2:
        (a, b), (_, c) = matrices
        determinant = a * c - b * b
        solid = (determinant > np.maximum(flat * a * c, 0.0)) & (a > 0)
        inverse = 1.0 / np.where(solid, determinant, 1.0)
        return [(c * right[0] - b * right[1]) * inverse, (a * right[1] - b * right[0]) * inverse], solid
    (a, b, c), (_, d, e), (_, _, f) = matrices
    first = (d * f - e * e, c * e - b * f, b * e - c * d)
    determinant = a * first[0] + b * first[1] + c * first[2]
    second = (a * f - c * c, b * c - a * e)
    third = a * d - b * b
    solid = (a > 0) & (f > 0) & (third > np.maximum(flat * a * d, 0.0)) & (determinant > flat * a * d * f)
    inverse = 1.0 / np.where(solid, determinant, 1.0)
    x, y, z = right
    return [
        (first[0] * x + first[1] * y + first[2] * z) * inverse,
        (first[1] * x + second[0] * y + second[1] * z) * inverse,
        (first[2] * x + second[1] * y + third * z) * inverse,
    ], solid


def descend(gram: np.ndarray, data: np.ndarray, weights: np.ndarray, steps: int) -> np.ndarray:
    """Improve convex ``weights`` (m, n) in place by moving weight between the worst pair of bones, ``steps`` times.

    Cheap and good at finding out which of many bones matter; not exact.
    """
    size, count = data.shape
    vertices = np.arange(count)
    gradient = np.einsum("ijn,jn->in", gram, weights) - data
    move = np.zeros(data.shape)
    for _ in range(steps):
        up = np.argmin(gradient, axis=0)
        down = np.argmax(np.where(weights > 0, gradient, -np.inf), axis=0)
        # Places in the flat arrays: a third of the time of an index for each axis.
        at_up, at_down = up * count + vertices, down * count + vertices
        gain = gradient.take(at_down) - gradient.take(at_up)
        across = gram.take(up * (size * count) + at_down)
        length = gram.take(up * (size * count) + at_up) - 2.0 * across + gram.take(down * (size * count) + at_down)
        step = np.minimum(gain / np.where(length > 0, length, np.inf), weights.take(at_down))
        move[...] = 0.0
        flat = move.reshape(-1)
        flat[at_up] = step
        flat[at_down] -= step
        weights += move
        gradient += np.einsum("ijn,jn->in", gram, move)
    return weights


def fit_convex_general(gram: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As ``fit_convex`` for any number of influences: a primal active-set method on all vertices at once.

    Each round solves the equality-constrained problem over the bones in use. A negative weight drops the first bone
    that reaches zero on the way there; otherwise the bone with the steepest descent joins, until none has any.
    """
    size, count = data.shape
    everyone = np.arange(count)
    weights = np.zeros((size, count))
    weights[np.argmin(np.einsum("iin->in", gram) - 2.0 * data, axis=0), everyone] = 1.0
    used = weights > 0
    scale = np.maximum(np.einsum("iin->n", gram) / size, np.finfo(float).tiny)
    unfinished = everyone
    for _ in range(6 * size):
        if not len(unfinished):
            break
        g, y, s = gram[:, :, unfinished], data[:, unfinished], scale[unfinished]
        w, u = weights[:, unfinished], used[:, unfinished]
        target = _equality_solution(g, y, u, w)
        blocked = u & (target < 0)
        ratio = np.where(blocked, w / np.where(blocked, w - target, 1.0), np.inf)
        limit = np.minimum(ratio.min(axis=0), 1.0)
        w = w + limit * (target - w)
        leaving = blocked & (ratio <= limit)
        w[leaving] = 0.0
        u &= ~leaving
        gradient = np.einsum("ijn,jn->in", g, w) - y
        descent = np.where(u, 0.0, np.einsum("in,in->n", gradient, w) - gradient)
        entering = np.argmax(descent, axis=0)
        rows = np.arange(len(unfinished))
        settled = ~leaving.any(axis=0)
        grows = settled & (descent[entering, rows] > _GENERAL_TOLERANCE * s)
        u[entering[grows], rows[grows]] = True
        weights[:, unfinished], used[:, unfinished] = w, u
        unfinished = unfinished[~settled | grows]
    weights = np.maximum(weights, 0.0)
    weights /= weights.sum(axis=0)
    cost = np.einsum("in,ijn,jn->n", weights, gram, weights) - 2.0 * np.einsum("in,in->n", weights, data)
    return weights, cost


def _equality_solution(gram: np.ndarray, data: np.ndarray, used: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Minimize over the used bones with weights summing to one, their signs free: (m, n), zero where unused.

    Solved for the edges from each vertex's strongest bone, by elimination on all vertices at once (thousands of tiny
    calls of LAPACK from several threads would wait for each other most of the time).
    """
    size, count = data.shape
    rows = np.arange(count)
    base = np.argmax(weights, axis=0)
    from_base = gram[base, :, rows].T
    corner = gram[base, base, rows]
    free = used.copy()
    free[base, rows] = False
    system = np.empty((size, size + 1, count))
    system[:, :size] = (gram - from_base[:, None] - from_base[None] + corner) * (free[:, None] & free[None])
    system[:, size] = (data - data[base, rows] - from_base + corner) * free
    diagonal = np.arange(size)
    length = system[diagonal, diagonal].max(axis=0)
    # Slight damping decides between bones with equal predictions.
    system[diagonal, diagonal] += np.where(free, _DAMPING * length + np.finfo(float).tiny, 1.0)
    for pivot in range(size):
        row = system[pivot] / system[pivot, pivot]
        system -= system[:, pivot, None] * row
        system[pivot] = row
    solution = system[:, size] * free
    solution[base, rows] = 1.0 - solution.sum(axis=0)
    return solution
