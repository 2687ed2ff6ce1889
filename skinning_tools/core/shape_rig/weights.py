# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of vertices for given motions of the bones, each for what its neighbors are at present."""

import numpy as np

from ..decomposition.bone_model import monomials
from ..decomposition.vertex_step import fit_strongest
from ..decomposition.weights import descend
from ..dense import product
from .mirror import Mirror
from .state import set_weights
from .surface import SurfaceError

_NEWCOMERS = 1
_ROUGH_STEPS = 12


class WeightStep:
    """Improves the weights for ``transforms`` (4P, 3S): what the bones add to a point in all shapes.

    points (N, 4); bones, weights (N, K) and errors (N, 3, S), which are changed in place; mirror: by which other
    vertices follow those that are improved.
    """

    def __init__(
        self,
        points: np.ndarray,
        transforms: np.ndarray,
        bones: np.ndarray,
        weights: np.ndarray,
        errors: np.ndarray,
        surface: SurfaceError,
        mirror: Mirror | None = None,
    ):
        self.points, self.bones, self.weights, self.errors = points, bones, weights, errors
        self.transforms, self.surface, self.mirror = transforms, surface, mirror
        self.gains = np.zeros(len(points))
        self.bone_count = len(transforms) // 4
        blocks = transforms.reshape(self.bone_count, 4, -1)
        # Factors such that the monomials of a point times these are the squared lengths of what each bone adds to it.
        rows, columns = np.triu_indices(4)
        twice = np.where(rows == columns, 1.0, 2.0)
        self.squares = np.einsum("pad,pbd->abp", blocks, blocks)[rows, columns] * twice[:, None]

    def improve(self, part: np.ndarray) -> None:
        """Better bones and weights for the vertices ``part`` (n,), none of which share a term of the error. ``gains``
        stores by how much the error fell."""
        if not len(part):
            return
        count, influences = len(part), self.bones.shape[1]
        everyone, points, own = np.arange(count), self.points[part], self.surface.own[part]
        rows = (3 * part[:, None] + np.arange(3)).ravel()
        slope = (self.surface.matrix[rows] @ self.errors.reshape(3 * len(self.errors), -1)).reshape(count, -1)
        now = np.zeros((count, self.bone_count))
        np.add.at(now, (everyone[:, None], self.bones[part]), self.weights[part])
        blend = product((now[:, :, None] * points[:, None]).reshape(count, -1), self.transforms)
        candidates = self._candidates(points, now, slope, blend, own)
        # How far the vertex's error should change, its neighbors held.
        wanted = blend - np.linalg.solve(own, slope.reshape(count, 3, -1)).reshape(count, -1)
        # In these coordinates, the vertex's own part of the error is the square of a length.
        stretch = np.linalg.cholesky(own).transpose(0, 2, 1)
        left = np.empty((count, candidates.shape[1], blend.shape[1]))
        for bone, block in enumerate(self.transforms.reshape(self.bone_count, 4, -1)):
            using = np.nonzero(candidates == bone)
            if len(using[0]):
                left[using] = product(points[using[0]], block)
        left -= wanted[:, None]
        left = np.matmul(stretch[:, None], left.reshape(count, -1, 3, blend.shape[1] // 3)).reshape(left.shape)
        gram = np.ascontiguousarray(np.matmul(left, left.transpose(0, 2, 1)).transpose(1, 2, 0))
        data = np.zeros(gram.shape[1:])
        present = np.ascontiguousarray(np.take_along_axis(now, candidates, axis=1).T)
        before = np.einsum("in,ijn,jn->n", present, gram, present)
        rough = descend(gram, data, present.copy(), _ROUGH_STEPS) if len(gram) > influences else present
        places, fitted, cost = fit_strongest(gram, data, rough, influences)
        better = cost < before
        self.gains[part] = np.maximum(before - cost, 0.0)
        if better.any():
            chosen = candidates[everyone[better], places[:, better]]
            self._take(part[better], chosen, fitted[:, better], points[better], blend[better])
            if self.mirror is not None:
                self.mirror.follow(part[better], self.bones, self.weights, self.errors)

    def _candidates(
        self, points: np.ndarray, now: np.ndarray, slope: np.ndarray, blend: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """The bones in use (n, K or K + newcomers) and those that a step toward them seems to help most."""
        count, kept = len(points), min(self.bones.shape[1] + _NEWCOMERS, self.bone_count)
        if kept == self.bone_count:
            return np.tile(np.arange(kept), (count, 1))

        def with_bones(vectors: np.ndarray) -> np.ndarray:
            """(n, P): inner products of ``vectors`` (n, 3S) with what each bone adds to the point."""
            found = product(vectors, self.transforms.T).reshape(count, -1, 4)
            return np.einsum("npa,na->np", found, points)

        down = np.einsum("nd,nd->n", slope, blend)[:, None] - with_bones(slope)
        squares = product(monomials(points), self.squares)
        length = squares - 2.0 * with_bones(blend) + np.einsum("nd,nd->n", blend, blend)[:, None]
        length *= np.einsum("nii->n", own)[:, None] / 3.0
        step = np.clip(down / np.where(length > 0, length, np.inf), 0.0, 1.0)
        gain = step * (2.0 * down - step * length)
        gain[now > 0] = np.inf
        return np.argpartition(-gain, kept - 1, axis=1)[:, :kept]

    def _take(
        self, part: np.ndarray, bones: np.ndarray, fitted: np.ndarray, points: np.ndarray, blend: np.ndarray
    ) -> None:
        """Set weights (K, n) of bones (K, n) for the vertices, strongest first, and bring their errors up to date."""
        now = np.zeros((len(part), self.bone_count))
        np.add.at(now, (np.arange(len(part)), bones), fitted)
        if self.mirror is not None:
            middle = self.mirror.middle[part]
            now[middle] = self.mirror.balanced(now[middle], self.bones.shape[1])
        set_weights(self.bones, self.weights, part, now)
        now[:] = 0.0
        np.add.at(now, (np.arange(len(part))[:, None], self.bones[part]), self.weights[part])
        blended = product((now[:, :, None] * points[:, None]).reshape(len(part), -1), self.transforms)
        self.errors[part] += (blended - blend).reshape(len(part), 3, -1)
