# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinned meshes of a given size for benchmarks, and the human rig of ../shared/data."""

import numpy as np
import scipy.sparse
from human_rig import read_human  # in demos
from scipy.spatial import ConvexHull, cKDTree

BONES, INFLUENCES = 79, 4


def human():
    """Rest, triangles, bones and weights of the human rig."""
    found = read_human()
    return found.rest, found.triangles, found.bones, found.weights


def creature(shape: str, size: int):
    """A smooth mesh of about ``size`` vertices, each skinned to its four nearest joints."""
    random = np.random.default_rng(0)
    if shape == "ball":
        rest = spiral(size)
        triangles = ConvexHull(rest).simplices
        joints = random.normal(size=(BONES, 3))
        joints *= 0.9 * random.random((BONES, 1)) ** (1 / 3) / np.linalg.norm(joints, axis=1, keepdims=True)
    else:
        whole = 11_200 if shape == "raptor's size" else size
        rest, triangles = tube(whole)
        heights = np.linspace(0, 20, BONES)
        joints = np.stack([2 * np.sin(heights / 3), 0 * heights, heights], axis=1)
        if shape == "raptor's size":
            rest, triangles = with_seams(rest, triangles, size)
    distances, bones = cKDTree(joints).query(rest, INFLUENCES)
    weights = 1 / (distances + 1e-3) ** 4
    return rest, triangles, bones, weights / weights.sum(axis=1, keepdims=True)


def spiral(count: int) -> np.ndarray:
    """(count, 3) points evenly on the unit ball."""
    steps = np.arange(count) + 0.5
    heights, angles = 1 - 2 * steps / count, np.pi * (1 + np.sqrt(5)) * steps
    radii = np.sqrt(1 - heights**2)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles), heights], axis=1)


def tube(count: int):
    """Rest and triangles of a bent tube of about ``count`` vertices."""
    columns = int(np.sqrt(count / 4))
    rows = count // columns
    along, angle = np.meshgrid(np.linspace(0, 20, rows), 2 * np.pi * np.arange(columns) / columns, indexing="ij")
    rest = np.stack([np.cos(angle) + 2 * np.sin(along / 3), np.sin(angle), along], axis=-1).reshape(-1, 3)
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b = index[:-1], index[1:]
    next_a, next_b = np.roll(a, -1, axis=1), np.roll(b, -1, axis=1)
    triangles = [np.stack(corners, axis=-1).reshape(-1, 3) for corners in ((a, next_b, b), (a, next_a, next_b))]
    return rest, np.concatenate(triangles)


def subdivided(frames: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """frames (F, N, 3) float32 and triangles (T, 3) after one step of Loop 1987, with the weights of Warren 1995."""
    count = frames.shape[1]
    sides = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    ends, places = np.unique(sides, axis=0, return_inverse=True)
    places = places.reshape(3, -1)
    inner = np.bincount(places.ravel()) == 2
    rows = np.arange(len(ends))
    both = _matrix(rows.repeat(2), ends.ravel(), (len(ends), count))
    opposite = _matrix(places.ravel(), triangles[:, [2, 0, 1]].T.ravel(), (len(ends), count))
    middles = scipy.sparse.diags(np.where(inner, 3 / 8, 1 / 2)) @ both + scipy.sparse.diags(inner / 8) @ opposite
    around = _matrix(ends.T.ravel(), ends[:, ::-1].T.ravel(), (count, count))
    degrees = np.asarray(around.sum(axis=1)).ravel()
    shares = np.where(degrees > 0, 3 / 8, 0.0)
    shares[ends[~inner]] = 0.0
    corners = scipy.sparse.diags(1 - shares) + scipy.sparse.diags(shares / np.maximum(degrees, 1)) @ around
    every = scipy.sparse.vstack([corners, middles]).tocsr().astype(np.float32)
    (a, b, c), (ab, bc, ca) = triangles.T, count + places
    quarters = (a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)
    return np.stack([every @ each for each in frames]), np.concatenate([np.stack(each, axis=1) for each in quarters])


def _matrix(rows, columns, shape) -> scipy.sparse.csr_matrix:
    return scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def with_seams(rest: np.ndarray, triangles: np.ndarray, count: int):
    """The same surface with ``count`` vertices: corners of its first faces get separate vertices."""
    triangles = triangles.copy()
    corners = triangles.reshape(-1)[: count - len(rest)]
    rest = np.vstack([rest, rest[corners]])
    triangles.reshape(-1)[: len(corners)] = np.arange(count - len(corners), count)
    return rest, triangles
