# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of components with which the posed skin, not the rest pose, comes closest to the examples."""

from dataclasses import dataclass

import numpy as np

from .. import dense
from ..deform import vertex_transforms


@dataclass(frozen=True, eq=False)
class PosedRegion:
    """Some vertices in the poses of M examples: rest (n, 3), bones and weights (n, K), matrices (M, P, 3, 4)."""

    rest: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    matrices: np.ndarray

    def values(self, displacements: np.ndarray, components: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """(M, k) factors of ``components`` (k, m, 3) with which the blended vertices ``inside`` (n,) bool, m of them,
        come closest to where ``displacements`` (M, m, 3) of the rest pose bring them."""
        rest, bones, weights = (part[inside] for part in (self.rest, self.bones, self.weights))
        result = np.empty((len(self.matrices), len(components)))
        for row, matrices in enumerate(self.matrices):
            blended = vertex_transforms(rest, bones, weights, matrices)[..., :3]
            parts = np.einsum("nij,knj->kni", blended, components).reshape(len(components), -1)
            wanted = np.einsum("nij,nj->ni", blended, displacements[row]).reshape(-1, 1)
            # The least squares of the normal equations hold where blending flattens a component.
            result[row] = np.linalg.lstsq(dense.product(parts, parts.T), dense.product(parts, wanted), rcond=None)[0].T
        return result
