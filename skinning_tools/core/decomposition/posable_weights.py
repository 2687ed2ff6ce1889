# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of an edited skeleton that hold when it is posed, as far as its user lets them change."""

import numpy as np

from ..binding.influence_rows import padded_influences, tidy_influences
from ..dense import one_blas_thread
from ..progress import ignore
from ..strongest import strongest_first
from .bone_model import BoneModel, homogeneous
from .idle_influences import without_idle_influences
from .near_weights import PoseLimits
from .partial import Given
from .partial_transforms import skin_equations
from .reduction import AnimationMatrix
from .transforms import to_rows
from .vertex_step import VertexState


class PosableWeights:
    """Keeps weights within the limits of posing, but for vertices that the user has locked, or with weights of locked
    bones."""

    def __init__(
        self,
        matrix: AnimationMatrix,
        rest: np.ndarray,
        start: Given,
        parents: np.ndarray,
        max_influences: int,
        importance: np.ndarray | None,
    ):
        """matrix: of the animation; rest (N, 3); start: the weights, and what is locked; parents (P,)."""
        self._rest, self._parents, self._locked = rest, parents, start.locked_bones
        self._max_influences, self._importance = max_influences, importance
        self._whole = matrix
        held = start.locked_vertices | (start.locked_bones[start.bones] & (start.weights > 0)).any(axis=1)
        self._free = np.flatnonzero(~held)
        self._matrix = matrix.of_vertices(self._free) if held.any() else matrix

    @one_blas_thread()
    def limited(
        self,
        transforms: np.ndarray,
        heads: np.ndarray,
        skin: tuple[np.ndarray, np.ndarray],
        former: tuple[np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """bones and weights (N, K) within the limits about ``heads`` (P, 3), from those of ``skin``, or as they were in
        ``former``, without idle influences."""
        bones, weights = skin[0].copy(), skin[1].copy()
        # Of vertices with locked bones, rows may be wider.
        width = min(self._max_influences, bones.shape[1])
        state = self._state(bones[:, :width], weights[:, :width])
        earlier = tidy_influences(former[0][self._free], former[1][self._free], width)
        before = VertexState(state.points, *padded_influences(*earlier, width))
        model = BoneModel(to_rows(self._matrix.from_object_space(self._rest, transforms)[1]))
        limits = self._limits(heads)
        limits.keep(model, state, self._matrix, optimize_rest_pose=False, former=before)
        state.bones, state.weights = strongest_first(state.bones, state.weights)
        state = without_idle_influences(model, state, self._matrix, limits, optimize_rest_pose=False)
        kept = padded_influences(state.bones, state.weights, bones.shape[1])
        bones[self._free], weights[self._free] = kept
        return bones, weights

    def broken(self, heads: np.ndarray, skin: tuple[np.ndarray, np.ndarray]) -> bool:
        """Whether some weights of ``skin`` are beyond the limits about ``heads`` (P, 3)."""
        return bool(self._limits(heads).broken(self._state(*skin)).any())

    @one_blas_thread()
    def squared_error(self, transforms: np.ndarray, skin: tuple[np.ndarray, np.ndarray]) -> float:
        """Of all vertices by their importance, less that of vertices at 0, in solver units."""
        points, motion = self._whole.from_object_space(self._rest, transforms)
        given = homogeneous(points), *skin, len(self._parents)
        return skin_equations(self._whole, *given, ignore, self._importance).squared_error(to_rows(motion))

    def _limits(self, heads: np.ndarray) -> PoseLimits:
        frame_count = self._matrix.height // 3
        return PoseLimits(self._parents, self._matrix.points_from_object_space(heads), frame_count, self._locked)

    def _state(self, bones: np.ndarray, weights: np.ndarray) -> VertexState:
        points = homogeneous(self._matrix.points_from_object_space(self._rest[self._free]))
        importance = None if self._importance is None else self._importance[self._free]
        return VertexState(points, bones[self._free], weights[self._free], importance)
