# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of a solve share: the animation in the solver's units, reduced, and how much each vertex counts."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .reduction import AnimationMatrix, Reduction
from .target_error import Watch


@dataclass(frozen=True, eq=False)
class Prepared:
    """triangles (T, 3); importance (N,), in the mean 1, or None where all vertices count alike."""

    triangles: np.ndarray
    matrix: AnimationMatrix
    reduction: Reduction
    importance: np.ndarray | None = None

    @cached_property
    def squared_norm(self) -> float:
        """‖A‖² in which each vertex counts by its importance."""
        return self.matrix.counted_norm(self.importance)

    def e_rms(self, squared_error: float) -> float:
        """‖TX − A‖² as E_RMS."""
        elements = self.matrix.height * self.matrix.vertex_count
        return 1000.0 * float(np.sqrt(max(squared_error, 0.0) / elements))

    def watching(self, watch: Watch) -> Watch:
        """``watch`` for sweeps, which tell ‖TX − A‖² − ‖A‖²."""
        return lambda sweep, error: watch(sweep, self.e_rms(error + self.squared_norm))
