# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that only rotate and translate (RIGID), or stretch along their own axes as well (SCALED).

Both are weighted Procrustes problems that need no vertex, only the normal equations: with S = X Xᵀ and D = A Xᵀ, bone j
of a frame sees the data less what the other bones explain, E_j = D_j − Σ_{k≠j} M_k S_kj (3, 4). Sweeps over the bones,
all frames at once, lower the same error as the affine solve.
"""

import numpy as np

from ..dense import product
from .transforms import NormalEquations, from_rows, to_rows

# A bone neither collapses nor explodes: its scales stay between these.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-3, 1e3
# Along an axis where a bone's vertices have less than this extent (squared, of the unit ball), its scale tends to stay.
_SMALLEST_EXTENT = 1e-6


def fit_alone(products: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """The rotation and translation of each bone that best carry its own vertices, other bones left aside.

    products Dᵀ (4P, 3F), moments (P, 4, 4) of each bone alone: (F, P, 3, 4).
    """
    blocks = from_rows(products)
    return np.stack([_procrustes(blocks[:, j], moments[j], None)[0] for j in range(len(moments))], axis=1)


def sweep(equations: NormalEquations, transforms: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """One pass over the bones, each set to its optimum while the others stand still. (F, P, 3, 4) in and out.

    axes (P, 3, 3): None for rotations and translations; else a bone is R · diag(s) · axesᵀ and a translation, with
    its scales s along the columns of its axes. Bones without vertices keep their motion.
    """
    bone_count = transforms.shape[1]
    rows = to_rows(transforms)
    moments = equations.moments.reshape(bone_count, 4, bone_count, 4)
    typical = float(np.einsum("kiki->", moments[:, 3:, :, 3:])) / bone_count
    for j in range(bone_count):
        own = moments[j, :, j]
        if own[3, 3] <= 1e-9 * typical:
            continue
        part = slice(4 * j, 4 * j + 4)
        seen = equations.products[part] - product(equations.moments[part], rows) + own @ rows[part]
        current = from_rows(rows[part])[:, 0]
        fitted = _procrustes(from_rows(seen)[:, 0], own, None if axes is None else axes[j], current)[0]
        rows[part] = to_rows(fitted[:, None])
    return from_rows(rows)


def _procrustes(data, moment, axes, current=None):
    """Best motion (F, 3, 4) of one bone: data E (F, 3, 4), moment Σ w² v vᵀ (4, 4); and its scales (F, 3)."""
    mass = moment[3, 3] if moment[3, 3] > 0 else 1.0
    center = moment[:3, 3] / mass
    covariance = data[:, :, :3] - data[:, :, 3:] * center
    spread = moment[:3, :3] - mass * np.outer(center, center)
    if axes is None:
        linear, scales = _rotation(covariance), np.ones((len(data), 3))
    else:
        linear, scales = _rotation_and_scales(covariance, spread, mass, axes, current)
    motion = np.empty((len(data), 3, 4))
    motion[:, :, :3] = linear
    motion[:, :, 3] = data[:, :, 3] / mass - linear @ center
    return motion, scales


def _rotation(covariance: np.ndarray) -> np.ndarray:
    """The rotation R (F, 3, 3) with the largest trace of Rᵀ·covariance; never a reflection (Kabsch 1976)."""
    left, _, right = np.linalg.svd(covariance)
    left[:, :, 2] *= np.sign(np.linalg.det(left @ right))[:, None]
    return left @ right


def _rotation_and_scales(covariance, spread, mass, axes, current):
    """Alternate the rotation for given scales and the scales for given rotation; both are exact, so the error falls."""
    turned = covariance @ axes
    along = np.einsum("ij,jk,ki->i", axes.T, spread, axes)
    held = _SMALLEST_EXTENT * max(mass, np.finfo(float).tiny)
    scales = np.linalg.norm(current[:, :, :3] @ axes, axis=1) if current is not None else np.ones((len(turned), 3))
    for _ in range(4):
        rotation = _rotation(turned * scales[:, None, :])
        best = (np.einsum("fij,fij->fj", rotation, turned) + held * scales) / (along + held)
        scales = np.clip(best, _SMALLEST_SCALE, _LARGEST_SCALE)
    return (rotation * scales[:, None, :]) @ axes.T, scales


def nearest(transforms: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """The motions of the wanted kind nearest to ``transforms`` (F, P, 3, 4), each about its own origin."""
    linear = transforms[..., :3]
    if axes is None:
        rotation = _rotation(linear.reshape(-1, 3, 3)).reshape(linear.shape)
    else:
        turned = linear @ axes
        scales = np.clip(np.linalg.norm(turned, axis=-2), _SMALLEST_SCALE, _LARGEST_SCALE)
        rotation = _rotation((turned * scales[..., None, :]).reshape(-1, 3, 3)).reshape(linear.shape)
        rotation = (rotation * scales[..., None, :]) @ axes.transpose(0, 2, 1)
    return np.concatenate([rotation, transforms[..., 3:]], axis=-1)


def stretch_axes(transforms: np.ndarray) -> np.ndarray:
    """Axes (P, 3, 3), right-handed columns, along which affine ``transforms`` (F, P, 3, 4) stretch most over time."""
    linear = transforms[..., :3]
    metric = np.einsum("fpij,fpik->pjk", linear, linear) / len(linear)
    axes = np.linalg.eigh(metric)[1]
    axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]
    return axes
