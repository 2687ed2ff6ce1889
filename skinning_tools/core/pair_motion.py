# SPDX-License-Identifier: GPL-3.0-or-later
"""How the bones of pairs move against each other: where they could be joined, and how much such joints slip.

Two bones are joined at the point of the rest pose that both take to nearly the same place in every frame: the c that
minimizes Σ_f |M_i c − M_j c|² (after Le & Deng 2014, "Robust and accurate skeletal rigging from mesh sequences",
section 4). With X (3F × 4P) all matrices side by side, XᵀX holds all data of a pair, so that all pairs are solved
together and the number of frames no longer matters.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class PairMotion:
    """C pairs of bones. squares (C, 4, 4): mean DᵀD over the frames, of the differences D = M_i − M_j."""

    squares: np.ndarray

    def of(self, pairs: np.ndarray) -> "PairMotion":
        """Some of the pairs, by their indices or a mask."""
        return PairMotion(self.squares[pairs])

    def joints(self, meeting: np.ndarray, faint: float) -> np.ndarray:
        """(C, 3) the points that slip least, near ``meeting`` (C, 3) as far as the bones turn by less than ``faint``
        radians (root mean square)."""
        matrix = self.squares[:, :3, :3] + faint**2 * np.eye(3)
        right = faint**2 * meeting - self.squares[:, :3, 3]
        return np.linalg.solve(matrix, right[..., None])[..., 0]

    def slips(self, joints: np.ndarray) -> np.ndarray:
        """(C,) how far apart the bones carry ``joints`` (C, 3), root mean square over the frames."""
        homogeneous = np.concatenate([joints, np.ones((len(joints), 1))], axis=1)
        squares = np.einsum("ci,cij,cj->c", homogeneous, self.squares, homogeneous)
        return np.sqrt(np.maximum(squares, 0.0))

    def turns(self) -> np.ndarray:
        """(C, 3) how far the bones turn against each other about three principal axes, in radians (root mean square of
        twice the sine of half the angle)."""
        # A turn by θ about the unit vector u adds 4 sin²(θ/2) (I − u uᵀ).
        values = np.linalg.eigvalsh(self.squares[:, :3, :3])
        return np.sqrt(np.maximum(0.5 * values.sum(axis=1, keepdims=True) - values, 0.0))

    def apart(self, moments: np.ndarray) -> np.ndarray:
        """(C,) how far apart the bones carry vertices of ``moments`` (C, 4, 4), the mean of [v; 1][v; 1]ᵀ, root mean
        square."""
        return np.sqrt(np.maximum(np.einsum("cij,cij->c", self.squares, moments), 0.0))


def pair_motion(
    transforms: np.ndarray, center: np.ndarray, size: float, first: np.ndarray, second: np.ndarray
) -> PairMotion:
    """Of the bones ``first`` and ``second`` (C,) that ``transforms`` (F, P, 3, 4) move, for points of the rest pose
    given as (v − center) / size."""
    moved = np.asarray(transforms, dtype=np.float64).copy()
    moved[..., 3] += moved[..., :3] @ center - center
    moved[..., 3] /= size
    frame_count, bone_count = moved.shape[:2]
    rows = moved.transpose(0, 2, 1, 3).reshape(3 * frame_count, 4 * bone_count)
    gram = (rows.T @ rows).reshape(bone_count, 4, bone_count, 4).transpose(0, 2, 1, 3) / frame_count
    cross = gram[first, second]
    return PairMotion(gram[first, first] + gram[second, second] - cross - np.swapaxes(cross, -1, -2))
