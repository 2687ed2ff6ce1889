# SPDX-License-Identifier: GPL-3.0-or-later
"""A finished EigenSkin (Kry, James, Pai 2002): evaluated from the joints' rotations, and compared with its examples."""

from dataclasses import dataclass

import numpy as np

from ..deform import vertex_transforms
from .pairs import pair_features
from .pose_space import PoseSpace
from .types import Examples, Rig


@dataclass(frozen=True, eq=False)
class Support:
    """The part of the surface that a joint corrects, or a pair of joints, and its components.

    joints: one or two indices. mask (N,) from 0 to 1. vertices (n,) where the mask is above zero. components
    (k, n, 3): displacements of the rest pose at value 1. normal_components (k, n, 3) or None. basis_weights (M, k):
    values are the features of the pose times these. centers (M, 2): for a pair, what each feature multiplies.
    limits (k,): values are clamped to ± these, as by the ends of a shape key's slider. singular_values (R,): of all
    possible components.
    """

    name: str
    joints: tuple[int, ...]
    mask: np.ndarray
    vertices: np.ndarray
    components: np.ndarray
    normal_components: np.ndarray | None
    basis_weights: np.ndarray
    centers: np.ndarray | None
    limits: np.ndarray
    singular_values: np.ndarray

    @property
    def captured(self) -> np.ndarray:
        """(R,) the share of the displacements' sum of squares that the first 1, 2, … components hold."""
        squares = self.singular_values**2
        return np.cumsum(squares) / squares.sum()


@dataclass(frozen=True, eq=False)
class EigenSkin:
    """spaces: of the joints that drive something, by index. notes: on the examples, for the user."""

    joint_names: tuple[str, ...]
    vertex_count: int
    spaces: dict[int, PoseSpace]
    supports: tuple[Support, ...]
    notes: tuple[str, ...]

    @property
    def component_count(self) -> int:
        return sum(len(support.components) for support in self.supports)

    def features(self, support: Support, rotations: np.ndarray) -> np.ndarray:
        """(F, M) the basis of ``support`` at poses with ``rotations`` (F, J, 4)."""
        if support.centers is None:
            (joint,) = support.joints
            return self.spaces[joint].features(rotations[:, joint])
        first, second = support.joints
        return pair_features(
            self.spaces[first], self.spaces[second], support.centers, rotations[:, first], rotations[:, second]
        )

    def values(self, rotations: np.ndarray) -> np.ndarray:
        """(F, C) the value of every component, support by support, at poses with ``rotations`` (F, J, 4)."""
        parts = [
            np.clip(self.features(support, rotations) @ support.basis_weights, -support.limits, support.limits)
            for support in self.supports
        ]
        return np.concatenate([np.zeros((len(rotations), 0)), *parts], axis=1)

    def displacements(self, values: np.ndarray) -> np.ndarray:
        """(N, 3) of the rest pose, for one pose's ``values`` (C,)."""
        result = np.zeros((self.vertex_count, 3))
        start = 0
        for support in self.supports:
            end = start + len(support.components)
            result[support.vertices] += np.tensordot(values[start:end], support.components, axes=1)
            start = end
        return result

    def components_per_vertex(self) -> np.ndarray:
        """(N,) how many components each vertex is in."""
        counts = np.zeros(self.vertex_count, int)
        for support in self.supports:
            counts[support.vertices] += len(support.components)
        return counts


@dataclass(frozen=True, eq=False)
class ExampleErrors:
    """Distances from each example's shape, by plain linear blending and with the corrections.

    before, after (E,): root mean square over all vertices; worst_vertex (E,) and worst_distance (E,): with the
    corrections; per_vertex_before and per_vertex_after (N,): the largest over all examples.
    """

    before: np.ndarray
    after: np.ndarray
    worst_vertex: np.ndarray
    worst_distance: np.ndarray
    per_vertex_before: np.ndarray
    per_vertex_after: np.ndarray

    @property
    def relative(self) -> float:
        """The remaining error divided by the error of linear blending, over all examples; 0 where that has none."""
        before = np.linalg.norm(self.before)
        return float(np.linalg.norm(self.after) / before) if before > 0 else 0.0


def example_errors(rig: Rig, examples: Examples, model: EigenSkin, stretch: np.ndarray | None = None) -> ExampleErrors:
    """How close ``model`` comes to ``examples``.

    stretch (3, 3): from the mesh's space to the space in which distances are measured; by default the mesh's own.
    """
    count = len(examples.shapes)
    before, after, worst = np.zeros(count), np.zeros(count), np.zeros(count, int)
    largest = np.zeros(count)
    per_vertex = np.zeros((2, len(rig.rest)))
    for index, values in enumerate(model.values(examples.rotations)):
        transforms = vertex_transforms(rig.rest, rig.bones, rig.weights, examples.matrices[index])
        plain = examples.shapes[index] - (np.einsum("nij,nj->ni", transforms[..., :3], rig.rest) + transforms[..., 3])
        left = plain - np.einsum("nij,nj->ni", transforms[..., :3], model.displacements(values))
        missing = np.stack([plain, left])
        distances = np.linalg.norm(missing if stretch is None else missing @ stretch.T, axis=-1)
        before[index], after[index] = np.sqrt(np.mean(distances**2, axis=1))
        worst[index] = np.argmax(distances[1])
        largest[index] = distances[1, worst[index]]
        np.maximum(per_vertex, distances, out=per_vertex)
    return ExampleErrors(before, after, worst, largest, *per_vertex)
