# SPDX-License-Identifier: GPL-3.0-or-later
"""Gauss-Newton steps of rigid bones on joints: all turns of a frame at once, and the joints with all frames at once.

The mesh is linear in the rotations B_j of jointed_bones: with U of that module for all bones, and G = Uᵀ S U (3P, 3P),
turns ω_j, which change B_j by [ω_j]× B_j, solve one system a frame, made of B_j G_jk B_kᵀ. A joint's step moves all
that is below the joint by B_parent − B_j in every frame. As in bundle adjustment, the turns are eliminated frame by
frame (Schur complement), so that the joints solve one system of 3P unknowns that knows how the bones will follow. Where
the roots are is linear, and is eliminated before. No step touches a vertex.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from ..bone_order import subtrees
from ..dense import product, self_product
from ..threads import mapped
from . import rigid
from .jointed_bones import joined
from .transforms import NormalEquations, to_rows

# Frames that one thread solves at once.
_FRAMES_AT_ONCE = 32
# Of a bone's resistance to turns, and of the largest: turns are held so firmly, so that those stay small that the
# vertices hardly tell.
_DAMPING, _LEAST_DAMPING = 1e-3, 1e-12
# Shares of its turns of which each frame takes the best.
_SHARES = (1.0, 0.5, 0.0)
# Of the mean over the bones: bones that carry less than that stay as they are.
_LIGHT = 1e-9
# Of the largest mass of roots: shifts of roots that cancel each other, but for less than that, are rounding.
_CANCELED = 1e-12


@dataclass(frozen=True, eq=False)
class JointSystem:
    """The squared error near some motion, quadratic in steps (n, 3) of joints to which all bones respond at their best:
    matrix (3n, 3n) and right side (3n,) of the equations of the best step.

    factors (F, 3p, 3p): of the systems of turns, lower; sides (F, 3p, 1 + 3n): their right sides, and what steps of the
    joints subtract from these, both solved by the factors.
    """

    matrix: np.ndarray
    right: np.ndarray
    factors: np.ndarray
    sides: np.ndarray

    @classmethod
    def joined(cls, parts: "list[JointSystem]") -> "JointSystem":
        """The system of all frames, from those of some each."""
        matrix = np.sum([part.matrix for part in parts], axis=0)
        right = np.sum([part.right for part in parts], axis=0)
        factors = np.concatenate([part.factors for part in parts])
        return cls(matrix, right, factors, np.concatenate([part.sides for part in parts]))

    def turns(self, step: np.ndarray) -> np.ndarray:
        """(F, p, 3) of the bones, as axes times angles, when joints make the ``step`` (n, 3)."""
        sides = self.sides @ np.append(1.0, -step.ravel())
        turns = [dtrtrs(factor, side, lower=1, trans=1)[0] for factor, side in zip(self.factors, sides, strict=True)]
        return np.reshape(turns, (len(sides), -1, 3))


class JointSteps:
    """Rigid bones on joints and all that the normal equations know about them, in solver units.

    parents (P,); free (P,) bool: the others have a given motion. mass (P,): the squared weights that a bone carries.
    """

    def __init__(self, equations: NormalEquations, parents: np.ndarray, free: np.ndarray):
        self._equations, self._parents = equations, parents
        self._centers = rigid.centers(equations.bone_moments)
        self._below = subtrees(parents)
        # What each bone, and each joint, moves along with it: rows of Tᵀ.
        self._carried = np.zeros((len(parents), 4 * len(parents)))
        self._carried[:, 3::4] = self._below
        self.mass = np.einsum("pk,pk->p", product(self._carried, equations.moments), self._carried)
        heavy = free & (self.mass > _LIGHT * self.mass.mean())
        self._turning, self._roots = np.flatnonzero(heavy), np.flatnonzero(heavy & (parents < 0))
        # Few bones are roots, or none.
        carried = self._carried[self._roots]
        pulled = carried @ equations.moments
        # Roots that share all vertices alike can shift against each other, and do not.
        self._lightness = np.linalg.pinv(pulled @ carried.T, _CANCELED, hermitian=True)
        # How the roots follow what is left to do, and the moments of bones whose roots follow.
        self._follow = self._lightness @ pulled
        self._moments = equations.moments - pulled.T @ self._follow

    def settled(self, motion: np.ndarray, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``motion`` (F, P, 3, 4) with the joints in place and the roots where they are best, all rotations as they
        are; and ‖TX − A‖² − ‖A‖² of each frame (F,)."""
        result = joined(motion, heads, self._parents)
        rows, left = self._left(result)
        pull = self._carried[self._roots] @ left
        shift = self._lightness @ pull
        errors = -(rows * (left + self._equations.products)).sum(axis=0) - (pull * shift).sum(axis=0)
        shift = shift.reshape(len(self._roots), len(motion), 3)
        result[..., 3] += np.einsum("rp,rfi->fpi", self._below[self._roots].astype(float), shift)
        return result, errors.reshape(-1, 3).sum(axis=1)

    def linearized(self, motion: np.ndarray, heads: np.ndarray, children: np.ndarray) -> JointSystem:
        """About ``motion`` (F, P, 3, 4), settled, with joints ``heads`` (P, 3), for steps of those of ``children``."""
        left = self._left(motion)[1]
        left -= self._follow.T @ (self._carried[self._roots] @ left)
        lever, carried = self._lever(heads), self._carried[children]
        pulled = product(lever, self._moments)
        moments = _Moments(product(pulled, lever.T), pulled @ carried.T, carried @ self._moments @ carried.T)
        rotations, frames = motion[..., :3], len(motion)
        arms = rotations[:, self._parents[children]] - rotations[:, children]
        torques = product(lever, left).reshape(len(self._turning), 3, frames, 3).transpose(2, 0, 3, 1)
        pulls = (carried @ left).reshape(len(children), frames, 3).swapaxes(0, 1)

        def eliminated(part: slice) -> JointSystem:
            return moments.eliminated(rotations[part, self._turning], arms[part], torques[part], pulls[part])

        parts = [slice(start, start + _FRAMES_AT_ONCE) for start in range(0, frames, _FRAMES_AT_ONCE)]
        return JointSystem.joined(mapped(eliminated, parts))

    def moved(
        self, system: JointSystem, motion: np.ndarray, errors: np.ndarray, heads: np.ndarray, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """``settled`` motion with joints ``heads``, which have made the ``step`` (n, 3), and the errors (F,) of its
        frames; errors: those of ``motion``, which a frame should not exceed."""
        turns, least = system.turns(step), np.full(len(motion), np.inf)
        result = motion.copy()
        for share in _SHARES:
            trial = motion.copy()
            trial[:, self._turning, :, :3] = _rotations(share * turns) @ motion[:, self._turning, :, :3]
            trial, found = self.settled(trial, heads)
            better = found < least
            result[better], least[better] = trial[better], found[better]
            if (least <= errors).all():
                break
        return result, least

    def _left(self, motion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tᵀ and what is left of the products, X (A − TX)ᵀ, both (4P, 3F)."""
        rows = to_rows(motion)
        return rows, self._equations.products - product(self._equations.moments, rows)

    def _lever(self, heads: np.ndarray) -> np.ndarray:
        """Uᵀ (3p, 4P) of the bones that turn."""
        count, linked = len(heads), np.flatnonzero(self._parents >= 0)
        heads = np.where(self._parents[:, None] < 0, self._centers, heads)
        lever = np.zeros((count, 3, count, 4))
        lever[np.arange(count), :, np.arange(count), :3] = np.eye(3)
        lever[np.arange(count), :, np.arange(count), 3] = -heads
        for child in linked:
            parent = self._parents[child]
            lever[parent, :, self._below[child], 3] += heads[child] - heads[parent]
        return lever[self._turning].reshape(-1, 4 * count)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Of turns (3p, 3p), of turns and joints (3p, n), and of joints (n, n), alike in all frames."""

    turns: np.ndarray
    mixed: np.ndarray
    joints: np.ndarray

    def eliminated(
        self, rotations: np.ndarray, arms: np.ndarray, torques: np.ndarray, pulls: np.ndarray
    ) -> JointSystem:
        """The system of some frames: from B_j and how the data pull on it (f, p, 3, 3); from what a step of each joint
        is multiplied by (f, n, 3, 3), and the pull on that (f, n, 3)."""
        frames, turning, count = len(rotations), rotations.shape[1], len(self.joints)
        places = np.matmul(rotations, self.mixed.reshape(turning, 3, count))
        mixed = np.cross(places[..., None], arms.transpose(0, 2, 1, 3)[:, None], axisa=2, axisb=2, axisc=2)
        drawn = _axial(torques @ rotations.swapaxes(2, 3))
        right = [drawn.reshape(frames, -1, 1), mixed.reshape(frames, 3 * turning, 3 * count)]
        # A system is symmetric, so that its transpose, which LAPACK can overwrite, is the same.
        factors = np.array([dpotrf(system.T, lower=1, overwrite_a=1)[0] for system in self._systems(rotations)])
        both = zip(factors, np.concatenate(right, axis=2), strict=True)
        sides = np.array([dtrtrs(factor, side, lower=1)[0] for factor, side in both])
        answered = self_product(sides.reshape(3 * turning * frames, 1 + 3 * count))
        flat = arms.transpose(1, 3, 0, 2).reshape(3 * count, 3 * frames)
        matrix = (flat @ flat.T).reshape(count, 3, count, 3) * self.joints[:, None, :, None]
        pull = np.einsum("fcij,fci->cj", arms, pulls).ravel()
        matrix = matrix.reshape(3 * count, 3 * count)
        return JointSystem(matrix - answered[1:, 1:], pull - answered[1:, 0], factors, sides)

    def _systems(self, rotations: np.ndarray) -> np.ndarray:
        """(f, 3p, 3p) of the turns: tr(M) − Mᵀ with M = B_j G_jk B_kᵀ, and the damping."""
        frames, turning = rotations.shape[:2]
        half = np.matmul(rotations, self.turns.reshape(turning, 3, 3 * turning))
        half = half.reshape(frames, turning, 3, turning, 3).transpose(0, 3, 1, 2, 4)
        half = np.ascontiguousarray(half).reshape(frames, turning, 3 * turning, 3)
        columns = np.ascontiguousarray(rotations.swapaxes(2, 3))
        # The places are frame, k, j, and the axes of j and of k.
        moved = np.matmul(half, columns).reshape(frames, turning, turning, 3, 3)
        systems = np.ascontiguousarray(-moved.transpose(0, 2, 4, 1, 3))
        traces = np.einsum("fkjii->fjk", moved)
        for axis in range(3):
            systems[:, :, axis, :, axis] += traces
        systems = systems.reshape(frames, 3 * turning, 3 * turning)
        diagonal = np.arange(3 * turning)
        resistance = np.einsum("jiji->j", self.turns.reshape(turning, 3, turning, 3))
        systems[:, diagonal, diagonal] += np.repeat(_DAMPING * resistance + _LEAST_DAMPING * resistance.max(), 3)
        return systems


def _axial(matrices: np.ndarray) -> np.ndarray:
    """(..., 3) a of (..., 3, 3) A with ω · a = ⟨[ω]×, A⟩."""
    across = matrices - np.swapaxes(matrices, -1, -2)
    return np.stack([across[..., 2, 1], across[..., 0, 2], across[..., 1, 0]], axis=-1)


def _rotations(turns: np.ndarray) -> np.ndarray:
    """(..., 3, 3) by ``turns`` (..., 3): axes times angles in radians (Rodrigues)."""
    angles = np.linalg.norm(turns, axis=-1)[..., None, None]
    across = np.cross(np.eye(3), turns[..., None, :])
    return (
        np.eye(3)
        + np.sinc(angles / np.pi) * across
        + 0.5 * np.square(np.sinc(angles / (2 * np.pi))) * (across @ across)
    )
