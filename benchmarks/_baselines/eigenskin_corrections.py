# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of skinning as a few displacements of the rest pose (Kry, James & Pai 2002; James & Twigg 2005).

The required displacement of every vertex in every frame is compressed by a truncated singular value decomposition of
the matrix (3N, F): ten shapes, and ten numbers per frame.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from skinning_tools.core.animation import Animation
from skinning_tools.core.deform import skin_frame, vertex_transforms

from .approximations import Skinned

COMPONENTS = 10
# A blend of bones that nearly flattens a vertex's surroundings would require unbounded displacements.
_DAMPING = 1e-2
_ROUNDS = 3


@dataclass(frozen=True)
class Corrected:
    """``skinned`` from a rest pose that the shapes (r, N, 3) displace by the numbers of each frame (F, r)."""

    skinned: Skinned
    shapes: np.ndarray
    keys: np.ndarray

    def frame(self, row: int) -> np.ndarray:
        displaced = self.skinned.rest + np.tensordot(self.keys[row], self.shapes, axes=1)
        return skin_frame(displaced, self.skinned.bones, self.skinned.weights, self.skinned.transforms[row])


def correct(animation: Animation, skinned: Skinned, components: int = COMPONENTS) -> Corrected:
    """The shapes for the error of ``skinned`` against ``animation``.

    The decomposition minimizes the error in the rest pose, but the error in the frames counts: so keys and shapes are
    then fitted to the frames alternately, a few times.
    """
    linear, missing = _linear_parts_and_residuals(animation, skinned)
    system = np.einsum("fnji,fnjk->fnik", linear, linear)
    system += _DAMPING * np.einsum("fnii->fn", system)[..., None, None] / 3.0 * np.eye(3)
    displacements = np.linalg.solve(system, np.einsum("fnji,fnj->fni", linear, missing)[..., None])[..., 0]
    count = min(components, len(displacements))
    left, sizes, right = scipy.linalg.svd(displacements.reshape(len(displacements), -1), full_matrices=False)
    keys, shapes = left[:, :count] * sizes[:count], right[:count].reshape(count, -1, 3)
    del displacements, system
    for _ in range(_ROUNDS):
        shapes = _fitted_shapes(linear, missing, keys)
        keys = _fitted_keys(linear, missing, shapes)
    return Corrected(skinned, shapes, keys)


def _linear_parts_and_residuals(animation, skinned) -> tuple[np.ndarray, np.ndarray]:
    """(F, N, 3, 3) the linear part of each vertex's transform, and (F, N, 3) the error of skinning."""
    linear = np.empty((*animation.frames.shape, 3))
    missing = np.empty(animation.frames.shape)
    for row, positions in enumerate(animation.frames):
        linear[row] = vertex_transforms(skinned.rest, skinned.bones, skinned.weights, skinned.transforms[row])[..., :3]
        missing[row] = positions - skinned.frame(row)
    return linear, missing


def _fitted_shapes(linear, missing, keys) -> np.ndarray:
    """(r, N, 3) that are best for the given ``keys`` (F, r), each vertex separately."""
    count, vertices = keys.shape[1], linear.shape[1]
    shapes = np.empty((count, vertices, 3))
    for start in range(0, vertices, 512):
        part = slice(start, start + 512)
        turned = np.einsum("fnji,fnjk->fnik", linear[:, part], linear[:, part])
        system = np.einsum("fr,fs,fnik->nrisk", keys, keys, turned, optimize=True)
        right = np.einsum("fr,fnji,fnj->nri", keys, linear[:, part], missing[:, part], optimize=True)
        system = system.reshape(len(system), 3 * count, 3 * count)
        size = np.einsum("nii->n", system)[:, None, None]
        system += 1e-9 * np.where(size > 0, size, 1.0) * np.eye(3 * count)
        solved = np.linalg.solve(system, right.reshape(len(right), -1, 1))
        shapes[:, part] = solved.reshape(-1, count, 3).transpose(1, 0, 2)
    return shapes


def _fitted_keys(linear, missing, shapes) -> np.ndarray:
    """(F, r) that are best for the given ``shapes`` (r, N, 3), each frame separately."""
    keys = np.empty((len(linear), len(shapes)))
    for row in range(len(linear)):
        moved = np.einsum("nij,rnj->nir", linear[row], shapes).reshape(-1, len(shapes))
        keys[row] = np.linalg.lstsq(moved, missing[row].ravel(), rcond=None)[0]
    return keys
