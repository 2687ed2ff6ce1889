# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints that move while rigid bones turn about them: see ``jointed``."""

import numpy as np

from ..body_surface import BodySurface
from ..bone_order import subtrees
from ..joints_in_body import into_body
from ..pair_motion import PairMotion
from ..progress import Progress, checkpoint, ignore
from ..skeleton_symmetry import symmetric_joints
from . import rigid
from .joint_steps import JointSteps, JointSystem
from .jointed_bones import JointedBones, joined
from .transforms import NormalEquations

# Radians (root mean square): joints stay near where they were found along directions in which bones turn less than
# that, such as the axis of a hinge.
_FAINT_TURN = 0.03
# Of the unit ball: the farthest that a joint may be from where it was found.
_FARTHEST = 0.12
# Where joints would go farther, they are held there and the others are solved for again, at most so often.
_ATTEMPTS = 4
# A joint counts as carrying at least this sum of squared weights, and at least this share of what all joints carry.
# Without that, the joint of a bone that lost all vertices could go anywhere.
_LEAST_MASS, _LEAST_SHARE = 1e-9, 1e-9
# A joint beside the middle of a symmetric body keeps this share of its distance from it, so that hips do not cross.
_ASIDE = 0.5
# What holds a joint that may go no farther, as a multiple of what pulls it.
_FIRM = 1e3
# Of the unit ball: a body's diagonal.
_DIAGONAL = 2.0
# Shares of a step, the first of which is taken that lowers the error.
_SHARES = (1.0, 0.5, 0.25)
# Sweeps of bones that may leave their joints.
_SLIPPING_SWEEPS = 3


class MovingJoints:
    """Rigid bones on joints, which move: ``heads`` (P, 3), and where they were ``found`` (P, 3), in solver units.

    movable (P,) bool: the bones whose joints move; free (P,) bool: those whose motion is not given; by default all.
    """

    def __init__(
        self,
        heads: np.ndarray,
        parents: np.ndarray,
        found: np.ndarray | None = None,
        movable: np.ndarray | None = None,
        free: np.ndarray | None = None,
    ):
        self.heads, self.parents = heads, parents
        self.found = heads if found is None else found
        self.count = len(parents)
        self._movable = np.ones(self.count, bool) if movable is None else movable
        self._free = np.ones(self.count, bool) if free is None else free
        self._partners: np.ndarray | None = None
        self._plane = 0.0

    def mirror(self, partners: np.ndarray | None, plane: float) -> None:
        """Make joints of ``partners`` (P,) mirror each other in the plane x = ``plane`` from now on, and each stay on
        its side."""
        self._partners = None if partners is None else _images(partners, self.parents)
        self._plane = plane
        self.heads = self._mirrored(np.where(self._crossed(self.heads)[:, None], self.found, self.heads))

    def _mirrored(self, heads: np.ndarray) -> np.ndarray:
        if self._partners is None:
            return heads
        return symmetric_joints(heads, self._partners, self._plane, _DIAGONAL)

    def _crossed(self, heads: np.ndarray) -> np.ndarray:
        """(P,) bool: the joints of partners that are closer to the middle than they may be, or beyond it."""
        if self._partners is None:
            return np.zeros(self.count, bool)
        found = self.found[:, 0] - self._plane
        aside = (self._partners >= 0) & (self._partners != np.arange(self.count))
        return aside & ((heads[:, 0] - self._plane) * found < _ASIDE * found**2)

    def moved(
        self,
        equations: NormalEquations,
        motion: np.ndarray,
        steps: int,
        progress: Progress = ignore,
        *,
        joints: bool = True,
    ) -> np.ndarray:
        """Better motion (F, P, 3, 4) by so many steps of all bones and, unless they stay, of the joints as well. Raises
        Cancelled."""
        bones = JointSteps(equations, self.parents, self._free)
        children = np.flatnonzero((self.parents >= 0) & self._movable & joints)
        faint = _FAINT_TURN**2 * _carried(bones, children, len(motion))
        motion, errors = bones.settled(motion, self.heads)
        for number in range(steps):
            motion, errors = self._stepped(bones, motion, errors, children, faint)
            checkpoint(progress, (number + 1) / steps, "Joints")
        return motion

    def draw_into_body(
        self, equations: NormalEquations, motion: np.ndarray, surface: BodySurface, most: float
    ) -> np.ndarray:
        """``motion`` (F, P, 3, 4) after joints outside the body have moved toward where they were found until they are
        inside, as far as each of them raises the squared error by at most so much. From then on these stay."""
        bones = JointSteps(equations, self.parents, self._free)
        children = np.flatnonzero((self.parents >= 0) & self._movable)
        motion, errors = bones.settled(motion, self.heads)
        system, heads = bones.linearized(motion, self.heads, children), self.heads.copy()
        carried = _carried(bones, children, len(motion))
        costs = PairMotion(system.costs(heads[children]) / carried[:, None, None])
        aims, image = self.found[children], np.full(len(children), -1)
        if self._partners is not None:
            image = places_of(self._partners, np.isin(np.arange(self.count), children))
        more = np.sqrt(most / carried)
        heads[children] = into_body(costs, heads[children], aims, aims, image, self._plane, surface, more)
        step = self._mirrored(self._allowed(heads)) - self.heads
        self.heads = self.heads + step
        self._movable = self._movable & (step == 0).all(axis=1)
        return bones.moved(system, motion, errors, self.heads, step[children])[0]

    def _stepped(
        self, bones: JointSteps, motion: np.ndarray, errors: np.ndarray, children: np.ndarray, faint: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Motion and the errors (F,) of its frames after a step of the bones, and of the joints of ``children``."""
        system = bones.linearized(motion, self.heads, children)
        step = self._step(system, children, faint)
        error = errors.sum() + self._cost(self.heads, children, faint)
        for share in _SHARES:
            heads = self.heads + share * step
            trial, found = bones.moved(system, motion, errors, heads, share * step[children])
            if found.sum() + self._cost(heads, children, faint) < error:
                self.heads = heads
                return trial, found
        return motion, errors

    def _cost(self, heads: np.ndarray, children: np.ndarray, faint: np.ndarray) -> float:
        """What keeps joints where they were found, in units of the squared error."""
        return float(faint @ np.square(heads - self.found)[children].sum(axis=1))

    def extrapolated(self, motion: np.ndarray, change: np.ndarray, factor: float) -> np.ndarray:
        """``motion`` (F, P, 3, 4) further along its last ``change``, of rigid bones on their joints."""
        return joined(rigid.nearest(motion + factor * change), self.heads, self.parents)

    def _step(self, system: JointSystem, children: np.ndarray, faint: np.ndarray) -> np.ndarray:
        """(P, 3) by which the joints move to lower the error most, to places that they may have."""
        heads, count = self.heads.copy(), len(children)
        target, hold = self.found[children].copy(), np.repeat(faint[:, None], 3, axis=1)
        firm = _FIRM * np.maximum(np.diag(system.matrix).reshape(count, 3), hold)
        for _ in range(_ATTEMPTS):
            held = system.matrix + np.diag(hold.ravel())
            drawn = system.right + (hold * (target - self.heads[children])).ravel()
            heads[children] = self.heads[children] + np.linalg.solve(held, drawn).reshape(count, 3)
            allowed = self._allowed(heads)[children]
            beyond = allowed != heads[children]
            heads[children] = allowed
            if not beyond.any():
                break
            target[beyond], hold[beyond] = allowed[beyond], firm[beyond]
        return self._mirrored(heads) - self.heads

    def _allowed(self, heads: np.ndarray) -> np.ndarray:
        """The places (P, 3) nearest to ``heads`` that joints may have."""
        away = heads - self.found
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        near = np.where(distance > _FARTHEST, self.found + away * (_FARTHEST / np.maximum(distance, _FARTHEST)), heads)
        crossed = self._crossed(near)
        near[crossed, 0] = self._plane + _ASIDE * (self.found[crossed, 0] - self._plane)
        return near

    def bearing(self, strongest: np.ndarray) -> np.ndarray:
        """(P,) bool: whether a bone is the strongest of some vertex of ``strongest`` (N,), or has such a bone below."""
        bearing = np.bincount(strongest, minlength=self.count) > 0
        return np.asarray((subtrees(self.parents) & bearing).any(axis=1))

    def only(self, kept: np.ndarray) -> "MovingJoints":
        """The bones ``kept`` (P,) alone, whose parents are kept, too."""
        parents = places_of(self.parents, kept).astype(np.int32)
        return MovingJoints(self.heads[kept], parents, self.found[kept], self._movable[kept], self._free[kept])

    def slid(self, equations: NormalEquations, motion: np.ndarray, most: float) -> np.ndarray:
        """Better motion (F, P, 3, 4) of bones that may leave their joints by up to ``most``."""
        bones = JointedBones(equations, self.heads, self.parents)
        for _ in range(_SLIPPING_SWEEPS):
            motion = bones.slid(motion, most)
        return motion


def _carried(bones: JointSteps, children: np.ndarray, frame_count: int) -> np.ndarray:
    """(n,) what the joints of ``children`` (n,) move in all frames, in squared weights, and never nothing."""
    mass = bones.mass[children]
    return frame_count * np.maximum(mass, max(_LEAST_SHARE * mass.sum(), _LEAST_MASS))


def _images(partners: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(P,) the bone whose joint mirrors that of each bone, −1 without one; ``partners`` (P,) of the bones.

    A joint is that of two bones, and the child has its position: of a child that mirrors its own parent, the parent
    would have it, whose position means nothing where it is a root.
    """
    above = np.where(parents >= 0, partners[parents], -1)
    as_child = (partners >= 0) & (parents[partners] == above) & ((above >= 0) | (parents < 0))
    turned = (above >= 0) & (partners >= 0) & (parents[above] == partners)
    return np.where(as_child, partners, np.where(turned, above, -1))


def places_of(others: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """``others`` (P,), the index of a bone or −1 for each bone, of and among the bones ``kept`` (P,) alone."""
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return np.where(others >= 0, place[others], -1)[kept]
