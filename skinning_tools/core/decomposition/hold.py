# SPDX-License-Identifier: GPL-3.0-or-later
"""A pull of solved weights towards those that a mesh has: a ridge on the difference."""

import numpy as np
from scipy import sparse

from .vertex_step import Pull

# In unit-ball units: a mesh with less error has weights that fit, and the pull then counts as for this error.
_LEAST_ERROR = 1e-6
# 1 − amount is at least this.
_FIRMEST = 1e-6


class Hold:
    """strength · ‖w − w₀‖² of each vertex counts beside its squared error. before (N, P): the weights w₀."""

    def __init__(self, before: sparse.csr_matrix, strength: float):
        self._before, self.strength = before, strength

    @classmethod
    def balanced(cls, before: sparse.csr_matrix, amount: float, squared_error: float, elements: int) -> "Hold":
        """A strength of the same meaning on every mesh. squared_error: of the mean vertex by the weights ``before``,
        over ``elements`` numbers.

        With an ``amount`` h from 0 to 1, a change of weights by 1 in the root of the sum of squares costs h / (1 − h)
        times that error: at 0.5, moving the whole weight of a vertex from one bone to another costs twice what an
        average vertex has to gain.
        """
        least = max(squared_error, elements * _LEAST_ERROR**2)
        return cls(before, amount / max(1.0 - amount, _FIRMEST) * least)

    def pull(self, part: np.ndarray) -> Pull:
        """The pull on the vertices ``part`` (n,)."""
        return Pull(np.full(len(part), self.strength), self._before[part].toarray())

    def joined(self, other: Pull, part: np.ndarray) -> Pull:
        """Both pulls on the vertices ``part`` as one."""
        strength = other.strength + self.strength
        means = other.strength[:, None] * other.means + self.strength * self._before[part].toarray()
        return Pull(strength, means / strength[:, None])

    def energy(self, matrix: sparse.csr_matrix) -> float:
        """strength · ‖w − w₀‖² of the weights ``matrix`` (N, P)."""
        change = matrix - self._before
        return self.strength * float(change.multiply(change).sum())
