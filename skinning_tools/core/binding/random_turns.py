# SPDX-License-Identifier: GPL-3.0-or-later
"""How far two blends of bones carry a point apart when all bones turn at random."""

import numpy as np
from scipy import sparse

from ..bone_order import depths
from .types import Skeleton


def squared_offsets(skeleton: Skeleton, shares: sparse.csr_matrix, points: np.ndarray, angle: float) -> np.ndarray:
    """(n,) squared distance between the positions that two blends of bones give each of ``points`` (n, 3): the mean
    over all poses in which each bone is turned by ``angle`` (radians) about its head, around an axis of its own.

    shares (n, P): the weights of the first blend minus those of the second; rows sum to 0. All axes are equally likely.

    In closed form, so that the result depends neither on the order of the bones nor on the mesh's axes. Such a turn
    leaves, on average, the share c = (1 + 2 cos) / 3 of a vector; the variance gains the squared length that the mean
    loses. From the last bones up to the roots, each turn acts on the weighted sum of all bones below it. The sums of
    different branches are independent because their turns are.
    """
    left = (1 + 2 * np.cos(angle)) / 3
    depth = depths(skeleton.parents)
    shares = shares.tocoo()
    of, bone, share = shares.row.astype(np.int64), shares.col.astype(np.int64), shares.data
    # Sums over vectors from each point itself: differences of distant positions would lose digits.
    mean, variance = np.zeros((len(of), 3)), np.zeros(len(of))
    for level in range(int(depth.max(initial=0)), -1, -1):
        now = (bone >= 0) & (depth[bone] == level)
        keys, group = np.unique(of[now] * len(skeleton) + bone[now], return_inverse=True)
        gather = sparse.csr_matrix(
            (np.ones(len(group.ravel())), (group.ravel(), np.flatnonzero(now))), (len(keys), len(of))
        )
        ends, turning = np.divmod(keys, len(skeleton))
        total, means = gather @ share, gather @ mean
        arm = means - total[:, None] * (skeleton.heads[turning] - points[ends])
        variances = gather @ variance + (1 - left**2) * np.einsum("ni,ni->n", arm, arm)
        of, bone = np.concatenate([of[~now], ends]), np.concatenate([bone[~now], skeleton.parents[turning]])
        share, variance = np.concatenate([share[~now], total]), np.concatenate([variance[~now], variances])
        mean = np.concatenate([mean[~now], means - (1 - left) * arm])
    sums = np.stack([np.bincount(of, mean[:, i], len(points)) for i in range(3)], axis=1)
    return np.einsum("ni,ni->n", sums, sums) + np.bincount(of, variance, len(points))
