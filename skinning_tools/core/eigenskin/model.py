# SPDX-License-Identifier: GPL-3.0-or-later
"""A finished EigenSkin (Kry, James, Pai 2002): evaluated from the joints' rotations, and compared with its examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..deform import skin_frame, vertex_transforms
from .pairs import pair_features
from .pose_space import PoseSpace
from .types import Examples, Rig


@dataclass(frozen=True, eq=False)
class Support:
    """The part of the surface that a joint corrects, or a pair of joints, and its components.

    joints: one or two indices. mask (N,) from 0 to 1. vertices (n,) where the mask is above zero. components
    (k, n, 3): displacements of the rest pose at value 1. normals: their corrections, or None. basis_weights (M, k):
    values are the features of the pose times these. centers (M, 2): for a pair, what each feature multiplies.
    limits (k,): values are clamped to ± these, as by the ends of a shape key's slider. singular_values (R,): of all
    possible components.
    """

    name: str
    joints: tuple[int, ...]
    mask: np.ndarray
    vertices: np.ndarray
    components: np.ndarray
    normals: "NormalBasis | None"
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
class NormalBasis:
    """Corrections of the rest pose's unit normals, by components and values of their own (EigenSkin, section 2).

    vertices (n,), those with any; components (k, n, 3) at value 1; basis_weights (M, k) and limits (k,) as those of the
    ``Support``, on the same features.
    """

    vertices: np.ndarray
    components: np.ndarray
    basis_weights: np.ndarray
    limits: np.ndarray


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
        return self._clamped(rotations, [(support, support) for support in self.supports])

    def normal_values(self, rotations: np.ndarray) -> np.ndarray:
        """(F, C) the value of every component of the normals, as ``values``; none where the model has no normals."""
        return self._clamped(rotations, self._with_normals)

    def without_normals(self) -> "EigenSkin":
        return replace(self, supports=tuple(replace(support, normals=None) for support in self.supports))

    def _clamped(self, rotations: np.ndarray, pairs: Sequence[tuple[Support, Support | NormalBasis]]) -> np.ndarray:
        parts = [
            np.clip(self.features(support, rotations) @ part.basis_weights, -part.limits, part.limits)
            for support, part in pairs
        ]
        return np.concatenate([np.zeros((len(rotations), 0)), *parts], axis=1)

    def displacements(self, values: np.ndarray) -> np.ndarray:
        """(N, 3) of the rest pose, for one pose's ``values`` (C,)."""
        return self._added(values, self.supports)

    def normal_corrections(self, values: np.ndarray) -> np.ndarray:
        """(N, 3) to add to the rest pose's unit normals, for one pose's ``normal_values`` (C,)."""
        return self._added(values, [normals for _, normals in self._with_normals])

    @property
    def _with_normals(self) -> list[tuple[Support, NormalBasis]]:
        return [(support, support.normals) for support in self.supports if support.normals is not None]

    def _added(self, values: np.ndarray, parts: Sequence[Support | NormalBasis]) -> np.ndarray:
        result = np.zeros((self.vertex_count, 3))
        start = 0
        for part in parts:
            end = start + len(part.components)
            result[part.vertices] += np.tensordot(values[start:end], part.components, axes=1)
            start = end
        return result


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


def example_errors(
    rig: Rig,
    examples: Examples,
    model: EigenSkin,
    stretch: np.ndarray | None = None,
    unhelped: tuple[Rig, Examples] | None = None,
) -> ExampleErrors:
    """How close ``model`` comes to ``examples``.

    stretch (3, 3): from the mesh's space to the space in which distances are measured; by default the mesh's own.
    unhelped: the rig and the examples whose plain linear blending is the error before; by default the same.
    """
    plain_rig, plain_examples = unhelped or (rig, examples)
    count = len(examples.shapes)
    before, after, worst = np.zeros(count), np.zeros(count), np.zeros(count, int)
    largest = np.zeros(count)
    per_vertex = np.zeros((2, len(rig.rest)))
    for index, values in enumerate(model.values(examples.rotations)):
        transforms = vertex_transforms(rig.rest, rig.bones, rig.weights, examples.matrices[index])
        corrected = rig.rest + model.displacements(values)
        shown = np.einsum("nij,nj->ni", transforms[..., :3], corrected) + transforms[..., 3]
        plain = skin_frame(rig.rest, plain_rig.bones, plain_rig.weights, plain_examples.matrices[index])
        missing = examples.shapes[index] - np.stack([plain, shown])
        distances = np.linalg.norm(missing if stretch is None else missing @ stretch.T, axis=-1)
        before[index], after[index] = np.sqrt(np.mean(distances**2, axis=1))
        worst[index] = np.argmax(distances[1])
        largest[index] = distances[1, worst[index]]
        np.maximum(per_vertex, distances, out=per_vertex)
    return ExampleErrors(before, after, worst, largest, *per_vertex)
