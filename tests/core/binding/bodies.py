# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean and damaged bodies and skeletons for the tests of binding."""

import numpy as np

from skinning_tools.core.binding.types import Body, Skeleton, joined

from ..skinned_shapes import cuboid

NO_EDGES = np.zeros((0, 2), int)


def chain(count=3, length=6.0, y=0.0, z=0.0):
    """Bones along x from 0 to ``length``."""
    x = np.linspace(0, length, count + 1)
    joints = np.column_stack([x, np.full(count + 1, y), np.full(count + 1, z)])
    return Skeleton(joints[:-1], joints[1:], np.arange(count) - 1)


def bar(columns=24, rows=4):
    """A closed bar along x from 0 to 6, 1 × 1 across."""
    return Body(*cuboid(columns, rows), NO_EDGES)


def parts(count=20):
    """Cubes in a row along x from 0 to 6, with gaps between them."""
    rest, triangles = cuboid(2, 2, 2.0)
    rest = rest * [0.5, 1, 1] * 0.24
    starts = np.column_stack([0.3 * np.arange(count) + 0.03, np.zeros((count, 2))])
    return joined(*(Body(rest + start, triangles, NO_EDGES) for start in starts))


def sheet(columns=24, rows=6, wave=0.0):
    """An open sheet along x from 0 to 6, in the plane z = 0 or waving about it."""
    x, y = np.meshgrid(np.linspace(0, 6, columns + 1), np.linspace(-1, 1, rows + 1))
    index = np.arange(x.size).reshape(x.shape)
    a, b, c, d = index[:-1, :-1].ravel(), index[:-1, 1:].ravel(), index[1:, 1:].ravel(), index[1:, :-1].ravel()
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return Body(np.column_stack([x.ravel(), y.ravel(), wave * np.sin(3 * x.ravel())]), triangles, NO_EDGES)


def with_flat_triangles(body):
    """And with triangles that have a corner twice or thrice, three corners in a row, or another triangle's corners."""
    rest = np.concatenate([body.rest, 0.5 * (body.rest[:1] + body.rest[1:2])])
    extra = [[0, 1, len(body.rest)], [0, 0, 1], [2, 2, 2], body.triangles[0], body.triangles[0][::-1]]
    return Body(rest, np.concatenate([body.triangles, extra]), body.edges)


def torn(body):
    """Every triangle has vertices of its own."""
    return Body(body.rest[body.triangles.ravel()], np.arange(3 * len(body.triangles)).reshape(-1, 3), NO_EDGES)


def blocks_body(solid, size=1.0):
    """The surface of a solid of cubes: solid (X, Y, Z) bool, each of edge ``size``, the first at the origin."""
    padded = np.pad(solid, 1)
    quads = []
    corner = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    for axis in range(3):
        others = [(axis + 1) % 3, (axis + 2) % 3]
        change = np.diff(padded.astype(int), axis=axis)
        for sign in (1, -1):
            for place in np.argwhere(change == -sign):
                quad = np.repeat(place[None], 4, axis=0)
                quad[:, others] += corner - 1
                quads.append(quad[::sign])
    quads = np.array(quads)
    points, index = np.unique(quads.reshape(-1, 3), axis=0, return_inverse=True)
    index = index.reshape(-1, 4)
    return Body(points * size, np.concatenate([index[:, [0, 1, 2]], index[:, [0, 2, 3]]]), NO_EDGES)


def hand():
    """Two fingers along y, a twentieth of their width apart, on a palm; and their bones: palm, two a finger.

    The bones of the left finger lie off its middle, nearer to the right finger's skin than that one's own bones.
    """
    solid = np.zeros((13, 24, 6), bool)
    solid[:, :6] = True
    solid[:6] = solid[7:] = True
    body = blocks_body(solid)
    rest = body.rest.copy()
    # The gap, one cube wide, narrows.
    rest[:, 0] = np.interp(rest[:, 0], [0, 6, 7, 13], [0, 6, 6.3, 12.3])
    body = Body(rest / 6, body.triangles, NO_EDGES)
    left, right = 5.6 / 6, 9.3 / 6
    heads = np.array([[1.0, 0.1, 0.5], [left, 1, 0.5], [left, 2.5, 0.5], [right, 1, 0.5], [right, 2.5, 0.5]])
    tails = np.array([[1.0, 0.9, 0.5], [left, 2.5, 0.5], [left, 3.9, 0.5], [right, 2.5, 0.5], [right, 3.9, 0.5]])
    return body, Skeleton(heads, tails, [-1, 0, 1, 0, 3], ("palm", "left 1", "left 2", "right 1", "right 2"))


def mirrored_body(seed=0, columns=10, rows=3):
    """A bumpy body from x = −6 to 6, the mirror image of itself, sewn together at x = 0; a vertex's mirror image (N,);
    and a skeleton with its bones' mirror images (P,): spine along y, an arm to either side in two bones."""
    rest, triangles = cuboid(columns, rows)
    rng = np.random.default_rng(seed)
    rest = rest * [1, 1.5, 1] + 0.05 * rng.standard_normal(rest.shape) * (rest[:, :1] > 0)
    half = Body(rest, triangles[~(rest[triangles][:, :, 0] == 0).all(axis=1)], NO_EDGES)
    other = Body(rest * [-1, 1, 1], half.triangles[:, ::-1], NO_EDGES)
    body = joined(half, other)
    count = len(rest)
    image = np.concatenate([np.arange(count) + count, np.arange(count)])
    heads = np.array([[0, -0.7, 0], [0, 0, 0], [0.5, 0.3, 0.05], [-0.5, 0.3, 0.05], [3, 0.2, 0], [-3, 0.2, 0]])
    tails = np.array([[0, 0, 0], [0, 0.7, 0.1], [3, 0.2, 0], [-3, 0.2, 0], [6, 0.1, 0.1], [-6, 0.1, 0.1]])
    return body, image, Skeleton(heads, tails, [-1, 0, 1, 1, 2, 3]), np.array([0, 1, 3, 2, 5, 4])
