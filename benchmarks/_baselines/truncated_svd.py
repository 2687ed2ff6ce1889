# SPDX-License-Identifier: GPL-3.0-or-later
"""Truncated singular value decomposition of the animation matrix (Alexa & Müller 2000).

4P components have as much data per frame as P bones; each vertex has 4P coefficients, but only a few in skinning.
"""

import numpy as np
import scipy.linalg

from skinning_tools.core.animation import Animation

from .approximations import LowRank, trajectories


def approximate(animation: Animation, bone_count: int) -> LowRank:
    left, sizes, right = scipy.linalg.svd(trajectories(animation), full_matrices=False, overwrite_a=True)
    rank = min(4 * bone_count, len(sizes))
    labels = np.zeros(animation.vertex_count, dtype=int)
    return LowRank(right[None, :rank].transpose(0, 2, 1), left[:, :rank] * sizes[:rank], labels)
