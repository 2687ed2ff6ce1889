# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of the baselines, and the first steps that several of them share."""

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition.bone_model import BoneModel, homogeneous
from skinning_tools.core.decomposition.transforms import to_rows
from skinning_tools.core.deform import skin_frame

INFLUENCES = 4
_BLOCK = 2048
# Weight of the equation that weights sum to one, relative to rows of the mesh's size (James & Twigg 2005: a soft
# constraint).
_SUM_TO_ONE = 1e3


@dataclass(frozen=True)
class Skinned:
    """Linear blend skinning: rest (N, 3), bones and weights (N, K), transforms (F, P, 3, 4)."""

    rest: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    transforms: np.ndarray

    def frame(self, row: int) -> np.ndarray:
        return skin_frame(self.rest, self.bones, self.weights, self.transforms[row])


@dataclass(frozen=True)
class LowRank:
    """Each vertex a combination of its cluster's basis: bases (C, 3F, r), coefficients (N, r), labels (N,)."""

    bases: np.ndarray
    coefficients: np.ndarray
    labels: np.ndarray

    def frame(self, row: int) -> np.ndarray:
        positions = np.empty((len(self.labels), 3))
        for cluster, basis in enumerate(self.bases):
            members = self.labels == cluster
            positions[members] = self.coefficients[members] @ basis[3 * row : 3 * row + 3].T
        return positions


def measured(animation: Animation, approximation) -> tuple[float, float]:
    """E_RMS and the largest distance, per mille of the unit ball (see ``ErrorMeter``)."""
    meter = ErrorMeter(unit_scale(animation.frames), animation.vertex_count)
    for row, positions in enumerate(animation.frames):
        meter.add(positions, approximation.frame(row))
    return meter.e_rms, meter.max_error


def trajectories(animation: Animation) -> np.ndarray:
    """Aᵀ (N, 3F) float64: x, y, z of each vertex frame after frame."""
    return animation.frames.transpose(1, 0, 2).reshape(animation.vertex_count, -1).astype(np.float64)


def region_transforms(rest: np.ndarray, data: np.ndarray, regions: list[np.ndarray]) -> np.ndarray:
    """The affine motion (F, P, 3, 4) that fits each region best; rest (N, 3), data (N, 3F), regions: their vertices.

    If a region does not determine its motion (it is flat, or has fewer than four vertices), the least-norm solution.
    """
    transforms = np.empty((data.shape[1] // 3, len(regions), 3, 4))
    for bone, members in enumerate(regions):
        center, moved_center = rest[members].mean(axis=0), data[members].mean(axis=0)
        linear = np.linalg.lstsq(rest[members] - center, data[members] - moved_center, rcond=1e-6)[0]
        linear = linear.reshape(3, -1, 3).transpose(1, 2, 0)
        transforms[:, bone, :, :3] = linear
        transforms[:, bone, :, 3] = moved_center.reshape(-1, 3) - linear @ center
    return transforms


def best_bones_and_weights(rest, data, transforms, influences: int = INFLUENCES) -> tuple[np.ndarray, np.ndarray]:
    """The bones (N, K) that individually predict each vertex best, and their weights by non-negative least squares.

    James & Twigg 2005: the sum of one is a soft constraint; at the end, weights are divided by their sum.
    rest (N, 3), data (N, 3F), transforms (F, P, 3, 4).
    """
    rows = to_rows(transforms)
    model, points = BoneModel(rows), homogeneous(rest)
    count = min(influences, model.bone_count)
    predictions = rows.reshape(-1, 4, rows.shape[1])
    bones = np.empty((len(rest), count), dtype=np.int32)
    weights = np.empty((len(rest), count))
    heavy = _SUM_TO_ONE * np.linalg.norm(data, axis=1).max()
    for start in range(0, len(rest), _BLOCK):
        part = slice(start, start + _BLOCK)
        distances = model.squared_distances(points[part], data[part])
        bones[part] = np.argsort(distances, axis=1, kind="stable")[:, :count]
    system = np.empty((data.shape[1] + 1, count))
    system[-1] = heavy
    right = np.append(np.zeros(data.shape[1]), heavy)
    for vertex, chosen in enumerate(bones):
        system[:-1] = np.einsum("i,kid->dk", points[vertex], predictions[chosen])
        right[:-1] = data[vertex]
        weights[vertex] = scipy.optimize.nnls(system, right)[0]
    return bones, weights / weights.sum(axis=1, keepdims=True)
