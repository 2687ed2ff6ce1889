# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinned meshes with their own weights, and rogue weights planted into these, independent of the tested tool."""

import numpy as np
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.deform import convex_influences, skin_frame

from ..skinned_shapes import about, chain_weights, cuboid
from .bodies import NO_EDGES

RINGS = 2
# Parameters of planted vertices: smallest and largest weight, rings of neighbors around one, which bone, and the
# positions in an island without rings.
KINDS = {
    "strays": (1.0, 1.0, 0, "any"),
    "slight": (0.05, 0.3, 0, "any"),
    "tiny": (0.01, 0.05, 0, "any"),
    "islands": (1.0, 1.0, 1, "any"),
    "faint islands": (0.05, 0.3, 1, "any"),
    "other side": (1.0, 1.0, 1, "mirrored"),
    "next limb": (1.0, 1.0, 0, "next"),
    "patches of 30": (1.0, 1.0, 0, "any", 30),
    "patches of 60": (1.0, 1.0, 0, "any", 60),
    "patches of 120": (1.0, 1.0, 0, "any", 120),
}
# A patch has at most this multiple of the weights of the bone's own vertices: with more, shapes do not show which of
# the two belongs to the bone.
MOST = 10
# Relative to the diagonal: planted weights that move vertices by more are visible.
SEEN = 0.01


def human(shared_data):
    """The human rig with its own weights, including its strays."""
    data = np.load(shared_data("human_rig.npz"))
    quads = data["quads"]
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    body = Body(data["rest"], triangles, NO_EDGES)
    skeleton = Skeleton(data["heads"], data["tails"], data["parents"], tuple(map(str, data["bone_names"])))
    return body, skeleton, *convex_influences(data["influence_bones"], data["influence_weights"], len(body.rest))


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


def planted(body, skeleton, bones, weights, share=0.01, kind="strays", seed=0):
    """Weights of a ``kind`` planted into a share of the vertices, at least three islands: their pairs of bone and
    vertex, and the new rows.

    Each is of a bone that moves things elsewhere, and nothing within two rings around: any such, that on the other
    side, or, for limbs side by side, the nearest one that is not next in the hierarchy. None is near another, and
    no island has more than a quarter of its connected part. Patches leave each bone half of its own weights,
    and have at most ``MOST`` times those of their bone.
    """
    least, most, more, which, size = (*KINDS[kind], 1)[:5]
    random = np.random.default_rng(seed)
    # By positions, so that seams are no gaps.
    own = np.zeros((len(body.points), len(skeleton)))
    rows = np.zeros((len(bones), len(skeleton)))
    np.add.at(rows, (np.arange(len(bones))[:, None], bones), weights)
    own[body.place] = rows
    new, taken = own.copy(), np.zeros(len(own), bool)
    used = np.flatnonzero(own.max(axis=0) > 0.5)
    mirrored, part_sizes = _mirrored(skeleton), np.bincount(body.place_components)
    pairs, islands = set(), 0
    mass, lost = own.sum(axis=0), np.zeros(len(skeleton))
    for place in random.permutation(len(own)):
        members = _around(body, [place], int(random.integers(more + 1)) if more else 0)
        if size > 1:
            away = dijkstra(body.edge_graph, directed=False, indices=place)
            members = np.argsort(away, kind="stable")[: min(size, np.isfinite(away).sum())]
        surroundings = _around(body, members, RINGS)
        if taken[surroundings].any() or not own[members].any(axis=1).all():
            continue
        if 4 * len(members) > max(part_sizes[body.place_components[place]], 4):
            continue
        if size > 1 and (2 * (lost + own[members].sum(axis=0)) > mass)[used].any():
            continue
        able = np.setdiff1d(used, np.flatnonzero(own[surroundings].any(axis=0)))
        if size > 1:
            able = able[MOST * mass[able] >= size]
        strongest = int(own[place].argmax())
        if which == "mirrored":
            able = able[able == mirrored[strongest]]
        elif which == "next":
            kin = {strongest, skeleton.parents[strongest], *np.flatnonzero(skeleton.parents == strongest)}
            able = np.array([bone for bone in able if bone not in kin], int)
            able = able[np.argsort(_distances(body.points[place], skeleton)[able])[:1]]
        if not len(able):
            continue
        bone, weight = int(random.choice(able)), random.uniform(least, most)
        new[members] *= 1 - weight
        new[members, bone] += weight
        taken[surroundings] = True
        lost += own[members].sum(axis=0)
        pairs |= {(bone, int(vertex)) for vertex in np.flatnonzero(np.isin(body.place, members))}
        islands += 1
        if islands >= 3 and len(pairs) >= int(share * len(bones)):
            break
    rows = new[body.place]
    width = int((rows > 0).sum(axis=1).max())
    order = np.argsort(-rows, axis=1, kind="stable")[:, :width]
    return pairs, order.astype(np.int32), np.take_along_axis(rows, order, axis=1)


def seen(body, skeleton, before, after) -> set[int]:
    """The vertices that rows ``after`` take visibly elsewhere than rows ``before``, as each bone of the skeleton is
    turned by 60° against its parent."""
    random, squares = np.random.default_rng(99), 0.0
    for _ in range(6):
        turns = Rotation.from_rotvec(np.pi / 3 * _unit(random.normal(size=(len(skeleton), 3)))).as_matrix()
        moved = {}
        for bone in range(len(skeleton)):
            _turn(bone, turns, skeleton, moved)
        matrices = np.array([moved[bone][:3] for bone in range(len(skeleton))])
        off = skin_frame(body.rest, *after, matrices) - skin_frame(body.rest, *before, matrices)
        squares = squares + (off**2).sum(axis=1) / 6
    return set(np.flatnonzero(np.sqrt(squares) >= SEEN * body.diagonal).tolist())


def pairs(islands):
    return {(island.bone, int(vertex)) for island in islands for vertex in island.vertices}


def _turn(bone, turns, skeleton, moved) -> np.ndarray:
    if bone not in moved:
        parent = skeleton.parents[bone]
        above = _turn(parent, turns, skeleton, moved) if parent >= 0 else np.eye(4)
        moved[bone] = above @ np.vstack([about(turns[bone], skeleton.heads[bone]), [0, 0, 0, 1]])
    return moved[bone]


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _around(body, places, rings) -> np.ndarray:
    """The positions within that number of edges."""
    found = np.zeros(len(body.points))
    found[places] = 1
    for _ in range(rings):
        found = found + (body.edge_graph > 0) @ found
    return np.flatnonzero(found)


def _distances(point, skeleton) -> np.ndarray:
    along = skeleton.tails - skeleton.heads
    share = np.einsum("pi,pi->p", point - skeleton.heads, along) / np.maximum((along**2).sum(axis=1), 1e-30)
    return np.linalg.norm(point - skeleton.heads - np.clip(share, 0, 1)[:, None] * along, axis=1)


def _mirrored(skeleton) -> np.ndarray:
    """(P,) the bone on the other side, −1 if there is none, by the axis with most pairs."""
    size, found = np.linalg.norm(np.ptp(skeleton.heads, axis=0)), []
    for axis in range(3):
        away, other = cKDTree(skeleton.heads).query(skeleton.heads * np.where(np.arange(3) == axis, -1, 1))
        found.append(np.where((away < 0.02 * size) & (other != np.arange(len(other))), other, -1))
    return max(found, key=lambda pairs: (pairs >= 0).sum())
