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
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs

from ..bone_order import subtrees
from ..dense import product, self_product
from ..solve_memory import JOINT_THREADS, joint_blocks_kept, joint_frames
from ..threads import for_each, mapped
from . import rigid
from .jointed_bones import joined
from .transforms import NormalEquations, to_rows

# Of a bone's resistance to turns, and of the largest: turns are held so firmly, so that those stay small that the
# vertices hardly tell.
_DAMPING, _LEAST_DAMPING = 1e-3, 1e-12
# Shares of its turns of which each frame takes the best.
_SHARES = (1.0, 0.5, 0.0)
# Of the mean over the bones: bones that carry less than that stay as they are.
_LIGHT = 1e-9
# Of the largest mass of roots: shifts of roots that cancel each other, but for less than that, are rounding.
_CANCELED = 1e-12


class JointSystem:
    """The squared error near some motion, quadratic in steps (n, 3) of joints to which all bones respond at their best:
    ``matrix`` (3n, 3n) and right side ``right`` (3n,) of the equations of the best step.

    Factors are kept of the first frames, as far as memory allows; of the others, they are made again for ``turns``.
    """

    def __init__(self, blocks: "list[_Block]"):
        """blocks: all frames, some each, at least one."""
        self._blocks, self._factors = blocks, dict[int, np.ndarray]()
        joints = len(blocks[0].moments.joints)
        self.matrix, self.right = np.zeros((3 * joints, 3 * joints)), np.zeros(3 * joints)
        kept = joint_blocks_kept(blocks[0].rotations.shape[1])

        def eliminated(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
            factors = blocks[number].factors()
            return *blocks[number].eliminated(factors), factors if number < kept else None

        def take(number: int, made: tuple[np.ndarray, np.ndarray, np.ndarray | None]) -> None:
            matrix, right, factors = made
            self.matrix += matrix
            self.right += right
            if factors is not None:
                self._factors[number] = factors

        for_each(eliminated, range(len(blocks)), take, JOINT_THREADS)

    def costs(self, heads: np.ndarray) -> np.ndarray:
        """(n, 4, 4) by how much a joint at c, all others as they are in ``heads`` (n, 3), raises the error: the squares
        of [c; 1]."""
        count = len(heads)
        costs, joints = np.zeros((count, 4, 4)), np.arange(count)
        costs[:, :3, :3] = own = self.matrix.reshape(count, 3, count, 3)[joints, :, joints]
        right = self.right.reshape(count, 3)
        drawn = right + np.einsum("cij,cj->ci", own, heads)
        costs[:, :3, 3] = costs[:, 3, :3] = -drawn
        costs[:, 3, 3] = np.einsum("ci,ci->c", drawn + right, heads)
        return costs

    def turns(self, step: np.ndarray) -> np.ndarray:
        """(F, p, 3) of the bones, as axes times angles, when joints make the ``step`` (n, 3)."""

        def answered(number: int) -> np.ndarray:
            block, kept = self._blocks[number], self._factors.get(number)
            return block.turns(block.factors() if kept is None else kept, step)

        return np.concatenate(mapped(answered, range(len(self._blocks)), JOINT_THREADS))


class JointSteps:
    """Rigid bones on joints and all that the normal equations know about them, in solver units.

    parents (P,); free (P,) bool: the others have a given motion. At least one free bone has vertices. mass (P,): the
    squared weights that a bone carries.
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

        at_once = joint_frames(len(self._turning))
        parts = [slice(start, start + at_once) for start in range(0, frames, at_once)]
        turning = rotations[:, self._turning]
        return JointSystem([_Block(moments, turning[part], arms[part], torques[part], pulls[part]) for part in parts])

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


@dataclass(frozen=True, eq=False)
class _Block:
    """Some frames near some motion: B_j and how the data pull on it (f, p, 3, 3); what a step of each joint is
    multiplied by (f, n, 3, 3), and the pull on that (f, n, 3)."""

    moments: _Moments
    rotations: np.ndarray
    arms: np.ndarray
    torques: np.ndarray
    pulls: np.ndarray

    def factors(self) -> np.ndarray:
        """(f, 3p, 3p) of the systems of turns, each as its factor's transpose, upper: in the memory that has it."""
        systems = self._systems()
        for system in systems:
            # A system is symmetric, so that its transpose, which LAPACK can overwrite, is the same.
            dpotrf(system.T, lower=1, overwrite_a=1)
        return systems

    def eliminated(self, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The system of the joints, (3n, 3n) and (3n,)."""
        frames, turning, count = len(self.rotations), self.rotations.shape[1], len(self.moments.joints)
        arms, places = self.arms, self._places()[..., None]
        sides = np.empty((frames, turning, 3, 1 + 3 * count))
        sides[..., 0] = self._drawn()
        for axis in range(3):
            after, last = (axis + 1) % 3, (axis + 2) % 3
            across = places[:, :, after] * arms[:, None, :, last] - places[:, :, last] * arms[:, None, :, after]
            sides[:, :, axis, 1:] = across.reshape(frames, turning, -1)
        both = zip(factors, sides.reshape(frames, 3 * turning, -1), strict=True)
        # In place, as LAPACK takes columns: L⁻¹ S as Sᵀ L⁻ᵀ.
        for factor, side in both:
            dtrsm(1.0, factor.T, side.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        answered = self_product(sides.reshape(3 * turning * frames, 1 + 3 * count))
        flat = arms.transpose(1, 3, 0, 2).reshape(3 * count, 3 * frames)
        matrix = (flat @ flat.T).reshape(count, 3, count, 3) * self.moments.joints[:, None, :, None]
        pull = np.einsum("fcij,fci->cj", arms, self.pulls).ravel()
        return matrix.reshape(3 * count, 3 * count) - answered[1:, 1:], pull - answered[1:, 0]

    def turns(self, factors: np.ndarray, step: np.ndarray) -> np.ndarray:
        """(f, p, 3): see JointSystem.turns."""
        shifts = np.einsum("fcij,cj->fci", self.arms, step)
        sides = self._drawn() + _axial(self._places() @ shifts[:, None])
        both = zip(factors, sides.reshape(len(sides), -1), strict=True)
        return np.reshape([dpotrs(factor.T, side, lower=1)[0] for factor, side in both], sides.shape)

    def _places(self) -> np.ndarray:
        """(f, p, 3, n) what the turn of each bone does to the place that each joint moves."""
        turning, count = self.rotations.shape[1], len(self.moments.joints)
        return np.matmul(self.rotations, self.moments.mixed.reshape(turning, 3, count))

    def _drawn(self) -> np.ndarray:
        """(f, p, 3) the turns' right sides."""
        return _axial(self.torques @ self.rotations.swapaxes(2, 3))

    def _systems(self) -> np.ndarray:
        """(f, 3p, 3p) of the turns: tr(M) − Mᵀ with M = B_j G_jk B_kᵀ, and the damping."""
        rotations, moments = self.rotations, self.moments.turns
        frames, turning = rotations.shape[:2]
        half = np.matmul(rotations, moments.reshape(turning, 3, 3 * turning))
        half = half.reshape(frames, turning, 3, turning, 3).transpose(0, 3, 2, 1, 4)
        half = np.ascontiguousarray(half).reshape(frames, turning, 3 * turning, 3)
        # As M_jkᵀ = M_kj, what is made here as (frame, k, axis of j, j, axis of k) is −Mᵀ where it belongs.
        moved = np.matmul(half, np.ascontiguousarray(-rotations.swapaxes(2, 3)))
        systems: np.ndarray = moved.reshape(frames, turning, 3, turning, 3)
        traces = systems[:, :, 0, :, 0] + systems[:, :, 1, :, 1] + systems[:, :, 2, :, 2]
        for axis in range(3):
            systems[:, :, axis, :, axis] -= traces
        systems = systems.reshape(frames, 3 * turning, 3 * turning)
        diagonal = np.arange(3 * turning)
        resistance = np.einsum("jiji->j", moments.reshape(turning, 3, turning, 3))
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
