# SPDX-License-Identifier: GPL-3.0-or-later
"""A support while it is being made: what it corrects, where, and with how many components."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .basis import Basis, eigendisplacements
from .fewer import Fitted
from .model import NormalBasis, Support
from .pairs import PairTrial, pair_features
from .pose_space import PoseSpace
from .posed_values import PosedRegion
from .types import LARGEST_SLIDER

# Poses that the components are to suit: all over the joint's range. The quadratic functions of a ball are worth nearly
# the same: with a tenth of these poses it would be chance which of them few components hold. There are fewer, but so
# many at least, where the poses times the examples would be more than the last number.
_PREDICTED, _LEAST_PREDICTED, _ELEMENTS = 20_000, 1500, 1_000_000

# The number of poses that are searched for the largest value of a component; how far they go beyond the range of the
# examples, as a share of its half width; and by which factor a slider reaches beyond the largest value.
_SAMPLES = 4000
_BEYOND = 1 / 3
_MARGIN = 1.2

# The parts of the signals.
_SHAPES, _NORMALS = slice(0, 3), slice(3, 6)

# Components of a pair of joints where the settings leave their number open.
_PAIR_COUNT = 3


@dataclass(eq=False)
class Draft(ABC):
    """A support of one joint or two: ``JointDraft`` or ``PairDraft``.

    region (n,): vertices that may belong to it. observed (M, n, C): displacements there, and corrections of normals.
    strength (n,) of the displacements; wanted and wanted_normals (n,): the masks of this support alone; mask (n,) and
    count of components: those that remain beside the other supports. normal_count: components of the normals.
    """

    name: str
    joints: tuple[int, ...]
    region: np.ndarray
    observed: np.ndarray
    strength: np.ndarray
    wanted: np.ndarray
    wanted_normals: np.ndarray
    mask: np.ndarray = field(init=False)
    count: int = field(init=False, default=0)
    normal_count: int = field(init=False, default=0)

    def basis(self) -> Basis:
        return eigendisplacements(_masked(self.observed[..., _SHAPES], self.mask), self.prediction)

    @cached_property
    def prediction(self) -> np.ndarray | None:
        """(S, M) what takes the observations to the displacements that the components are to suit; None for the
        observations themselves."""
        return None

    @property
    @abstractmethod
    def natural_count(self) -> int:
        """The number of components where the settings leave it open."""

    @abstractmethod
    def solved(self, values: np.ndarray) -> np.ndarray:
        """(B, …) the basis weights that give ``values`` (M, …) at the observations, and nothing at rest."""

    def _weights(self, coordinates: np.ndarray, vectors: np.ndarray, part: slice, mask: np.ndarray) -> np.ndarray:
        """(B, k) the basis weights of components ``vectors`` (k, m, 3), whose ``coordinates`` (M, k) the observations
        have. part: of the signals, and mask (n,): what they are components of."""
        return self.solved(coordinates)

    @abstractmethod
    def _sampled_features(self, spaces: dict[int, PoseSpace]) -> np.ndarray:
        """(S, B) the basis all over the joint's, or joints', range: at the centers, and at poses between and beyond."""

    def _pair_centers(self) -> np.ndarray | None:
        """The centers of a pair of joints; see ``Support``."""
        return None

    def support(self, vertex_count: int, spaces: dict[int, PoseSpace]) -> Support:
        """spaces: of all joints."""
        features, basis = self._sampled_features(spaces), self.basis()
        components, weights, limits = self._components(basis, self.count, _SHAPES, self.mask, features)
        mask = np.zeros(vertex_count, np.float32)
        mask[self.region] = self.mask
        return Support(
            self.name,
            self.joints,
            mask,
            self.region[self.mask > 0],
            components,
            self._normals(features) if self.observed.shape[-1] == 6 else None,
            weights,
            self._pair_centers(),
            limits,
            basis.singular_values,
        )

    def _normals(self, features: np.ndarray) -> NormalBasis:
        """Components of the normals' corrections in the examples themselves, as in the paper."""
        # Less where other supports have taken the room.
        left = np.divide(self.mask, self.wanted, out=np.ones(len(self.mask)), where=self.wanted > 0)
        mask = self.wanted_normals * left
        basis = eigendisplacements(_masked(self.observed[..., _NORMALS], mask))
        return NormalBasis(self.region[mask > 0], *self._components(basis, self.normal_count, _NORMALS, mask, features))

    def _components(
        self, basis: Basis, most: int, part: slice, mask: np.ndarray, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Up to ``most`` components (k, m, 3) of a part of the signals, their basis weights (B, k) and limits (k,).
        features (S, B): all over the range."""
        count = min(most, len(basis.singular_values))
        coordinates, vectors = basis.coordinates[:, :count], basis.vectors[:count]
        weights = self._weights(coordinates, vectors, part, mask)
        bounds = _MARGIN * np.abs(features @ weights).max(axis=0)
        # The largest value at an observation is 1, unless the values between them would not fit on a slider.
        sizes = np.maximum(np.abs(coordinates).max(axis=0), bounds / LARGEST_SLIDER)
        return vectors * sizes[:, None, None], weights / sizes, np.maximum(bounds / sizes, 1.0)


@dataclass(eq=False)
class JointDraft(Draft):
    """A support of one joint. observed: at the centers of ``known`` but the rest pose. posed: its vertices there, if
    that is known. fitted: fewer functions than these, if there are."""

    known: PoseSpace
    posed: PosedRegion | None = None
    fitted: Fitted | None = None

    @property
    def space(self) -> PoseSpace:
        """Of the joint's functions."""
        return self.known if self.fitted is None else self.fitted.space

    @cached_property
    def prediction(self) -> np.ndarray:
        """At poses all over the joint's range."""
        examples = len(self.observed)
        count = min(_PREDICTED, max(_LEAST_PREDICTED, _ELEMENTS // examples))
        return self.space.features(self.known.samples(count)) @ self.solved(np.eye(examples))

    @property
    def natural_count(self) -> int:
        return self.known.natural_count

    def solved(self, values: np.ndarray) -> np.ndarray:
        """Exact at the observations, or with fewer functions as close as these come."""
        return self.known.weights(values) if self.fitted is None else self.fitted.weights(values)

    def _weights(self, coordinates: np.ndarray, vectors: np.ndarray, part: slice, mask: np.ndarray) -> np.ndarray:
        if self.posed is None or part != _SHAPES:
            return self.solved(coordinates)
        return self.solved(self.posed.values(_masked(self.observed[..., part], mask), vectors, mask > 0))

    def _sampled_features(self, spaces: dict[int, PoseSpace]) -> np.ndarray:
        return self.space.features(_sampled_rotations(self.known))


@dataclass(eq=False)
class PairDraft(Draft):
    """A support of two joints. observed: what its ``trial`` explains of M ``examples``; residuals (M, n, C): what it
    had to explain."""

    joints: tuple[int, int]
    trial: PairTrial
    residuals: np.ndarray
    examples: np.ndarray

    @property
    def natural_count(self) -> int:
        return _PAIR_COUNT

    def solved(self, values: np.ndarray) -> np.ndarray:
        """The weights that come close to the values in the examples."""
        return np.tensordot(self.trial.solver, values, axes=1)

    def _weights(self, coordinates: np.ndarray, vectors: np.ndarray, part: slice, mask: np.ndarray) -> np.ndarray:
        left = _masked(self.residuals[..., part], mask)
        return self.solved(left.reshape(len(left), -1) @ vectors.reshape(len(vectors), -1).T)

    def _pair_centers(self) -> np.ndarray:
        return self.trial.centers

    def _sampled_features(self, spaces: dict[int, PoseSpace]) -> np.ndarray:
        samples = [_sampled_rotations(spaces[joint], seed) for seed, joint in enumerate(self.joints)]
        one, other = (spaces[joint] for joint in self.joints)
        # All pairs of centers too, where the largest values are.
        first, second = np.indices((len(one.centers), len(other.centers))).reshape(2, -1)
        samples[0] = np.concatenate([samples[0], one.centers[first]])
        samples[1] = np.concatenate([samples[1], other.centers[second]])
        return pair_features(one, other, self.trial.centers, *samples)


def _masked(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """``values`` (M, n, 3) of a region, as (M, m, 3) where ``mask`` (n,) is above zero."""
    inside = mask > 0
    return values[:, inside] * mask[inside, None]


def _sampled_rotations(space: PoseSpace, seed: int = 0) -> np.ndarray:
    """(_SAMPLES, 4) the centers, and rotations between and beyond them."""
    samples = space.samples(_SAMPLES, _BEYOND, seed)
    samples[: len(space.centers)] = space.centers[:_SAMPLES]
    return samples
