# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinned meshes, and strays planted into their weights."""

import numpy as np
from scipy import sparse

from skinning_tools.core.binding.rogue import remove_rogue_weights
from skinning_tools.core.binding.types import Body, Skeleton

from ..skinned_shapes import chain_weights, cuboid, dense
from .bodies import NO_EDGES

RINGS = 2


def human(shared_data):
    """The human rig with its own weights, less the few strays that these have."""
    data = np.load(shared_data("human_rig.npz"))
    quads = data["quads"]
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    body = Body(data["rest"], triangles, NO_EDGES)
    skeleton = Skeleton(data["heads"], data["tails"], data["parents"], tuple(map(str, data["bone_names"])))
    weights = data["influence_weights"].astype(float)
    weights /= weights.sum(axis=1, keepdims=True)
    clean = remove_rogue_weights(body, skeleton, data["influence_bones"].astype(np.int32), weights)
    return body, skeleton, clean.bones, clean.weights


def chain(length, count):
    """Bones along the x axis."""
    x = np.linspace(0, length, count + 1)
    joints = np.column_stack([x, np.zeros(count + 1), np.zeros(count + 1)])
    return Skeleton(joints[:-1], joints[1:], np.arange(count) - 1)


def tube():
    rest, triangles = cuboid(columns=80, rows=6, length=16.0)
    bones, weights = chain_weights(rest[:, 0], [2, 4, 6, 8, 10, 12, 14], reach=0.8)
    return Body(rest, triangles, NO_EDGES), chain(16, 8), bones, weights


def loose_parts():
    """Twenty bars in a row, two for each of ten bones."""
    rest, triangles = cuboid(columns=8, rows=3, length=0.7)
    body = Body(
        np.concatenate([rest + np.array([part, 0, 0]) for part in range(20)]),
        np.concatenate([triangles + part * len(rest) for part in range(20)]),
        NO_EDGES,
    )
    bones = np.repeat(np.arange(20) // 2, len(rest))[:, None].astype(np.int32)
    return body, chain(20, 10), bones, np.ones(bones.shape)


def meshes(name, shared_data):
    return human(shared_data) if name == "human" else {"tube": tube, "parts": loose_parts}[name]()


def planted(body, skeleton, bones, weights, share, seed):
    """Some vertices given wholly to a bone that moves nothing within two rings around: they, their bones, the rows."""
    random = np.random.default_rng(seed)
    vertices = np.sort(random.choice(len(bones), int(share * len(bones)), replace=False))
    near = sparse.csr_matrix(dense(bones, weights, len(skeleton)) > 0).astype(int)
    around = (body.edge_graph > 0).astype(int) + sparse.identity(len(body.points), dtype=int)
    near = sparse.csr_matrix((np.ones(len(bones), int), (body.place, np.arange(len(bones))))) @ near
    for _ in range(RINGS):
        near = around @ near
    used = np.unique(bones[weights > 0])
    chosen = [random.choice(np.setdiff1d(used, near[body.place[vertex]].indices)) for vertex in vertices]
    bones, weights = bones.copy(), weights.copy()
    bones[vertices] = np.array(chosen)[:, None]
    weights[vertices] = np.arange(weights.shape[1]) == 0
    return vertices, np.array(chosen), bones, weights


def pairs(islands):
    return {(island.bone, int(vertex)) for island in islands for vertex in island.vertices}
