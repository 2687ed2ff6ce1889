# SPDX-License-Identifier: GPL-3.0-or-later
"""The human rig for binding: how well a method guesses the weights that an artist gave it, walking and shambling.

Arrays only, for the pictures of the documentation and for the benchmark.
"""

from dataclasses import dataclass, replace

import numpy as np
from human_rig import read_human

from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.deform import skin_frame


@dataclass(frozen=True, eq=False)
class HumanRig:
    """body, skeleton; bones and weights (N, 9): its own; matrices: per motion (F, P, 3, 4); quads (Q, 4). Y is up."""

    body: Body
    skeleton: Skeleton
    bones: np.ndarray
    weights: np.ndarray
    matrices: dict[str, np.ndarray]
    quads: np.ndarray

    @classmethod
    def read(cls) -> "HumanRig":
        """Raises FileNotFoundError if the rig is not next to the checkout."""
        human = read_human()
        sides = np.stack([human.quads, np.roll(human.quads, -1, axis=1)], axis=-1).reshape(-1, 2)
        skeleton = Skeleton(human.heads, human.tails, human.parents, human.names)
        body = Body(human.rest, human.triangles, sides)
        return cls(body, skeleton, human.bones, human.weights, human.matrices, human.quads)

    def fresh_body(self) -> Body:
        """The body without cached results of an earlier binding."""
        return Body(self.body.rest, self.body.triangles, self.body.edges)

    def errors(self, bones: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
        """Per motion (N,) the mean distance over all frames from each vertex, deformed by ``bones`` and ``weights``
        (N, K), to its position by its own weights, as a fraction of the diagonal at rest."""
        rest, result = self.body.rest, {}
        for motion, matrices in self.matrices.items():
            distances = np.zeros(len(rest))
            for frame in matrices:
                expected = skin_frame(rest, self.bones, self.weights, frame)
                distances += np.linalg.norm(skin_frame(rest, bones, weights, frame) - expected, axis=1)
            result[motion] = distances / len(matrices) / self.body.diagonal
        return result

    def worst_places(self, bones, weights, distances, count: int) -> list[str]:
        """The ``count`` vertices with the largest ``distances`` (N,), no two close together, with both their
        weights."""
        chosen: list[int] = []
        for vertex in np.argsort(-distances):
            gaps = np.linalg.norm(self.body.rest[chosen] - self.body.rest[vertex], axis=1)
            if (gaps > 0.03 * self.body.diagonal).all():
                chosen.append(int(vertex))
            if len(chosen) == count:
                break

        def described(bones, weights, vertex):
            order = np.argsort(-weights[vertex])[:4]
            return ", ".join(f"{self.skeleton.names[bones[vertex, i]]} {weights[vertex, i]:.2f}" for i in order)

        return [
            f"{vertex} at {np.round(self.body.rest[vertex], 2)}: {distances[vertex]:.4f}; "
            f"{described(bones, weights, vertex)}; its own: {described(self.bones, self.weights, vertex)}"
            for vertex in chosen
        ]


def subdivided(body: Body, times: int = 1) -> Body:
    """Each triangle in four of the same shape, ``times`` times."""
    rest, triangles = body.rest, body.triangles
    for _ in range(times):
        sides = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, middle = np.unique(sides, axis=0, return_inverse=True)
        a, b, c = triangles.T
        ab, bc, ca = (middle.reshape(-1, 3) + len(rest)).T
        triangles = np.concatenate([np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
        rest = np.concatenate([rest, rest[edges].mean(axis=1)])
    return Body(rest, triangles, np.zeros((0, 2), np.int64))


def torn(rig: HumanRig, which: np.ndarray) -> HumanRig:
    """The rig with separate vertices for the triangles ``which`` (T,) bool, at the same positions: seams."""
    triangles, own = rig.body.triangles, np.arange(len(rig.body.rest))
    corners = triangles[which].ravel()
    split = triangles.copy()
    split[which] = len(own) + np.arange(len(corners)).reshape(-1, 3)
    return with_triangles(rig, split, np.concatenate([own, corners]))


def with_triangles(rig: HumanRig, triangles: np.ndarray, vertices: np.ndarray | None = None) -> HumanRig:
    """The rig with ``triangles`` (T, 3) of ``vertices`` (all), renumbered, and no others."""
    used, triangles = np.unique(triangles, return_inverse=True)
    used = used if vertices is None else vertices[used]
    body = Body(rig.body.rest[used], triangles.reshape(-1, 3), np.zeros((0, 2), np.int64))
    return replace(rig, body=body, bones=rig.bones[used], weights=rig.weights[used])
