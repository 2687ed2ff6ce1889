# SPDX-License-Identifier: GPL-3.0-or-later
"""The error that helper bones have to correct, on a rig whose own bones keep their motion."""

from functools import cached_property

import numpy as np

from ..animation import Animation
from ..dense import product
from ..errors import BadWeights
from .bone_model import homogeneous
from .reduction import AnimationMatrix
from .sweeps import vertex_blocks
from .transforms import design_matrix, to_rows

# Vertices with a smaller unlocked share of their weights have no helpers.
LEAST_BUDGET = 1e-6


class HelperTargets:
    """In solver units; arguments as those of ``helper_bones.add_helper_bones``.

    points (N, 4) of the rest pose, homogeneous; own_rows (4P, 3F): Tᵀ of the rig's own bones. bones and weights (N, K)
    of the rig's own bones; locked (P,): bones that keep their weights. budget (N,): the unlocked share of a vertex's
    weights; room (N,): how many helpers it may have. chosen (n,): the vertices that helpers may move.
    """

    def __init__(
        self,
        animation: Animation,
        rest: np.ndarray,
        transforms: np.ndarray,
        bones: np.ndarray,
        weights: np.ndarray,
        most: int,
        locked_bones: np.ndarray | None,
        locked_vertices: np.ndarray | None,
        importance: np.ndarray | None = None,
    ):
        self.matrix = AnimationMatrix(animation.frames, importance)
        points, own = self.matrix.from_object_space(np.asarray(rest, float), np.asarray(transforms, float))
        self.points, self.own_rows = homogeneous(points), to_rows(own)
        self.bones, self.weights = np.asarray(bones), np.asarray(weights, float)
        self.locked = np.zeros(transforms.shape[1], bool) if locked_bones is None else np.asarray(locked_bones, bool)
        held = np.where(self.locked[self.bones], self.weights, 0.0)
        self.budget = np.clip(self.weights.sum(axis=1) - held.sum(axis=1), 0.0, 1.0)
        self.room = most - np.count_nonzero(self.weights, axis=1)
        free = np.ones(len(rest), bool) if locked_vertices is None else ~np.asarray(locked_vertices, bool)
        free &= self.budget > LEAST_BUDGET
        self.chosen = np.flatnonzero(free & (self.room > 0))
        if not len(self.chosen):
            self._refuse(animation.name, most, crowded=bool(free.any()))

    def _refuse(self, name: str, most: int, crowded: bool) -> None:
        if not self.weights.any():
            raise BadWeights(f"No vertex of {name} has weights. Assign some to the rig's own bones first")
        if crowded:
            raise BadWeights(
                f"Every vertex of {name} follows {most} bones already, so no helper bone can move any. Allow more "
                "influences, or limit the influences of the mesh"
            )
        raise BadWeights(f"All weights of {name} are locked, so helper bones cannot take any. Unlock some")

    def _sums(self, part: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Σ w_k φ_k (n, D) over the rig's own bones of the vertices ``part``, with motion ``rows`` (4P, D)."""
        design = design_matrix(self.points[part], self.bones[part], weights, len(self.locked))
        return design @ rows if not isinstance(design, np.ndarray) else product(design, rows)

    def _own(self, part: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What the rig's own bones that are not locked give to the unlocked share of each vertex (n, D)."""
        free = np.where(self.locked[self.bones[part]], 0.0, self.weights[part])
        return self._sums(part, free / self.budget[part, None], rows)

    def _data(self, part: np.ndarray) -> np.ndarray:
        """The target of the unlocked share of each vertex (n, 3F)."""
        locked = self.locked[self.bones[part]]
        data = self.matrix.rows(part)
        if locked.any():
            data -= self._sums(part, np.where(locked, self.weights[part], 0.0), self.own_rows)
        # Rows sum to 1 up to rounding: the rest of the sum is exactly the budget.
        return data / self.budget[part, None]

    def of(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The target of the unlocked share of each vertex (n, 3F), and the position g that the rig's own bones give
        it."""
        return self._data(part), self._own(part, self.own_rows)

    @cached_property
    def _squares(self) -> np.ndarray:
        """(3, n) of each chosen vertex: the squares of what its own bones give it and of what is missing, and the
        product of the two."""
        found = []
        for block in vertex_blocks(len(self.chosen)):
            data, own = self.of(self.chosen[block])
            missing = data - own
            found.append([np.einsum("ij,ij->i", *pair) for pair in ((own, own), (missing, missing), (own, missing))])
        return np.hstack(found)

    def left(self) -> np.ndarray:
        """(n,) squared error of each chosen vertex by its own bones alone."""
        return self.budget[self.chosen] ** 2 * self._squares[1]

    def left_by(self, rows: np.ndarray) -> np.ndarray:
        """(n,) squared error of each chosen vertex if a helper of these rows (4, 3F) alone joins its own bones."""
        across, gram = self.own_rows @ rows.T, rows @ rows.T
        left = np.empty(len(self.chosen))
        for block in vertex_blocks(len(self.chosen)):
            part, (own, missing, both) = self.chosen[block], self._squares[:, block]
            points, own_across = self.points[part], self._own(part, across)
            # Of the step from the own bones to the helper: its square, and its product with what is missing.
            length = np.einsum("ni,ij,nj->n", points, gram, points) + own
            length -= 2.0 * np.einsum("ni,ni->n", points, own_across)
            along = np.einsum("ni,ni->n", points, self._data(part) @ rows.T - own_across) - both
            share = np.clip(along / np.where(length > 0, length, np.inf), 0.0, 1.0)
            left[block] = np.maximum(missing - share * (2.0 * along - share * length), 0.0)
        return self.budget[self.chosen] ** 2 * left
