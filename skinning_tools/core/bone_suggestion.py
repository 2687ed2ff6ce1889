# SPDX-License-Identifier: GPL-3.0-or-later
"""How many bones an animation asks for, from a few of its frames."""

import numpy as np
import scipy.linalg

from .animation import unit_scale

# E_RMS, in per mille, of what the counted motions leave over.
_LEFT_OVER = 2.0
_MOST_VERTICES = 2000
# Bones that may not stretch or shear say less each.
_FACTORS = {"AFFINE": 1.0, "SCALED": 1.25, "RIGID": 1.5}
LEAST = 2


def suggest_bone_count(frames: np.ndarray, bone_kind: str = "AFFINE") -> int:
    """As many bones as the animation has independent motions.

    frames (S, N, 3): about sixteen of them, spread over the range. What one affine bone for the whole mesh explains is
    taken out of each frame; of the rest, the principal components are counted that leave no more than an E_RMS of 2
    (Kavan et al. 2010, section 5) in these frames. Raises BadMesh where the first frame has no extent.
    """
    scale = unit_scale(frames)
    chosen = np.linspace(0, frames.shape[1] - 1, min(frames.shape[1], _MOST_VERTICES)).astype(int)
    positions = scale * frames[:, chosen].astype(np.float64)
    rest = np.column_stack([positions[0] - positions[0].mean(axis=0), np.ones(len(chosen))])
    flat = positions.transpose(1, 0, 2).reshape(len(chosen), -1)
    remaining = flat - rest @ scipy.linalg.lstsq(rest, flat)[0]
    squared = scipy.linalg.svdvals(remaining) ** 2
    left = 1000.0 * np.sqrt(squared[::-1].cumsum()[::-1] / remaining.size)
    motions = int((left > _LEFT_OVER).sum())
    return max(LEAST, round(_FACTORS[bone_kind] * motions))
