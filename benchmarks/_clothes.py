# SPDX-License-Identifier: GPL-3.0-or-later
"""Clothes cut from the human rig: for each of their vertices the weights that it should get are known, those of the
body where it comes from."""

from dataclasses import dataclass

import numpy as np
from binding_human import HumanRig, subdivided  # in demos
from scipy import sparse

from skinning_tools.core.binding.types import Body
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.deform.surface import vertex_normals

TORSO = ("spine", "breast", "clavicle", "shoulder")
SLEEVES = ("upperarm", "lowerarm")
LEGS = ("pelvis", "upperleg", "lowerleg")
HANDS = ("wrist", "finger", "metacarpal", "lowerarm02")
FEET = ("foot", "toe")


@dataclass(frozen=True, eq=False)
class Garment:
    """body: its mesh; weights (N, P) sparse: those of the human where each vertex comes from. tight: whether it lies
    on the skin."""

    body: Body
    weights: sparse.csr_matrix
    tight: bool

    def error(self, rig: HumanRig, bones: np.ndarray, weights: np.ndarray) -> float:
        """Mean vertex distance over all frames of both motions from where the right weights take a vertex, as a
        fraction of the human's diagonal."""
        wanted = influence_rows(self.weights)
        total, count = 0.0, 0
        for frame in np.concatenate(list(rig.matrices.values())):
            right = skin_frame(self.body.rest, *wanted, frame)
            total += np.linalg.norm(skin_frame(self.body.rest, bones, weights, frame) - right, axis=1).mean()
            count += 1
        return total / count / rig.body.diagonal


def clothes(rig: HumanRig) -> dict[str, Garment]:
    """Twelve kinds. The human's unit is a decimeter."""
    shirt, trousers = (*TORSO, *SLEEVES), (*LEGS, "spine05")
    inner, outer = _cut(rig, shirt, 0.03), _cut(rig, shirt, 0.25, smoothing=4)
    return {
        "tight shirt": _cut(rig, shirt, 0.05),
        "tight trousers": _cut(rig, trousers, 0.05),
        "loose shirt": _cut(rig, shirt, 0.35, smoothing=8),
        "loose trousers": _cut(rig, trousers, 0.4, smoothing=8),
        "coat": _cut(rig, (*TORSO, *SLEEVES, "pelvis", "upperleg"), 0.8, smoothing=20),
        "gloves": _cut(rig, HANDS, 0.05),
        "mittens": _cut(rig, HANDS, 0.15, smoothing=2),
        "suit": _cut(rig, (*TORSO, *SLEEVES, *LEGS, *HANDS, *FEET), 0.1),
        "torn": _torn(_cut(rig, shirt, 0.1)),
        "two layers": _sewn(inner, outer),
        "lining": _together(outer, _turned(inner)),
        "inside out": _turned(_cut(rig, shirt, 0.1)),
    }


def _cut(rig: HumanRig, names: tuple[str, ...], offset: float, smoothing: int = 0) -> Garment:
    """The faces of the body that bones whose names begin with one of ``names`` move, finer, and ``offset`` away from
    the skin."""
    wanted = np.array([name.startswith(names) for name in rig.skeleton.names])
    share = (rig.weights * wanted[rig.bones]).sum(axis=1)
    triangles = rig.body.triangles[(share[rig.body.triangles] > 0.5).all(axis=1)]
    used, triangles = np.unique(triangles, return_inverse=True)
    triangles = triangles.reshape(-1, 3)
    normals = vertex_normals(rig.body.rest, rig.body.triangles)[used]
    matrix = weight_matrix(rig.bones, rig.weights, len(rig.skeleton))[used]
    # Positions, normals and weights go to the middles of edges alike.
    fine = subdivided(Body(rig.body.rest[used], triangles, np.zeros((0, 2), int)))
    normals, matrix = at_middles(triangles, normals), sparse.csr_matrix(at_middles(triangles, matrix.toarray()))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    moved = fine.rest + offset * normals
    neighbors = abs(Body(fine.rest, fine.triangles, fine.edges).edge_graph.sign())
    mean = sparse.diags(1 / np.asarray(neighbors.sum(axis=1)).ravel()) @ neighbors
    for _ in range(smoothing):
        moved = 0.5 * (moved + mean @ moved)
    return Garment(Body(moved, fine.triangles, fine.edges), matrix, tight=offset <= 0.1)


def at_middles(triangles: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``values`` (N, D) of vertices, with those of the vertices that ``subdivided`` adds."""
    sides = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    return np.concatenate([values, values[np.unique(sides, axis=0)].mean(axis=1)])


def _turned(garment: Garment) -> Garment:
    body = garment.body
    return Garment(Body(body.rest, body.triangles[:, ::-1], body.edges), garment.weights, garment.tight)


def _torn(garment: Garment) -> Garment:
    corners = garment.body.triangles.ravel()
    body = Body(garment.body.rest[corners], np.arange(len(corners)).reshape(-1, 3), np.zeros((0, 2), int))
    return Garment(body, garment.weights[corners], garment.tight)


def _together(first: Garment, second: Garment) -> Garment:
    count = len(first.body.rest)
    triangles = np.concatenate([first.body.triangles, second.body.triangles + count])
    body = Body(np.concatenate([first.body.rest, second.body.rest]), triangles, np.zeros((0, 2), int))
    return Garment(body, sparse.vstack([first.weights, second.weights]).tocsr(), tight=False)


def _sewn(inner: Garment, outer: Garment) -> Garment:
    """Two layers of the same faces, the inner one turned, joined along their rims."""
    both = _together(outer, _turned(inner))
    triangles, count = outer.body.triangles, len(outer.body.rest)
    sides = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    _, first, uses = np.unique(np.sort(sides, axis=1), axis=0, return_index=True, return_counts=True)
    a, b = sides[first[uses == 1]].T
    strips = np.concatenate([np.stack([b, a, a + count], axis=1), np.stack([b, a + count, b + count], axis=1)])
    body = Body(both.body.rest, np.concatenate([both.body.triangles, strips]), both.body.edges)
    return Garment(body, both.weights, tight=False)


def influence_rows(matrix: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (N, K) of all entries of a sparse matrix (N, P)."""
    lengths = np.diff(matrix.indptr)
    filled = np.arange(lengths.max()) < lengths[:, None]
    bones, weights = np.zeros(filled.shape, int), np.zeros(filled.shape)
    bones[filled], weights[filled] = matrix.indices, matrix.data
    return bones, weights
