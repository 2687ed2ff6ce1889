# SPDX-License-Identifier: GPL-3.0-or-later
"""Which joint a displacement belongs to, where examples pose several joints at once.

Beyond EigenSkin, which moves one joint at a time. The displacement of an example is taken as a sum of functions, one a
joint, zero at rest and in the span of the joint's basis. What examples of one joint say about its function is kept; the
rest is the most likely function (ridge regression, with the basis' own covariance as the prior), where a joint is
likelier to displace the skin that it bends.
"""

from dataclasses import dataclass

import numpy as np

from ..progress import Progress, checkpoint
from .body_parts import body_parts, part_weights
from .pose_space import SAME_ROTATION, PoseSpace, rotation_distances

# Vertices at a time: each needs a matrix of the unknowns.
_BLOCK_NUMBERS = 2_000_000

# Variance that no sum of joints explains, as a share of the likeliest joint's variance: at any vertex, and added for
# each pair of joints that share a vertex.
_NOISE = 1e-4
_SHARED_NOISE = 0.01

# A joint's likely displacement on the two body parts that it connects, as a share of that where it bends the skin most.
_BESIDE = 0.25

# As a share of the likeliest joint's variance at a vertex: joints with less take no part.
_LEAST_SHARE = 1e-3


def joint_regions(
    bones: np.ndarray, weights: np.ndarray, joint_of_bone: np.ndarray, parents: np.ndarray, joints: np.ndarray
) -> np.ndarray:
    """(M, N) from 0 to 1: how likely each of ``joints`` (M,), ascending, is to displace a vertex.

    bones and weights (N, K); joint_of_bone (P,) the joint that each bone is; parents (J,) of each joint, −1 for roots.
    With w the share of a vertex that follows a joint and all below it, 4 w (1 − w): most in the middle of the bend. On
    the parts to both sides, up to the next of ``joints``, at least a part of that: muscles bulge there.
    """
    parts, above = body_parts(parents, joints)
    # The last part holds what follows none of the joints.
    own = part_weights(bones, weights, parts[joint_of_bone], len(joints) + 1)
    share = own[:-1].copy()
    for place in range(len(joints) - 1, -1, -1):
        if above[place] < len(joints):
            share[above[place]] += share[place]
    share = np.clip(share, 0.0, 1.0)
    return np.maximum(4 * share * (1 - share), _BESIDE * np.minimum(own[:-1] + own[above], 1.0))


def chosen_centers(required: np.ndarray, rotations: np.ndarray, most: int) -> np.ndarray:
    """(M, 4): ``required`` (R, 4), and those of ``rotations`` (E, 4) that are far from these and from each other; at
    most ``most`` in all."""
    centers = list(required)
    nearest = rotation_distances(rotations, required).min(axis=1)
    while len(centers) < most:
        farthest = int(np.argmax(nearest))
        if nearest[farthest] <= SAME_ROTATION:
            break
        centers.append(rotations[farthest])
        nearest = np.minimum(nearest, rotation_distances(rotations, rotations[farthest][None])[:, 0])
    return np.array(centers)


@dataclass(eq=False)
class _Function:
    """A joint's function, as what is known of it and a deviation from the most likely one by that alone.

    known: examples that give it at the first centers; values at the U others are unknown_from_known (U, K) times these
    plus covariance (U, U) times γ. at_known (S, K) and at_unknown (S, U) take known values and γ to the S examples
    with several joints.
    """

    known: np.ndarray
    unknown_from_known: np.ndarray
    covariance: np.ndarray
    at_known: np.ndarray
    at_unknown: np.ndarray

    @classmethod
    def of(cls, space: PoseSpace, known: np.ndarray, rotations: np.ndarray) -> "_Function":
        """rotations (S, 4) of the joint in the examples with several."""
        count = len(known)
        covariance, features = space.covariance(), space.tied_features(rotations)
        between = covariance[:count, count:]
        solved = np.linalg.solve(covariance[:count, :count], np.hstack([between, features[:, :count].T]))
        unknown_from_known = solved[:, : len(covariance) - count].T
        return cls(
            known,
            unknown_from_known,
            covariance[count:, count:] - unknown_from_known @ between,
            solved[:, len(covariance) - count :].T,
            features[:, count:] - features[:, :count] @ unknown_from_known.T,
        )


def _told_alone(
    displacements: np.ndarray, functions: dict[int, _Function], prior: np.ndarray
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """``joint_displacements`` from the examples that pose a joint alone."""
    result = {}
    for (joint, function), likely in zip(functions.items(), prior, strict=True):
        vertices = np.flatnonzero(likely > 0)
        told = displacements[np.ix_(function.known, vertices)]
        rest = np.tensordot(function.unknown_from_known.astype(np.float32), told, axes=1)
        result[joint] = vertices, np.concatenate([told, rest])
    return result


def joint_displacements(
    displacements: np.ndarray,
    rotations: np.ndarray,
    known: dict[int, np.ndarray],
    several: np.ndarray,
    spaces: dict[int, PoseSpace],
    prior: np.ndarray,
    progress: Progress,
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """By joint, the vertices (n,) that it may displace, and by how much (M − 1, n, C) at its centers but the rest pose.

    displacements (E, N, C) of the examples, rotations (E, J, 4). known: by joint, the examples that pose it alone, at
    its first centers after the rest pose; they are met exactly. several: those that pose several joints. spaces of the
    joints that move; prior (len(spaces), N): how likely a joint is to displace a vertex. Raises Cancelled.
    """
    functions = [_Function.of(space, known[joint], rotations[several, joint]) for joint, space in spaces.items()]
    several = np.flatnonzero(several)
    result = _told_alone(displacements, dict(zip(spaces, functions, strict=True)), prior)
    every_known = np.concatenate([function.known for function in functions])
    at_known = np.hstack([function.at_known for function in functions])
    variance = prior**2
    share = variance / np.maximum(variance.max(axis=0), 1e-300)
    noise = _NOISE + _SHARED_NOISE * 0.5 * (share.sum(axis=0) ** 2 - (share**2).sum(axis=0))
    open_ended = np.array([len(function.covariance) > 0 for function in functions])
    sharing = (share > _LEAST_SHARE) & open_ended[:, None]
    sharing[:, ~np.any(displacements, axis=(0, 2))] = False
    kinds, kind = np.unique(sharing, axis=1, return_inverse=True)
    done = 0
    for number, active in enumerate(kinds.T):
        everywhere = np.flatnonzero(kind.ravel() == number)
        chosen = np.flatnonzero(active)
        if not len(chosen):
            continue
        features = np.hstack([functions[place].at_unknown for place in chosen])
        parts = np.cumsum([0, *(len(functions[place].covariance) for place in chosen)])
        square = features.T @ features
        block = max(_BLOCK_NUMBERS // len(square) ** 2, 1)
        for start in range(0, len(everywhere), block):
            vertices = everywhere[start : start + block]
            left = displacements[np.ix_(several, vertices)].astype(np.float64)
            left -= np.tensordot(at_known, displacements[np.ix_(every_known, vertices)], axes=1)
            matrices = square / noise[vertices, None, None]
            for place, first, last in zip(chosen, parts, parts[1:], strict=False):
                matrices[:, first:last, first:last] += functions[place].covariance / share[place, vertices, None, None]
            seen = np.tensordot(features.T, left, axes=1) / noise[vertices, None]
            found = np.moveaxis(np.linalg.solve(matrices, np.moveaxis(seen, 0, 1)), 1, 0)
            for place, first, last in zip(chosen, parts, parts[1:], strict=False):
                region, values = result[list(spaces)[place]]
                count = len(functions[place].known)
                values[count:, np.searchsorted(region, vertices)] += np.tensordot(
                    functions[place].covariance, found[first:last], axes=1
                )
            done += len(vertices)
            checkpoint(progress, done / sharing.shape[1], "Separating Joints")
    return result
