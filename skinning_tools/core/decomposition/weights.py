# SPDX-License-Identifier: GPL-3.0-or-later
"""Convex weights that come closest to given points (Kavan et al. 2010, section 4.4).

A vertex sees its bones as points φ_1 … φ_m in d dimensions, the predictions of the bones alone, and its data as a point
y. All that its weights depend on are the inner products gram[i, j] = φ_i·φ_j and data[i] = φ_i·y. Every function works
on many vertices at once, with the vertices along the last axis.
"""

from itertools import combinations

import numpy as np

# A tetrahedron or triangle whose volume, squared and relative to its edges, falls below this is flat: one of its bones
# is redundant, and the best point lies on a smaller face as well.
_FLAT = 1e-10
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
    """As ``fit_convex`` for at most four corners: the best among the closest points of all faces.

    The closest point of a face's plane takes part where it lies inside the face; edges are clipped to their ends, so
    that corners need no case of their own. A flat face is left out: its smaller faces hold the same points.
    """
    size, count = data.shape
    if size == 1:
        return np.ones((1, count)), gram[0, 0] - 2.0 * data[0]
    weights = np.zeros((size, count))
    cost = np.full(count, np.inf)
    for a, b in combinations(range(size), 2):
        length, along = _edges(gram, data, a, (b,))
        length, along = length[0, 0], along[0]
        step = np.clip(along / np.where(length > 0, length, 1.0), 0.0, 1.0)
        decrease = step * (2.0 * along - step * length)
        _keep_better(weights, cost, gram[a, a] - 2.0 * data[a] - decrease, True, {a: 1.0 - step, b: step})
    for a, b, c in combinations(range(size), 3):
        edges, along = _edges(gram, data, a, (b, c))
        (u, v), solid = solve_small(edges, along, _FLAT)
        decrease = u * along[0] + v * along[1]
        first = 1.0 - u - v
        inside = solid & (u >= 0) & (v >= 0) & (first >= 0)
        _keep_better(weights, cost, gram[a, a] - 2.0 * data[a] - decrease, inside, {a: first, b: u, c: v})
    if size == 4:
        edges, along = _edges(gram, data, 0, (1, 2, 3))
        (u, v, w), solid = solve_small(edges, along, _FLAT)
        decrease = u * along[0] + v * along[1] + w * along[2]
        first = 1.0 - u - v - w
        inside = solid & (u >= 0) & (v >= 0) & (w >= 0) & (first >= 0)
        _keep_better(weights, cost, gram[0, 0] - 2.0 * data[0] - decrease, inside, {0: first, 1: u, 2: v, 3: w})
    return weights, cost


def _edges(gram: np.ndarray, data: np.ndarray, origin: int, others: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Inner products of the edges from one corner to others, and of these edges with the data seen from that corner."""
    size = len(others)
    products = np.empty((size, size, data.shape[1]))
    along = np.empty((size, data.shape[1]))
    for i, a in enumerate(others):
        along[i] = data[a] - data[origin] - gram[a, origin] + gram[origin, origin]
        for j, b in enumerate(others[: i + 1]):
            products[i, j] = gram[a, b] - gram[a, origin] - gram[b, origin] + gram[origin, origin]
            products[j, i] = products[i, j]
    return products, along


def _keep_better(
    weights: np.ndarray,
    cost: np.ndarray,
    proposed: np.ndarray,
    allowed: bool | np.ndarray,
    values: dict[int, np.ndarray],
) -> None:
    better = (proposed < cost) & allowed
    np.copyto(cost, proposed, where=better)
    for corner, row in enumerate(weights):
        np.copyto(row, values.get(corner, 0.0), where=better)


def solve_small(matrices: np.ndarray, right: np.ndarray, flat: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Solve symmetric 2 × 2 or 3 × 3 systems, matrices (m, m, n) and right (m, n), by cofactors.

    Returns the unknowns, m arrays (n,), and where the determinant exceeds ``flat`` times the diagonal's product and
    zero: where rounding makes a length negative, the product is.
    """
    if len(matrices) == 2:
        (a, b), (_, c) = matrices
        determinant = a * c - b * b
        solid = determinant > np.maximum(flat * a * c, 0.0)
        inverse = 1.0 / np.where(solid, determinant, 1.0)
        return [(c * right[0] - b * right[1]) * inverse, (a * right[1] - b * right[0]) * inverse], solid
    (a, b, c), (_, d, e), (_, _, f) = matrices
    first = (d * f - e * e, c * e - b * f, b * e - c * d)
    determinant = a * first[0] + b * first[1] + c * first[2]
    solid = determinant > np.maximum(flat * a * d * f, 0.0)
    inverse = 1.0 / np.where(solid, determinant, 1.0)
    second = (a * f - c * c, b * c - a * e)
    third = a * d - b * b
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
