# SPDX-License-Identifier: GPL-3.0-or-later
"""Which joint a displacement belongs to, where examples pose several joints at once.

Beyond EigenSkin, which moves one joint at a time. The displacement of an example is taken as a sum of one function per
joint, each a Gaussian process over the joint's rotations with the kernel of the interpolation, tied to zero at rest.
The most likely functions are asked for at the centres that each joint will interpolate from.
"""

import numpy as np

from ..progress import Progress, checkpoint, ignore
from .pose_space import SAME_ROTATION, PoseSpace, rotation_distances

# Vertices at a time: each needs a matrix of all examples.
_BLOCK_NUMBERS = 4_000_000

# Noise of an example that poses several joints, as a share of the signal's variance: what no sum of joints explains.
_NOISE = 1e-2
_EXACT = 1e-8


def joint_regions(bones: np.ndarray, weights: np.ndarray, joint_of_bone: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(J, N) from 0 to 1: how much a vertex lies where a joint bends the skin.

    bones and weights (N, K); joint_of_bone (P,) the joint that each bone is; parents (J,) of each joint, −1 for roots.
    With w the share of a vertex that follows a joint and all below it, 4 w (1 − w): none where it follows all or
    nothing of it, most in the middle of the bend.
    """
    joint_count = len(parents)
    below = np.eye(joint_count)
    for joint in range(joint_count):
        ancestor = parents[joint]
        while ancestor >= 0:
            below[ancestor, joint] = 1.0
            ancestor = parents[ancestor]
    own = np.zeros((len(bones), joint_count))
    for slot in range(bones.shape[1]):
        np.add.at(own, (np.arange(len(bones)), joint_of_bone[bones[:, slot]]), weights[:, slot])
    share = np.clip(below @ own.T, 0.0, 1.0)
    return 4 * share * (1 - share)


def chosen_centers(required: np.ndarray, rotations: np.ndarray, most: int) -> np.ndarray:
    """(M, 4) ``required`` (R, 4), and of ``rotations`` (E, 4) those far from them and each other, ``most`` in all."""
    centers = list(required)
    nearest = rotation_distances(rotations, required).min(axis=1)
    while len(centers) < most:
        farthest = int(np.argmax(nearest))
        if nearest[farthest] <= SAME_ROTATION:
            break
        centers.append(rotations[farthest])
        nearest = np.minimum(nearest, rotation_distances(rotations, rotations[farthest][None])[:, 0])
    return np.array(centers)


def joint_displacements(
    displacements: np.ndarray,
    rotations: np.ndarray,
    alone: np.ndarray,
    spaces: dict[int, PoseSpace],
    prior: np.ndarray,
    progress: Progress = ignore,
) -> dict[int, np.ndarray]:
    """The displacements (M − 1, N, 3) of each joint at its centres, without the rest pose.

    displacements (E, N, 3) of the examples, rotations (E, J, 4); alone (E,) bool: examples with one joint, which are
    met exactly; spaces of the joints that move; prior (J, N): how likely a joint is to displace a vertex. Raises
    Cancelled.
    """
    example_count, vertex_count = displacements.shape[:2]
    joints = list(spaces)
    features = [_tied(spaces[joint], rotations[:, joint], rotations[:, joint]) for joint in joints]
    at_centers = [_tied(spaces[joint], spaces[joint].centers[1:], rotations[:, joint]) for joint in joints]
    kernels, crossed = np.array(features), np.concatenate(at_centers)
    rows = np.cumsum([0, *(len(part) for part in at_centers)])
    noise = np.diag(np.where(alone, _EXACT, _NOISE))
    variance = prior[joints] ** 2
    result = np.zeros((len(crossed), vertex_count, 3), np.float32)
    moved = np.flatnonzero(np.any(displacements, axis=(0, 2)) & (variance.max(axis=0) > 0))
    block = max(_BLOCK_NUMBERS // example_count**2, 1)
    for start in range(0, len(moved), block):
        part = moved[start : start + block]
        share = variance[:, part] / variance[:, part].max(axis=0)
        matrices = np.einsum("jn,jef->nef", share, kernels, optimize=True) + noise
        explained = np.linalg.solve(matrices, np.moveaxis(displacements[:, part], 0, 1).astype(np.float64))
        for place in range(len(joints)):
            chosen = slice(rows[place], rows[place + 1])
            result[chosen, part] = np.einsum("n,ce,nei->cni", share[place], crossed[chosen], explained, optimize=True)
        checkpoint(progress, (start + len(part)) / len(moved), "Telling Joints Apart")
    return {joint: result[rows[place] : rows[place + 1]] for place, joint in enumerate(joints)}


def _tied(space: PoseSpace, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Covariance (A, B) of a joint's function at two sets of rotations, given that it is zero at rest."""
    kernel = np.exp(-rotation_distances(first, second, space.axis) / space.radius)
    return kernel - np.outer(space.features(first)[:, 0], space.features(second)[:, 0])
