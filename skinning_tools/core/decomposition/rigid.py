# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that only rotate and translate (RIGID), or stretch along their own axes as well (SCALED).

Both are weighted Procrustes problems that need no vertex, only the normal equations: with S = X Xᵀ and D = A Xᵀ, bone j
of a frame sees the data less what the other bones explain, E_j = D_j − Σ_{k≠j} M_k S_kj (3, 4). Sweeps over the bones,
all frames at once, lower the same error as the affine solve.
"""

from functools import partial

import numpy as np

from ..dense import product
from ..rotations import nearest_rotations, nearest_rotations_along, nearest_rotations_and_firmness, right_handed
from ..threads import mapped
from .transforms import NormalEquations, from_rows

# The scales of a bone stay between these, so that it neither collapses nor explodes.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-3, 1e3
# Share of a bone's spread (and of its weight, for a bone of one vertex) by which its rotation tends to stay.
_TWIST_HOLD, _POINT_HOLD = 1e-5, 1e-12
# Frames that one thread fits: of fewer, steps are so short that threads wait for each other.
_FRAMES_AT_ONCE = 256
# How little a bone must stretch for the shape of its region to decide its axes.
_SHAPE_SHARE = 1e-3
# Along an axis where a bone's vertices have less than this extent (squared, of the unit ball), its scale tends to stay.
_SMALLEST_EXTENT = 1e-6


def fit_alone(products: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """The rotation and translation of each bone that best carry its own vertices, other bones left aside.

    products Dᵀ (4P, 3F), moments (P, 4, 4) of each bone alone: (F, P, 3, 4). Motion that the vertices leave open, such
    as the twist of a straight rod, stays as in the previous frame, and in the first frame as in the rest pose.
    """
    blocks = from_rows(products)
    mass, center, spread = _mass_center_and_spread(moments)
    covariance = blocks[..., :3] - blocks[..., 3:] * center[:, None]
    hold = twist_hold(mass, spread)
    rotations, firmness = nearest_rotations_and_firmness(covariance)
    open_bones = np.nonzero((firmness < hold).any(axis=0))[0]
    if len(open_bones):
        before = np.broadcast_to(np.eye(3), (len(open_bones), 3, 3))
        for frame, data in enumerate(covariance[:, open_bones]):  # each frame needs the one before
            before = nearest_rotations(data + hold[open_bones, None, None] * before)
            rotations[frame, open_bones] = before
    moved_center = np.einsum("fpij,pj->fpi", rotations, center)
    return np.concatenate([rotations, (blocks[..., 3] / mass[:, None] - moved_center)[..., None]], axis=-1)


def sweep(equations: NormalEquations, transforms: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """One pass over the bones, each set to its optimum while the others stand still. (F, P, 3, 4) in and out.

    axes (P, 3, 3): None for rotations and translations; else a bone is R · diag(s) · axesᵀ and a translation, with
    its scales s along the columns of its axes. Bones without vertices keep their motion.
    """
    groups = [slice(start, start + _FRAMES_AT_ONCE) for start in range(0, len(transforms), _FRAMES_AT_ONCE)]
    return np.concatenate(mapped(partial(_sweep_frames, equations, transforms, axes), groups))


def _sweep_frames(
    equations: NormalEquations, transforms: np.ndarray, axes: np.ndarray | None, frames: slice
) -> np.ndarray:
    """As ``sweep``, of some frames: none depends on another."""
    # The frames along the last axis: a step for all of them is a step along memory.
    rows = np.ascontiguousarray(transforms[frames].transpose(1, 3, 2, 0))
    products = equations.products.reshape(*rows.shape[:2], -1, 3)[:, :, frames].transpose(0, 1, 3, 2)
    bone_count, count = len(rows), rows.shape[-1]
    flat = rows.reshape(4 * bone_count, 3 * count)
    moments = equations.moments.reshape(bone_count, 4, bone_count, 4)
    typical = float(np.einsum("kiki->", moments[:, 3:, :, 3:])) / bone_count
    for j in range(bone_count):
        own = moments[j, :, j]
        if own[3, 3] <= 1e-9 * typical:
            continue
        # What the other bones explain.
        others = equations.moments[4 * j : 4 * j + 4].copy()
        others[:, 4 * j : 4 * j + 4] = 0.0
        seen = products[j] - product(others, flat).reshape(4, 3, count)
        rows[j] = _procrustes(seen, own, None if axes is None else axes[j], rows[j])
    return np.ascontiguousarray(rows.transpose(3, 0, 2, 1))


def _procrustes(data: np.ndarray, moment: np.ndarray, axes: np.ndarray | None, current: np.ndarray) -> np.ndarray:
    """Best motion Mᵀ (4, 3, F) of one bone: data Eᵀ (4, 3, F), moment Σ w² v vᵀ (4, 4), current motion (4, 3, F)."""
    mass, center, spread = (part[0] for part in _mass_center_and_spread(moment[None]))
    covariance = data[:3] - data[3] * center[:, None, None]
    hold = twist_hold(mass, spread)
    motion = np.empty(data.shape)
    if axes is None:
        motion[:3] = nearest_rotations_along(covariance + hold * current[:3])
    else:
        turned, present = covariance.transpose(2, 1, 0), current[:3].transpose(2, 1, 0)
        motion[:3] = rotation_and_scales(turned, spread, mass, hold, axes, present).transpose(2, 1, 0)
    motion[3] = data[3] / mass - np.einsum("jif,j->if", motion[:3], center)
    return motion


def centers(moments: np.ndarray) -> np.ndarray:
    """The mean rest position (P, 3) of each bone's vertices, of which ``moments`` (P, 4, 4) are the sums; 0 without."""
    return _mass_center_and_spread(moments)[1]


def _mass_center_and_spread(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight (P,), 1 where there is none, mean (P, 3) and Σ w (v − mean)(v − mean)ᵀ (P, 3, 3) of ``moments``."""
    mass = np.where(moments[:, 3, 3] > 0, moments[:, 3, 3], 1.0)
    center = moments[:, :3, 3] / mass[:, None]
    return mass, center, moments[:, :3, :3] - mass[:, None, None] * center[:, :, None] * center[:, None]


def twist_hold(mass: np.ndarray | float, spread: np.ndarray) -> np.ndarray:
    """How much of its present rotation (...) is added to a bone's covariance.

    Enough to decide what rounding would decide otherwise, too little to be visible where the vertices decide.
    """
    return _TWIST_HOLD * np.einsum("...ii->...", spread).clip(0.0) + _POINT_HOLD * mass


def rotation_and_scales(
    covariance: np.ndarray,
    spread: np.ndarray,
    mass: float,
    hold: np.ndarray | float,
    axes: np.ndarray,
    current: np.ndarray,
) -> np.ndarray:
    """Alternate the rotation for given scales and the scales for given rotation; both are exact, so the error falls."""
    turned = covariance @ axes
    along = np.einsum("ij,jk,ki->i", axes.T, spread, axes)
    held = _SMALLEST_EXTENT * max(mass, np.finfo(float).tiny)
    stretched = current @ axes
    scales = np.linalg.norm(stretched, axis=1)
    rotation = stretched / scales[:, None, :]
    for _ in range(4):
        rotation = nearest_rotations(turned * scales[:, None, :] + hold * rotation)
        best = (np.einsum("fij,fij->fj", rotation, turned) + held * scales) / (along + held)
        scales = np.clip(best, _SMALLEST_SCALE, _LARGEST_SCALE)
    return (rotation * scales[:, None, :]) @ axes.T


def nearest(transforms: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """The motions of the required kind nearest to ``transforms`` (F, P, 3, 4), each about its own origin."""
    linear = transforms[..., :3]
    if axes is None:
        rotation = nearest_rotations(linear)
    else:
        turned = linear @ axes
        scales = np.clip(np.linalg.norm(turned, axis=-2), _SMALLEST_SCALE, _LARGEST_SCALE)
        rotation = nearest_rotations(turned * scales[..., None, :])
        rotation = (rotation * scales[..., None, :]) @ axes.transpose(0, 2, 1)
    return np.concatenate([rotation, transforms[..., 3:]], axis=-1)


def stretch_axes(transforms: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Axes (P, 3, 3), right-handed columns, along which affine ``transforms`` (F, P, 3, 4) stretch most over time.

    Where they stretch alike, those of the bones' vertices, of which ``moments`` (P, 4, 4) are the sums.
    """
    linear = transforms[..., :3]
    metric = np.einsum("fpij,fpik->pjk", linear, linear) / len(linear)
    spread = _mass_center_and_spread(moments)[2]
    size = np.einsum("pii->p", spread)[:, None, None]
    axes = np.linalg.eigh(metric + _SHAPE_SHARE * spread / np.where(size > 0, size, 1.0))[1]
    return right_handed(axes)
