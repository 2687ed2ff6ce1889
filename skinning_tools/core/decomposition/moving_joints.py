# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints that move while rigid bones turn about them: see ``jointed``."""

import numpy as np

from ..bone_order import parents_first
from ..dense import product
from ..skeleton_symmetry import symmetric_joints
from . import rigid
from .jointed_bones import JointedBones, joined
from .transforms import NormalEquations, to_rows

# Radians (root mean square): joints stay near where they were found along directions in which bones turn less than
# that, such as the axis of a hinge.
_FAINT_TURN = 0.03
# Of the unit ball: joints that would move farther than that from where they were found are held more firmly, in so many
# attempts.
_FARTHEST, _FIRMER = 0.12, 4
# Vertices, squared weights added up: joints that carry less, such as those of bones that lost all vertices, stay.
_LEAST_MASS = 1e-9
# A joint beside the middle of a symmetric body that would come closer to it than by this share of where it was found is
# held there, so many times more firmly, so that hips do not cross.
_ASIDE, _FIRM = 0.5, 1e3
# Of the unit ball: a body's diagonal.
_DIAGONAL = 2.0
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
        self._free = free
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

    def moved(self, equations: NormalEquations, motion: np.ndarray, sweeps: int) -> np.ndarray:
        """Better motion (F, P, 3, 4) by so many sweeps, each over all bones and then over all joints."""
        for _ in range(sweeps):
            motion, error = JointedBones(equations, self.heads, self.parents, self._free).swept(motion)
            trial = self._mirrored(self.heads + self._step(equations, motion))
            moved = joined(motion, trial, self.parents)
            if equations.squared_error(to_rows(moved)) < error:
                motion, self.heads = moved, trial
        return motion

    def extrapolated(self, motion: np.ndarray, change: np.ndarray, factor: float) -> np.ndarray:
        """``motion`` (F, P, 3, 4) further along its last ``change``, of rigid bones on their joints."""
        return joined(rigid.nearest(motion + factor * change), self.heads, self.parents)

    def _step(self, equations: NormalEquations, motion: np.ndarray) -> np.ndarray:
        """(P, 3) by which the joints move to lower the error most, all rotations and the motion of the roots given."""
        parents, bone_count, frame_count = self.parents, self.count, len(motion)
        children, back = np.flatnonzero((parents >= 0) & self._movable), self.found - self.heads
        below = np.eye(bone_count)
        for bone in reversed(parents_first(parents)):
            if parents[bone] >= 0:
                below[parents[bone]] += below[bone]
        if len(children) == 0:
            return np.zeros((bone_count, 3))
        below = below[children]
        # What a step of each joint moves, by how much: (B_parent − B_bone) of all below the joint.
        turn = motion[:, parents[children], :, :3] - motion[:, children, :, :3]
        translations = np.arange(3, 4 * bone_count, 4)
        mass = below @ equations.moments[np.ix_(translations, translations)] @ below.T
        left = equations.products[translations] - product(
            np.ascontiguousarray(equations.moments[translations]), to_rows(motion)
        )
        pull = (below @ left).reshape(len(children), frame_count, 3)
        count = len(children)
        flat = turn.transpose(1, 3, 0, 2).reshape(3 * count, 3 * frame_count)
        system = product(flat, flat.T).reshape(count, 3, count, 3) * mass[:, None, :, None]
        right = np.einsum("fcij,cfi->cj", turn, pull)
        faint = frame_count * _FAINT_TURN**2 * np.maximum(np.diag(mass), max(1e-9 * mass.trace(), _LEAST_MASS))
        hold, step = np.repeat(faint[:, None], 3, axis=1), np.zeros((bone_count, 3))
        for _ in range(_FIRMER):
            held = system.reshape(3 * count, 3 * count) + np.diag(hold.ravel())
            drawn = right + hold * back[children]
            step[children] = np.linalg.solve(held, drawn.ravel()).reshape(count, 3)
            away = np.linalg.norm(step - back, axis=1)[children]
            crossed = self._crossed(self.heads + step)[children]
            if away.max() <= _FARTHEST and not crossed.any():
                break
            hold *= np.maximum(away / (0.5 * _FARTHEST), 1.0)[:, None] ** 2
            hold[crossed, 0] = np.maximum(hold[crossed, 0], _FIRM * faint[crossed])
        return step

    def bearing(self, strongest: np.ndarray) -> np.ndarray:
        """(P,) bool: whether a bone is the strongest of some vertex of ``strongest`` (N,), or has such a bone below."""
        bearing = np.bincount(strongest, minlength=self.count) > 0
        for bone in reversed(parents_first(self.parents)):
            if bearing[bone] and self.parents[bone] >= 0:
                bearing[self.parents[bone]] = True
        return bearing

    def only(self, kept: np.ndarray) -> "MovingJoints":
        """The bones ``kept`` (P,) alone, whose parents are kept, too."""
        parents = places_of(self.parents, kept).astype(np.int32)
        return MovingJoints(self.heads[kept], parents, self.found[kept])

    def slid(self, equations: NormalEquations, motion: np.ndarray, most: float) -> np.ndarray:
        """Better motion (F, P, 3, 4) of bones that may leave their joints by up to ``most``."""
        bones = JointedBones(equations, self.heads, self.parents)
        for _ in range(_SLIPPING_SWEEPS):
            motion = bones.slid(motion, most)
        return motion


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
