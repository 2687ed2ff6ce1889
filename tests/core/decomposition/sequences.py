# SPDX-License-Identifier: GPL-3.0-or-later
"""Small animations made by formula, whose best skinning is known or bounded."""

import numpy as np
from scipy.spatial.transform import Rotation

from skinning_tools.core.decomposition.smoothness import Smoothness
from skinning_tools.core.deform.influences import weight_matrix

_CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
_CUBE_TRIANGLES = np.array(
    [
        *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
        *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
    ]
)


def dirichlet_energy(neighbors, bones, weights, bone_count) -> float:
    """∫ ‖∇w‖² over the surface, of all bones together. neighbors (N, N): ``smoothness.neighbor_weights``."""
    return Smoothness(neighbors).energy(weight_matrix(bones, weights, bone_count))


def sheet(rows=12, columns=18, frames=12):
    """A rectangle, flat in the first frame, that waves: frames (F, N, 3), triangles."""
    y, x = np.mgrid[0:rows, 0:columns]
    rest = np.stack([x / (columns - 1), y / (columns - 1), 0 * x], axis=-1).reshape(-1, 3)
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = index[:-1, :-1].ravel(), index[:-1, 1:].ravel(), index[1:, 1:].ravel(), index[1:, :-1].ravel()
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    times = np.arange(frames)[:, None]
    angle = (3 + 0.25 * times) * rest[:, 0] + 2 * rest[:, 1] * np.sin(0.4 * times) + 0.6 * times
    moved = np.repeat(rest[None], frames, axis=0)
    moved[1:, :, 2] = 0.2 * (rest[:, 0] * np.sin(angle))[1:]
    moved[1:, :, 0] -= 0.1 * (rest[:, 0] * np.cos(1.3 * angle))[1:] ** 2
    return moved, triangles


def boxes(count=20, frames=10, motion="rigid"):
    """Separate boxes, each with a motion of its own (rigid or affine): frames (F, 8·count, 3), triangles."""
    random = np.random.default_rng(3)
    triangles = np.concatenate([_CUBE_TRIANGLES + 8 * i for i in range(count)])
    result = np.empty((frames, 8 * count, 3))
    for i in range(count):
        axis, drift = random.normal(size=3) * 0.15, random.normal(size=3) * 0.2
        stretch = random.normal(size=(3, 3)) * 0.05
        for f in range(frames):
            linear = Rotation.from_rotvec(axis * f).as_matrix()
            if motion == "affine":
                linear = linear @ (np.eye(3) + stretch * f)
            result[f, 8 * i : 8 * i + 8] = (_CUBE - 0.5) @ linear.T + [3 * i, 0, 0] + drift * f
    return result, triangles


def random_rig(seed, bone_count, vertex_count, frame_count, flat=False):
    """Rigid bones that turn and move at random, and any weights: rest (N, 3), bones and weights (N, P), transforms."""
    random = np.random.default_rng(seed)
    rest = random.normal(size=(vertex_count, 3)) * [1, 1, 0 if flat else 1]
    turns = Rotation.from_rotvec(0.6 * random.normal(size=(frame_count * bone_count, 3))).as_matrix()
    places = random.normal(size=(frame_count, bone_count, 3, 1))
    transforms = np.concatenate([turns.reshape(frame_count, bone_count, 3, 3), places], axis=3)
    bones = np.tile(np.arange(bone_count, dtype=np.int32), (vertex_count, 1))
    return rest, bones, random.dirichlet(np.full(bone_count, 0.3), vertex_count), transforms
