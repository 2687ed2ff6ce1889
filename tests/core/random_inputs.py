# SPDX-License-Identifier: GPL-3.0-or-later
"""Animations, meshes, skeletons and weights of all sorts, from a random generator: many of them malformed."""

import numpy as np
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation
from skinning_tools.core.binding.types import Body, Skeleton

# Scales of the inputs, from micrometers in kilometers to the reverse. Powers of two, which change no digit.
SCALES = [2.0**power for power in (-20, -10, -1, 0, 0, 0, 1, 10, 20)]
SHAPES = ("cloud", "grid", "grid", "line", "plane", "pairs", "lump", "torn grid")
MOTIONS = ("noise", "parts", "waves", "rigid", "one vertex", "collapse", "mirror", "pause")


def points(random, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """rest (N, 3) float64 and triangles (T, 3)."""
    count = int(random.integers(1, 50))
    if "grid" in shape:
        rows, columns = random.integers(2, 7, 2)
        y, x = np.mgrid[0:rows, 0:columns].astype(float)
        rest = np.stack([x, y, 0.3 * np.sin(x)], axis=-1).reshape(-1, 3)
        index = np.arange(rows * columns).reshape(rows, columns)
        a, b, c, d = (part.ravel() for part in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]))
        triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        if shape == "torn grid":
            return rest[triangles.ravel()], np.arange(triangles.size).reshape(-1, 3)
        return rest, triangles
    rest = random.normal(size=(count, 3))
    rest *= {"line": [1, 0, 0], "plane": [1, 1, 0]}.get(shape, [1, 1, 1])
    if shape == "pairs":
        rest = np.repeat(rest, 2, axis=0)
    if shape == "lump":
        rest[1:] = rest[:1] + 1e-5 * rest[1:]
    # Any triangles: with a corner twice, the same one twice, crossing each other, or none.
    return rest, random.integers(0, len(rest), (int(random.integers(0, 2 * len(rest))), 3))


def moved(random, rest: np.ndarray, motion: str, frame_count: int) -> np.ndarray:
    """(F, N, 3) float64; the first frame is ``rest``."""
    frames = np.repeat(rest[None], frame_count, axis=0)
    for row in range(1, frame_count):
        if motion == "noise":
            frames[row] += 0.3 * random.normal(size=rest.shape)
        elif motion in ("parts", "rigid", "mirror"):
            owners = random.integers(0, 1 if motion == "rigid" else 3, len(rest))
            turns = Rotation.from_rotvec(random.normal(size=(3, 3))).as_matrix()
            turns *= -1 if motion == "mirror" and row % 2 else 1
            frames[row] = np.einsum("nij,nj->ni", turns[owners], rest) + random.normal(size=(3, 3))[owners]
        elif motion == "waves":
            frames[row, :, 2] += np.sin(rest[:, 0] + row)
        elif motion == "one vertex":
            frames[row, -1] += random.normal(size=3)
        elif motion == "collapse":
            frames[row] = rest.mean(axis=0) + (rest - rest.mean(axis=0)) * (row != frame_count - 1)
        elif motion == "pause":
            frames[row, :, 0] += min(row, 2)
            frames[row, :, 1] *= 1 + 0.1 * min(row, 2)
    return frames


def animation(random, offsets=(0.0, 0.0, 0.0, 10.0, 1e4)) -> Animation:
    """At any scale, and up to ten thousand times its own size away from the origin."""
    rest, triangles = points(random, random.choice(SHAPES))
    frames = moved(random, rest, random.choice(MOTIONS), int(random.integers(2, 9)))
    frames = frames + random.choice(offsets) * random.normal(size=3)
    return Animation((random.choice(SCALES) * frames).astype(np.float32), triangles)


def weights(random, vertex_count: int, bone_count: int, most: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (N, K), rows that sum to 1 or, some of them, to 0; a bone is in a row once."""
    width = min(int(random.integers(1, most + 1)), bone_count)
    bones = np.argsort(random.random((vertex_count, bone_count)), axis=1)[:, :width].astype(np.int32)
    values = random.dirichlet(np.full(width, 0.4), vertex_count)
    values[values < 0.02] = 0.0
    values[:, 0] += values.sum(axis=1) == 0
    values /= values.sum(axis=1, keepdims=True)
    if random.random() < 0.3:
        values[random.random(vertex_count) < 0.2] = 0.0
    return bones, values


def transforms(random, frame_count: int, bone_count: int) -> np.ndarray:
    """(F, P, 3, 4): rotations, stretched ones, mirroring, singular and vanishing matrices."""
    size = frame_count * bone_count
    linear = Rotation.from_rotvec(random.normal(size=(size, 3))).as_matrix()
    kind = random.integers(0, 8, size)
    linear[kind == 1] *= random.normal(size=(int((kind == 1).sum()), 1, 3))
    linear[kind == 2] = random.normal(size=(int((kind == 2).sum()), 3, 3))
    linear[kind == 3] *= -1
    linear[kind == 4, :, 0] = 0
    linear[kind == 5] *= random.choice([0.0, 1e-12, 1e6])
    matrices = np.concatenate([linear, random.normal(size=(size, 3, 1))], axis=-1)
    return matrices.reshape(frame_count, bone_count, 3, 4)


def body(random) -> Body:
    rest, triangles = points(random, random.choice(SHAPES))
    edges = random.integers(0, len(rest), (int(random.integers(0, 6)), 2))
    return Body(rest, triangles, edges if random.random() < 0.3 else np.zeros((0, 2), int))


def skeleton(random) -> Skeleton:
    """Bones in and around a body of ``body``, some of no length, some at one place."""
    count = int(random.integers(1, 7))
    heads = random.uniform(-1, 5, (count, 3)) * [1, 1, 0.2]
    tails = heads + random.normal(size=(count, 3)) * random.choice([0.0, 1.0, 1.0, 1.0], (count, 1))
    if random.random() < 0.2:
        heads[-1], tails[-1] = heads[0], tails[0]
    if random.random() < 0.1:
        heads, tails = heads + 1e6, tails + 1e6
    return Skeleton(heads, tails, [int(random.integers(-1, bone)) if bone else -1 for bone in range(count)])


def similarity(random) -> tuple[np.ndarray, float, np.ndarray]:
    """Rotation (3, 3), scale, and offset (3,)."""
    return (
        Rotation.random(random_state=int(random.integers(2**31))).as_matrix(),
        float(random.choice(SCALES)),
        random.normal(size=3),
    )
