# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone matrices as the channels that a bone can store: location, rotation, scale.

A bone has no shear. An affine matrix is therefore two bones at one rest place: with L the matrix in the bones' rest
frame, L = rest⁻¹ M rest, its linear part is U S Vᵀ C: the parent takes the translation, the rotation U and the scale S
(negative where L mirrors), its child the rotation Vᵀ and the scale C, which is constant over time and often 1.

Why C: between two keys each channel is interpolated alone, and U, S and V of neighboring frames must therefore be
neighbours. For a plain singular value decomposition (C = 1) they are not where singular values are nearly equal: in
rigid motion, the most common of all, all three are 1 and V is noise. Stretching the child by, for example, (1.5, 1,
1/1.5) moves the singular values of L C⁻¹ apart, V settles, and halfway between frames the chain is as good as
interpolating the polar decomposition would be (with the plain one the error there is two to six times as large on
captured motion). Which C serves a bone best is measured on its own frames; the plain chain is kept where it is as good.

What remains free is the order and the signs of the columns of U and V: pairs of elements of the rotation group of the
cube that share their permutation. The halfway point of two frames is the same when one such pair is applied to both,
so choosing the nearest element from each frame to the next and multiplying up the choices is best as a whole.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from . import quaternions
from .rotations import nearest_rotations, polar_decomposition

PLAIN = (1.0, 1.0, 1.0)
CHILD_SCALES = np.array(
    [PLAIN, *(order for spread in (1.5, 2.5) for order in itertools.permutations((spread, 1.0, 1.0 / spread)))]
)
"""The child's constant scales to choose from, (13, 3)."""

_SHORTLIST = 2
_TRIAL_DECOMPOSITIONS = 150_000  # of 3 × 3 matrices, about 0.4 s
_PLAIN_ENOUGH = 1.1
_NO_ERROR = 1e-6  # below what channels in single precision can show
_NUDGE = 2e-14
_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class AffineChain:
    """Channels of P parents and their children over F frames.

    location (F, P, 3), rotation (F, P, 4) and scale (F, P, 3) of the parents, child_rotation (F, P, 4) and
    child_scale (P, 3), the same in all frames, of the children. Quaternions (w, x, y, z) of unit length.
    """

    location: np.ndarray
    rotation: np.ndarray
    scale: np.ndarray
    child_rotation: np.ndarray
    child_scale: np.ndarray

    def matrices(self) -> np.ndarray:
        """(F, P, 3, 4): the matrices that the chain stands for."""
        parent = quaternions.to_matrices(self.rotation) * self.scale[..., None, :]
        child = quaternions.to_matrices(self.child_rotation) * self.child_scale[:, None, :]
        return np.concatenate([parent @ child, self.location[..., None]], axis=-1)


def in_rest_frame(matrices: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """L = rest⁻¹ M rest of object-space ``matrices`` (F, P, 3, 4) for rest matrices ``rest`` (P, 4, 4).

    The rest matrices are the rounded ones of the actual bones. The translation is the motion of the bone's head under
    M, computed as (A − 1) head + t, so that a head far from the origin costs no digits of a small motion.
    """
    inverse = np.linalg.inv(rest[:, :3, :3])
    linear = inverse @ matrices[..., :3] @ rest[:, :3, :3]
    head = rest[:, :3, 3, None]
    moved = (matrices[..., :3] - np.eye(3)) @ head + matrices[..., 3:]
    return np.concatenate([linear, inverse @ moved], axis=-1)


def split(matrices: np.ndarray, extents: np.ndarray | None = None) -> AffineChain:
    """Factor ``matrices`` (F, P, 3, 4), given in the rest frames of their bones, into two-bone chains.

    extents (P, 3): how far the points that each bone moves reach along its rest axes (say, standard deviations), so
    that errors between frames count where there is something to see; 1 where not given.
    Exact to rounding for singular and mirroring matrices too, and continuous: see the module's docstring.
    """
    matrices = np.asarray(matrices, dtype=np.float64)
    linear = matrices[..., :3]
    extents = np.ones((linear.shape[1], 3)) if extents is None else _relative_extents(extents)
    child_scale = CHILD_SCALES[_best_child_scales(linear, extents)]
    u, s, v = _factors(linear / child_scale[:, None, :])
    steps_u, steps_v = _nearest_elements(_with_identity_before(u), _with_identity_before(v))
    steps_u, steps_v = _accumulated(steps_u), _accumulated(steps_v)
    return AffineChain(
        location=matrices[..., 3].copy(),
        rotation=quaternions.same_hemisphere(quaternions.product(u, _ELEMENTS[steps_u])),
        scale=_reordered(s, steps_u, steps_v),
        child_rotation=quaternions.same_hemisphere(quaternions.conjugate(quaternions.product(v, _ELEMENTS[steps_v]))),
        child_scale=child_scale,
    )


def scaled_channels(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Location (F, P, 3), rotation (F, P, 4) and scale (F, P, 3) of ``matrices`` (F, P, 3, 4) without shear.

    The matrices are [R diag(s) | t]: a stretch along the rest axes, then a rotation, in the bone's rest frame. For an
    object-space M = R diag(s) Qᵀ the bone's rest axes therefore are the columns of Q, in any order and with any signs.
    Scales may be zero or negative; rotation and signs are continuous. Columns that are not
    perpendicular, because the rest matrix is rounded, give the nearest rotation.
    """
    matrices = np.asarray(matrices, dtype=np.float64)
    linear = matrices[..., :3]
    # The nearest rotation of the columns at their lengths: a column of nearly zero length, which rounding may have
    # turned anywhere, does not influence the axes of the others.
    directions = _nudged(linear)
    directions *= np.where(np.linalg.det(directions) < 0, -1.0, 1.0)[..., None, None]
    rotation, _ = least_turns(quaternions.from_matrices(nearest_rotations(directions)), _NO_TURN)
    # The columns projected on these axes: their lengths with signs.
    scale = np.einsum("...ij,...ij->...j", quaternions.to_matrices(rotation), linear)
    return matrices[..., 3].copy(), rotation, scale


def least_turns(
    rotation: np.ndarray, before: np.ndarray, allowed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``rotation`` (F, P, 4) after half turns about the bones' own axes that keep turns between frames short.

    A half turn about one axis is undone by negative scales along the two others. before: the rotations of the frame in
    front of the first, (4,) or (P, 4). allowed (F, P, 4): whether a frame's rotation may be off from that of the one
    before by nothing and by half a turn about x, y, z; always by default. Returns rotations (F, P, 4), continuous, and
    the signs (F, P, 3) by which scales are to be multiplied.
    """
    previous = np.concatenate([np.broadcast_to(before, (1, *rotation.shape[1:])), rotation[:-1]])
    # The turn's cosines with the first four elements are its own w, x, y, z.
    cosines = np.abs(quaternions.product(quaternions.conjugate(rotation), previous))
    if allowed is not None:
        cosines[~allowed] = -1.0
    steps = _accumulated(np.argmax(cosines, axis=-1))
    return quaternions.same_hemisphere(quaternions.product(rotation, _ELEMENTS[steps])), _SIGNS[steps]


def rigid_channels(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Location (F, P, 3) and rotation (F, P, 4), continuous, of ``matrices`` (F, P, 3, 4) = [R | t].

    Linear parts that are not rotations give the nearest rotation.
    """
    matrices = np.asarray(matrices, dtype=np.float64)
    rotation = quaternions.from_matrices(nearest_rotations(matrices[..., :3]))
    return matrices[..., 3].copy(), quaternions.same_hemisphere(rotation)


def _rotation_group_of_the_cube() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quaternions (24, 4), permutations (24, 3) and signs (24, 3) of the signed permutations with determinant 1.

    Column j of an element is sign[j] e_permutation[j]. Each four in a row share a permutation, the identity's first:
    no turn, and half a turn about x, y and z, whose quaternions are the unit vectors.
    """
    elements = []
    for permutation in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[list(permutation), range(3)] = signs
            if np.linalg.det(matrix) > 0:
                elements.append((matrix, permutation, signs))
    matrices, every_permutation, every_sign = (np.array(part) for part in zip(*elements, strict=True))
    return quaternions.from_matrices(matrices), every_permutation, every_sign


_ELEMENTS, _PERMUTATIONS, _SIGNS = _rotation_group_of_the_cube()
# _PRODUCTS[a, b] is the element a · b; a quaternion and its negative are the same element.
_PRODUCTS = np.argmax(np.abs(quaternions.product(_ELEMENTS[:, None], _ELEMENTS[None]) @ _ELEMENTS.T), axis=-1)


def _relative_extents(extents: np.ndarray) -> np.ndarray:
    """``extents`` (P, 3) by their largest; not below a hundredth, so that no axis is ignored; 1 where all are zero."""
    largest = np.max(extents, axis=1, keepdims=True)
    return np.where(largest > 0, np.maximum(extents / np.where(largest > 0, largest, 1.0), 0.01), 1.0)


def _nudged(linear: np.ndarray) -> np.ndarray:
    """``linear`` (..., 3, 3) moved by 2e-14 of the bone's largest entry towards a fixed regular matrix.

    It decides undetermined directions of singular matrices alike in all frames, far above rounding and far below
    visibility. The matrix is close to the identity, with distinct singular values.
    """
    largest = np.max(np.abs(linear), axis=(0, -2, -1))[..., None, None]
    return linear + _NUDGE * np.where(largest > 0, largest, 1e-100) * np.diag([1.1, 1.0, 0.9])


def _factors(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quaternions of U and V (F, P, 4) and S (F, P, 3) with U S Vᵀ = ``linear`` (F, P, 3, 3), each frame alone."""
    u, s, vt = np.linalg.svd(_nudged(linear))
    mirrored_u = np.where(np.linalg.det(u) < 0, -1.0, 1.0)
    mirrored_v = np.where(np.linalg.det(vt) < 0, -1.0, 1.0)
    u[..., :, 2] *= mirrored_u[..., None]
    vt[..., 2, :] *= mirrored_v[..., None]
    s[..., 2] *= mirrored_u * mirrored_v
    return quaternions.from_matrices(u), s, quaternions.from_matrices(np.swapaxes(vt, -1, -2))


def _with_identity_before(rotation: np.ndarray) -> np.ndarray:
    """``rotation`` with a frame of no rotation in front, to which the first frame is then matched."""
    return np.concatenate([np.broadcast_to(_NO_TURN, (1, *rotation.shape[1:])), rotation])


def _nearest_elements(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elements (F − 1, P) for U and V of each frame but the first that bring them close to the previous frame.

    u, v (F, P, 4). Of the six permutations, which U and V share, the one with the largest sum of squared cosines of
    the half angles left, each with its own best signs.
    """
    best = []
    for q in (u, v):
        turn = quaternions.product(quaternions.conjugate(q[1:]), q[:-1])
        cosines = np.square(turn @ _ELEMENTS.T).reshape(*turn.shape[:-1], 6, 4)
        signs = np.argmax(cosines, axis=-1)
        best.append((signs, np.take_along_axis(cosines, signs[..., None], axis=-1)[..., 0]))
    order = np.argmax(best[0][1] + best[1][1], axis=-1)
    return tuple(4 * order + np.take_along_axis(signs, order[..., None], axis=-1)[..., 0] for signs, _ in best)


def _accumulated(steps: np.ndarray) -> np.ndarray:
    """Products of the group elements ``steps`` (F, P) over the frames: step f times all before."""
    total = np.empty_like(steps)
    total[0] = steps[0]
    for frame in range(1, len(steps)):  # one look-up in a table per frame: all bones at once
        total[frame] = _PRODUCTS[steps[frame], total[frame - 1]]
    return total


def _reordered(s: np.ndarray, elements_u: np.ndarray, elements_v: np.ndarray) -> np.ndarray:
    """S (..., 3) after the columns of U and V were exchanged and mirrored by the group elements."""
    return np.take_along_axis(s, _PERMUTATIONS[elements_u], axis=-1) * _SIGNS[elements_u] * _SIGNS[elements_v]


def _best_child_scales(linear: np.ndarray, extents: np.ndarray) -> np.ndarray:
    """(P,) rows of CHILD_SCALES whose chains are closest to ``linear`` (F, P, 3, 3) halfway between frames.

    Long animations are tried on some of their frames, those with the largest steps and others evenly spaced; the best
    two scales are then tried on all frames.
    """
    frame_count, bone_count = linear.shape[:2]
    pairs = frame_count - 1
    if pairs == 0:
        return np.zeros(bone_count, dtype=int)
    affordable = max(8, _TRIAL_DECOMPOSITIONS // (2 * len(CHILD_SCALES) * bone_count))
    bones = np.arange(bone_count)
    targets = _halfway_targets(linear)
    candidates = np.broadcast_to(np.arange(len(CHILD_SCALES))[:, None], (len(CHILD_SCALES), bone_count))
    if pairs > affordable:
        steps = np.einsum("fpij,pj->fp", np.square(np.diff(linear, axis=0)), np.square(extents))
        largest = np.argpartition(steps, pairs - affordable // 2, axis=0)[pairs - affordable // 2 :]
        spaced = np.linspace(0, pairs - 1, affordable - affordable // 2).astype(int)
        rows = np.concatenate([largest, np.broadcast_to(spaced[:, None], (len(spaced), bone_count))])
        pair = np.stack([np.take_along_axis(linear, index[..., None, None], axis=0) for index in (rows, rows + 1)])
        pair_targets = np.take_along_axis(targets, rows[..., None, None], axis=0)
        trial = np.array([_halfway_score(pair, pair_targets, extents, CHILD_SCALES[choice]) for choice in candidates])
        candidates = np.argsort(trial, axis=0)[:_SHORTLIST]
    scores = np.array([_halfway_score(linear, targets, extents, CHILD_SCALES[choice]) for choice in candidates])
    best = np.argmin(scores, axis=0)
    plain = np.where(candidates == 0, scores, np.inf).min(axis=0)
    plain_enough = plain <= _PLAIN_ENOUGH * scores[best, bones] + _NO_ERROR**2
    return np.where(plain_enough, 0, candidates[best, bones])


def _halfway_targets(linear: np.ndarray) -> np.ndarray:
    """(F − 1, P, 3, 3): what should be halfway between the frames of ``linear`` (F, P, 3, 3).

    The halfway rotation and the average stretch of the polar decompositions, as for a bone that can shear. Where the
    rotation is ambiguous (by more than a quarter turn, or mirrored in between), the average of the matrices.
    """
    turned, stretch = polar_decomposition(linear)
    mirrors = np.trace(stretch, axis1=-2, axis2=-1) < 0
    rotation = quaternions.from_matrices(turned)
    cosine = np.abs(np.einsum("fpi,fpi->fp", rotation[:-1], rotation[1:]))
    clear = (cosine > np.sqrt(0.5)) & (mirrors[:-1] == mirrors[1:])
    polar = quaternions.to_matrices(quaternions.halfway(rotation[:-1], rotation[1:])) @ (stretch[:-1] + stretch[1:])
    return 0.5 * np.where(clear[..., None, None], polar, linear[:-1] + linear[1:])


def _halfway_score(linear: np.ndarray, targets: np.ndarray, extents: np.ndarray, child_scale: np.ndarray) -> np.ndarray:
    """(P,) mean square of the distance halfway from each frame to the next, for child scales (P, 3).

    The distance is that of the chain, its channels interpolated as Blender does, from ``targets`` (R, P, 3, 3).
    linear: (R + 1, P, 3, 3) where all frames follow each other, or (2, R, P, 3, 3): R frames and those after them.
    """
    bone_count = len(extents)
    factors = _factors((linear / child_scale[:, None, :]).reshape(len(linear), -1, 3, 3))
    first, second = ([part[frames] for part in factors] for frames in (slice(None, -1), slice(1, None)))
    elements = _nearest_elements(factors[0], factors[2])
    middle_u, middle_v = (
        quaternions.to_matrices(quaternions.halfway(first[i], quaternions.product(second[i], _ELEMENTS[element])))
        for i, element in zip((0, 2), elements, strict=True)
    )
    middle_s = 0.5 * (first[1] + _reordered(second[1], *elements))
    chain = (middle_u * middle_s[..., None, :]) @ np.swapaxes(middle_v, -1, -2)
    difference = chain.reshape(-1, bone_count, 3, 3) * child_scale[:, None, :]
    difference -= targets
    return np.einsum("fpij,pj->p", np.square(difference), np.square(extents)) / len(difference)
