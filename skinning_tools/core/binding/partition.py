# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts of a skin: faces whose vertices all follow the same single bone (smooth skinning chapter, on
partitioning)."""

from dataclasses import dataclass

import numpy as np

from ..errors import BadMesh, BadSettings
from ..strongest import strongest_bones

SKIN = -1
_WHOLE = 1e-6  # vertex groups hold float32, so a sum of 1 may miss it by this much


@dataclass(frozen=True, eq=False)
class Partition:
    """face_bones (M,) int32: the bone that moves a face rigidly, or SKIN where its vertices follow several.

    bones (R,): those with a rigid part; face_counts (R,): faces of each part.
    """

    face_bones: np.ndarray
    bones: np.ndarray
    face_counts: np.ndarray

    @property
    def skin_faces(self) -> int:
        return int(np.count_nonzero(self.face_bones == SKIN))


def vertex_bones(bones: np.ndarray, weights: np.ndarray, tolerance: float = _WHOLE) -> np.ndarray:
    """(N,) int32: the bone whose weight is at least 1 − ``tolerance``, SKIN where there is none; rows sum to 1."""
    whole = weights.max(axis=1) >= 1 - tolerance
    return np.where(whole, strongest_bones(bones, weights), SKIN).astype(np.int32)


def partition_faces(
    corners: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    *,
    tolerance: float = _WHOLE,
    least_faces: int = 1,
) -> Partition:
    """Faces by the bone that moves them rigidly.

    corners (L,): the vertices of all faces, one face after the other, the i-th from ``starts``[i] (M,) on, each with at
    least one corner; of triangles (T, 3): ``triangles.ravel()`` and 0, 3, 6 … bones and weights (N, K), rows that sum
    to 1. A vertex is one bone's where that has all but ``tolerance`` of it. Bones with fewer than ``least_faces`` leave
    theirs to the skin: each part costs a draw call.
    Raises BadMesh on faces without corners, BadSettings on a tolerance at or above one half.
    """
    if not 0 <= tolerance < 0.5:
        raise BadSettings(f"The tolerance must be from 0 to below 0.5, not {tolerance:g}")
    corners, starts = np.asarray(corners, dtype=np.int64), np.asarray(starts, dtype=np.int64)
    if len(starts) == 0:
        return Partition(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))
    if (np.diff(starts, append=len(corners)) < 1).any():
        raise BadMesh("The mesh has faces without corners")
    of_corner = vertex_bones(bones, weights, tolerance)[corners]
    least, most = np.minimum.reduceat(of_corner, starts), np.maximum.reduceat(of_corner, starts)
    face_bones = np.where(least == most, least, SKIN).astype(np.int32)
    found, faces = np.unique(face_bones[face_bones != SKIN], return_counts=True)
    few = found[faces < least_faces]
    face_bones[np.isin(face_bones, few)] = SKIN
    kept = faces >= least_faces
    return Partition(face_bones, found[kept], faces[kept])


def influence_counts(weights: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """(N,) int32: how many weights of each row of ``weights`` (N, K) are above ``threshold``."""
    return np.count_nonzero(np.asarray(weights) > threshold, axis=1).astype(np.int32)


def influence_shares(weights: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """(K + 1,) the share of vertices with 0, 1, … K influences above ``threshold``; sums to 1.

    The chapter found about 60 % with one, 35 % with two and 5 % with three in production characters.
    """
    counts = np.bincount(influence_counts(weights, threshold), minlength=np.shape(weights)[1] + 1)
    return counts / max(len(weights), 1)
