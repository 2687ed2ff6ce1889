# SPDX-License-Identifier: GPL-3.0-or-later
"""Procedural models of the sizes of the evaluation of 2019: its cuboid, wolf and raptor.

The numbers of vertices, faces and bones are those of its table 2; the shapes and weights are ours, as its models are
not free. Its cuboid has twice as many vertices as faces: four of their own for each quad, which is two faces. Its
animals have more vertices than a closed surface of as many faces: seams, whose vertices exist several times.
"""

from dataclasses import dataclass

import numpy as np
from _meshes import with_seams  # beside this file

# Vertices, faces and bones, table 2 of the evaluation.
SIZES = {"cuboid": (16_800, 8_400, 5), "wolf": (1_291, 1_470, 30), "raptor": (15_005, 21_959, 79)}
INFLUENCES = 4

# Weights fall off with this power of the distance from the bone.
_FALLOFF = 8
_LEAST_WEIGHT = 0.01


@dataclass(frozen=True, eq=False)
class Model:
    """rest (N, 3), triangles (T, 3), bones and weights (N, K), rows that sum to 1; heads and tails (P, 3) of the bones
    and their parents (P,), −1 for a root, a parent before its children."""

    name: str
    rest: np.ndarray
    triangles: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    parents: np.ndarray

    @property
    def skin(self) -> tuple:
        return self.rest, self.triangles, self.bones, self.weights


@dataclass(frozen=True)
class _Part:
    """A closed tube around a bent line with a chain of bones in it. line (n, 4): points and the radius there, joined
    by a smooth curve; rings, columns: of vertices; hip: where along the first part's bones its chain begins, 0 to 1."""

    line: tuple
    rings: int
    columns: int
    bones: int
    hip: float = 0.0

    def points(self, places) -> np.ndarray:
        """(n, 4) centers and radii at ``places`` from 0 to 1."""
        line = np.array(self.line)
        steps = np.linalg.norm(np.diff(line[:, :3], axis=0), axis=1)
        along = np.concatenate([[0], np.cumsum(steps)]) / steps.sum()
        return np.stack([np.interp(places, along, values) for values in line.T], axis=1)

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        # Ends are round: the rings crowd there.
        places = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.04, 0.96, self.rings))
        found = self.points(places)
        ahead = np.gradient(found[:, :3], axis=0)
        ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
        # All lines lie in planes of constant y.
        sideward = np.array([0.0, 1.0, 0.0])
        upward = np.cross(ahead, sideward)
        angles = 2 * np.pi * np.arange(self.columns) / self.columns
        around = np.cos(angles)[:, None] * sideward + np.sin(angles)[:, None] * upward[:, None]
        rings = found[:, None, :3] + found[:, None, 3:] * around
        poles = self.points([0.0, 1.0])[:, :3]
        index = np.arange(self.rings * self.columns).reshape(self.rings, self.columns)
        turned = np.roll(index, -1, axis=1)
        start, stop = index.size, index.size + 1
        faces = [
            np.stack([index[:-1], turned[1:], index[1:]], axis=-1).reshape(-1, 3),
            np.stack([index[:-1], turned[:-1], turned[1:]], axis=-1).reshape(-1, 3),
            np.stack([np.full(self.columns, start), turned[0], index[0]], axis=-1),
            np.stack([np.full(self.columns, stop), index[-1], turned[-1]], axis=-1),
        ]
        return np.concatenate([rings.reshape(-1, 3), poles]), np.concatenate(faces)


def _leg(at: float, side: float, length: float, width: float, rings: int, columns: int, bones: int, hip: float):
    line = (
        (at, side, 1.0, width),
        (at + 0.08 * length, side, 1.0 - 0.5 * length, 0.6 * width),
        (at - 0.04 * length, side, 1.0 - 0.92 * length, 0.4 * width),
        (at + 0.1 * length, side, 1.0 - length, 0.35 * width),
    )
    return _Part(line, rings, columns, bones, hip)


_BODY = (
    *((-1.9, 0, 0.85, 0.02), (-1.2, 0, 0.95, 0.08), (-0.6, 0, 1.05, 0.2), (0.0, 0, 1.0, 0.28), (0.5, 0, 1.1, 0.27)),
    *((0.9, 0, 1.35, 0.16), (1.2, 0, 1.5, 0.15), (1.6, 0, 1.45, 0.06)),
)
_PARTS = {
    "wolf": (
        _Part(_BODY, 25, 15, 14),
        *(_leg(at, side, 1.0, 0.1, 10, 9, 4, hip) for at, hip in ((-0.5, 0.35), (0.5, 0.6)) for side in (-0.15, 0.15)),
    ),
    "raptor": (
        _Part(_BODY, 110, 58, 39),
        *(_leg(-0.3, side, 1.0, 0.16, 50, 30, 10, 0.4) for side in (-0.16, 0.16)),
        *(_leg(0.5, side, 0.5, 0.07, 40, 20, 10, 0.6) for side in (-0.2, 0.2)),
    ),
}


def model(name: str) -> Model:
    """The model of a name in ``SIZES``."""
    made = _cuboid() if name == "cuboid" else _animal(name)
    assert (len(made.rest), len(made.triangles), len(made.heads)) == SIZES[name]
    return made


def _cuboid() -> Model:
    """6 long and 1 wide, as that of the pictures: 10 × 10 × 100 quads."""
    steps = np.array([100, 10, 10])
    quads = []
    for axis in range(3):
        first, second = (axis + 1) % 3, (axis + 2) % 3
        u, v = np.meshgrid(np.arange(steps[first]), np.arange(steps[second]), indexing="ij")
        for end in (0, 1):
            corners = np.zeros((u.size, 4, 3))
            corners[..., axis] = end * steps[axis]
            # The order of the corners turns the face outward.
            order = ((0, 0), (1, 0), (1, 1), (0, 1)) if end else ((0, 0), (0, 1), (1, 1), (1, 0))
            for place, (du, dv) in enumerate(order):
                corners[:, place, first], corners[:, place, second] = u.ravel() + du, v.ravel() + dv
            quads.append(corners)
    rest = np.concatenate(quads).reshape(-1, 3) * (0.06, 0.1, 0.1) - (0, 0.5, 0.5)
    starts = 4 * np.arange(len(rest) // 4)[:, None]
    triangles = np.concatenate([starts + np.array(corners) for corners in ((0, 1, 2), (0, 2, 3))])
    ends = np.linspace((0, 0, 0), (6, 0, 0), 6)
    parents = np.arange(-1, 4)
    bones, weights = _weights(rest, ends[:-1], ends[1:], np.ones((len(rest), 5), bool))
    return Model("cuboid", rest, triangles, bones, weights, ends[:-1], ends[1:], parents)


def _animal(name: str) -> Model:
    vertex_count, face_count, _ = SIZES[name]
    rests, triangles, owners, heads, tails, parents, chains = [], [], [], [], [], [], []
    for number, part in enumerate(_PARTS[name]):
        rest, faces = part.surface()
        triangles.append(faces + sum(map(len, rests)))
        rests.append(rest)
        owners.append(np.full(len(rest), number))
        ends = part.points(np.linspace(0, 1, part.bones + 1))[:, :3]
        start = sum(map(len, heads))
        root = int(part.hip * _PARTS[name][0].bones) if number else -1
        heads.append(ends[:-1])
        tails.append(ends[1:])
        parents.append(np.concatenate([[root], start + np.arange(part.bones - 1)]))
        chains.append(np.full(part.bones, number))
    faces = np.concatenate(triangles)[:face_count]
    rest, owner = np.concatenate(rests), np.concatenate(owners)
    # A limb follows its own bones and the body's, not those of the other limbs.
    chain = np.concatenate(chains)
    allowed = (chain == owner[:, None]) | (chain == 0) | (owner[:, None] == 0)
    heads, tails, parents = np.concatenate(heads), np.concatenate(tails), np.concatenate(parents)
    bones, weights = _weights(rest, heads, tails, allowed)
    # The seams' vertices have the weights of those that they repeat.
    numbered = np.arange(len(rest), dtype=float)[:, None].repeat(3, axis=1)
    kept, faces = with_seams(numbered, faces, vertex_count)
    same = kept[:, 0].astype(int)
    return Model(name, rest[same], faces, bones[same], weights[same], heads, tails, parents)


def _weights(rest, heads, tails, allowed) -> tuple[np.ndarray, np.ndarray]:
    """(N, INFLUENCES) the bones nearest to each vertex among those ``allowed`` (N, P), and their weights."""
    along = tails - heads
    place = np.einsum("npk,pk->np", rest[:, None] - heads, along) / np.einsum("pk,pk->p", along, along)
    nearest = heads + np.clip(place, 0, 1)[..., None] * along
    distances = np.linalg.norm(rest[:, None] - nearest, axis=2)
    distances[~allowed] = np.inf
    bones = np.argsort(distances, axis=1, kind="stable")[:, :INFLUENCES]
    found = np.take_along_axis(distances, bones, axis=1)
    found = np.maximum(found, 1e-6)
    weights = (found[:, :1] / found) ** _FALLOFF
    weights[weights < _LEAST_WEIGHT] = 0
    return bones, weights / weights.sum(axis=1, keepdims=True)
