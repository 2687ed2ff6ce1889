# SPDX-License-Identifier: GPL-3.0-or-later
"""A skin in the making: bones, their transforms and the vertices that follow them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..progress import Progress
from .bone_kinds import AffineBones, BoneKind, StiffBones
from .bone_model import homogeneous
from .prepared import Prepared
from .sweeps import alternate, collect_equations
from .transforms import NormalEquations
from .types import Settings
from .vertex_step import VertexState, single_bones


@dataclass(frozen=True, eq=False)
class Skin:
    """rows: the transforms as ``kind`` has them. errors: ‖TX − A‖² − ‖A‖² after each sweep."""

    kind: BoneKind
    rows: np.ndarray
    state: VertexState
    errors: tuple[float, ...] = ()

    @property
    def bone_count(self) -> int:
        return len(self.rows) // 4

    def improved(
        self,
        sweeps: range,
        optimize_rest_pose: bool,
        progress: Progress,
        watch: Callable[[int, float], None] = lambda sweep, error: None,
    ) -> "Skin":
        """A copy after ``sweeps``; see ``alternate``."""
        rows, state, errors = alternate(
            self.kind, self.rows, self.state.copy(), sweeps, optimize_rest_pose, progress, watch
        )
        return Skin(self.kind, rows, state, (*self.errors, *errors))

    def squared_error(self) -> float:
        """‖TX − A‖² − ‖A‖²."""
        return self._equations(self.state).squared_error(self.rows)

    def fitted_to(self, state: VertexState) -> "Skin":
        """The bones fitted to other vertices, or to the same ones with other bones."""
        return replace(self, rows=self.kind.fit(self._equations(state), self.rows), state=state)

    def _equations(self, state: VertexState) -> NormalEquations:
        return self.kind.of_source(collect_equations(state, self.kind.source, self.bone_count))


def begin(prepared: Prepared, settings: Settings, labels: np.ndarray) -> Skin:
    """A skin in which each vertex follows the bone ``labels`` (N,) alone."""
    matrix, reduction, bone_count = prepared.matrix, prepared.reduction, settings.bone_count
    state = single_bones(homogeneous(matrix.rest_pose()), labels, settings.influences)
    state = replace(state, importance=prepared.importance)
    kind: BoneKind
    if settings.bone_kind == "AFFINE":
        kind = AffineBones(matrix, reduction, bone_count)
    else:
        kind = StiffBones(matrix, reduction, settings.bone_kind == "SCALED")
    equations = collect_equations(state, reduction, bone_count)
    rows = kind.start(equations)
    error = kind.of_source(equations).squared_error(rows) + prepared.squared_norm
    return Skin(kind.for_error(error), rows, state)
